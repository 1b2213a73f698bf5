// A long text as a text to read, beside its matrix: each token coloured by the weight that the selected query gives it. A click selects a
// token as query or key. What is in sight of the matrix scrolls with the text, and the text with it; words are found in it.

import { make, makeButton } from "./html.js";
import { nameOf } from "./words.js";
import { cellText } from "./matrix.js";

const CHUNK = 64; // tokens in one element, which a browser lays out when it comes into sight
const STRONGEST = 78; // percent of the key's colour behind the token with the largest number, which leaves the letters legible
const SCROLLED_MS = 400; // after the visitor has scrolled, in which the matrix does not scroll the text
const [SPACE_SIGN, LINE_SIGN] = ["␣", "↵"]; // of attnviz/records/glyphs.py
const ROLES = { query: "Query", key: "Key" };

/** What a token adds to the text that is read: labels have signs for spaces and ends of lines, or words are told by what is joined. */
function readTexts({ labels, joined, special }) {
  const [isJoined, isSpecial] = [new Set(joined), new Set(special)];
  const hasSpaces = labels.some((label) => label.startsWith(SPACE_SIGN));
  return labels.map((label, at) => {
    if (isSpecial.has(at)) return ` ${label} `;
    if (!hasSpaces) return isJoined.has(at) ? label.replace(/^##/, "") : ` ${label}`;
    return label.replaceAll(SPACE_SIGN, " ").replaceAll(LINE_SIGN, "\n");
  });
}

export class Passage {
  constructor({ pick, follow }) {
    Object.assign(this, { pick, follow });
    this.role = "query";
    this.find = make("input", "");
    Object.assign(this.find, { type: "search", placeholder: "Find in the text" });
    this.find.setAttribute("aria-label", "Find in the text");
    this.find.oninput = () => this.search();
    this.find.onkeydown = (event) => this.pressIn(event);
    this.count = make("span", "count");
    this.count.setAttribute("aria-live", "polite");
    const step = (name, sign, by) => {
      const button = makeButton("step", sign, () => this.toHit(by));
      button.setAttribute("aria-label", name);
      button.title = name;
      return button;
    };
    this.steps = [step("Previous place", "‹", -1), step("Next place", "›", 1)];
    this.roles = make("div", "roles", make("span", "", "A click selects the"), ...Object.entries(ROLES).map(([role, name]) => this.roleButton(role, name)));
    this.roles.setAttribute("role", "group");
    this.roles.setAttribute("aria-label", "What a click on a token selects");
    this.text = make("div", "text");
    this.text.tabIndex = 0;
    this.text.setAttribute("role", "application");
    this.text.setAttribute("aria-roledescription", "text");
    this.text.onclick = ({ target }) => target.dataset.at && this.choose(Number(target.dataset.at));
    this.text.onkeydown = (event) => this.press(event);
    for (const name of ["wheel", "pointerdown", "touchmove"]) this.text.addEventListener(name, ({ timeStamp }) => (this.moved = timeStamp), { passive: true });
    this.text.onscroll = (event) => this.scrolled(event);
    this.text.onpointerover = ({ target }) => target.dataset.at && this.say(Number(target.dataset.at));
    this.told = make("div", "told");
    this.told.setAttribute("aria-live", "polite");
    this.root = make("section", "passage", make("div", "finder", this.find, this.count, ...this.steps), this.roles, this.text, this.told);
    this.root.setAttribute("aria-label", "Text");
  }

  roleButton(role, name) {
    const button = makeButton("", name, () => {
      this.role = role;
      this.mark();
    });
    button.dataset.role = role;
    return button;
  }

  draw(scene) {
    const isOther = this.scene?.stage.text !== scene.stage.text;
    this.scene = scene;
    if (isOther) this.build();
    this.colour();
    this.mark();
    this.showSeen();
    const chosen = JSON.stringify([scene.stage.text, scene.shown.query, scene.selection.key]);
    if (chosen === this.chosen) return;
    const isKey = !isOther && scene.selection.key !== null && this.chosen?.startsWith(JSON.stringify([scene.stage.text, scene.shown.query]).slice(0, -1));
    this.chosen = chosen;
    this.bring(isKey ? scene.selection.key : scene.shown.query);
  }

  /** All tokens, in parts that the browser lays out when they come into sight. */
  build() {
    const { stage } = this.scene;
    const side = stage.queries;
    this.texts = readTexts(side);
    this.tokens = this.texts.map((text, at) => {
      const token = make("span", "", text);
      token.dataset.at = at;
      return token;
    });
    const chunks = [];
    for (let at = 0; at < this.tokens.length; at += CHUNK) chunks.push(make("span", "chunk", ...this.tokens.slice(at, at + CHUNK)));
    const cut = Object.values(side.cut).map((words) => make("span", "cut", ` ${words}`));
    this.text.replaceChildren(...chunks, ...cut);
    this.text.setAttribute("aria-label", `${side.labels.length.toLocaleString("en")} tokens. Arrow keys go from token to token, Enter selects one.`);
    [this.painted, this.walk, this.hits, this.hit] = [null, null, [], -1];
    this.starts = []; // of each token in the text, for finding
    let whole = "";
    for (const text of this.texts) {
      this.starts.push(whole.length);
      whole += text.replaceAll("\n", " ").toLowerCase(); // which may be longer: "İ" becomes two
    }
    this.whole = whole;
    this.search();
  }

  /** Colours the tokens by the selected row: as far as its largest number beside resting places. */
  colour() {
    const { told, look } = this.scene;
    const painted = `${told?.layer}.${told?.head}.${told?.measure}.${told?.row}.${look.colours.background}`;
    if (!told || painted === this.painted) return;
    this.painted = painted;
    const isScore = told.measure === "scores";
    let [least, most] = [Infinity, -Infinity];
    told.weights.forEach((number, at) => {
      if (Number.isNaN(number) || told.keys.resting[at]) return;
      [least, most] = [Math.min(least, number), Math.max(most, number)];
    });
    const from = isScore ? least : 0;
    this.tokens.forEach((token, at) => {
      const share = (told.weights[at] - from) / (most - from);
      const percent = Math.round(STRONGEST * Math.min(1, Math.max(0, share || 0)));
      if (token.percent === percent) return;
      token.percent = percent;
      token.style.background = percent ? `color-mix(in srgb, var(--key) ${percent}%, transparent)` : "";
    });
  }

  /** Marks what is selected, and walked to. */
  mark() {
    const { shown } = this.scene;
    const marks = { query: shown.query, key: shown.key, walk: this.walk };
    for (const [name, at] of Object.entries(marks)) {
      if (this[`${name}Token`] !== this.tokens[at]) this[`${name}Token`]?.classList.remove(name);
      this[`${name}Token`] = this.tokens[at];
      this.tokens[at]?.classList.add(name);
    }
    for (const button of this.roles.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.role === this.role));
    this.say(this.walk ?? shown.key ?? shown.query);
  }

  /** A token with the number that the selected query gives it. */
  say(at) {
    const { told, stage } = this.scene;
    const number = told?.weights[at];
    const name = told ? nameOf(told.keys, at) : stage.queries.labels[at];
    const said = number === undefined ? name : `${name}: ${cellText(number, told.measure)}`;
    if (this.told.textContent !== said) this.told.textContent = said;
  }

  choose(at) {
    this.walk = null;
    const chosen = { [this.role]: at };
    this.pick(chosen);
    this.follow(chosen);
  }

  press(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (by) {
      const from = this.walk ?? this.scene.shown[this.role] ?? 0;
      this.walk = Math.min(this.tokens.length - 1, Math.max(0, from + by));
      this.mark();
      this.bring(this.walk);
    } else if ((event.key === "Enter" || event.key === " ") && this.walk !== null) this.choose(this.walk);
    else return;
    event.preventDefault();
  }

  // ---- what is in sight

  /** Scrolls so that a token is in sight, or at the top. */
  bring(at, toTop = false) {
    const token = this.tokens[at];
    if (!token) return;
    const [box, here] = [this.text.getBoundingClientRect(), token.getBoundingClientRect()];
    const isInSight = here.top >= box.top && here.bottom <= box.bottom;
    if (!toTop && isInSight) return;
    this.follows = true; // this scrolling is not the visitor's
    this.text.scrollTop += here.top - box.top - (toTop ? 0 : box.height / 3);
  }

  /** Follows the matrix where it is zoomed in: its first row stands at the top, and what is not in sight is paler. */
  showSeen() {
    const { seen = "" } = this.scene.selection;
    if (seen === this.seen) return;
    this.seen = seen;
    const [row, , rows] = seen.split(".").map(Number);
    [...this.text.children].forEach((chunk, number) => {
      const first = number * CHUNK;
      chunk.classList.toggle("beside", rows > 0 && (first + CHUNK <= row || first >= row + rows));
    });
    const isScrolled = performance.now() - (this.moved ?? -Infinity) < SCROLLED_MS;
    if (rows > 0 && !isScrolled) this.bring(row, true);
  }

  /** Where the visitor scrolls the text, what is in sight of a matrix that is zoomed in moves too. */
  scrolled({ timeStamp }) {
    if (this.follows) {
      this.follows = false;
      return;
    }
    this.moved = timeStamp;
    const [row, column, rows] = (this.scene.selection.seen ?? "").split(".").map(Number);
    if (!(rows > 0)) return;
    const top = this.firstInSight();
    if (top === row) return;
    const next = Math.max(0, Math.min(this.tokens.length - rows, top));
    this.pick({ seen: `${next}.${Math.max(0, column + next - row)}.${rows}`, query: this.scene.selection.query, key: this.scene.selection.key });
  }

  firstInSight() {
    const { top } = this.text.getBoundingClientRect();
    let [low, high] = [0, this.tokens.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tokens[middle].getBoundingClientRect().bottom > top) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // ---- finding

  search() {
    const wanted = this.find.value.trim().toLowerCase();
    this.hits = [];
    for (let at = wanted ? this.whole.indexOf(wanted) : -1; at >= 0; at = this.whole.indexOf(wanted, at + 1)) this.hits.push(at);
    this.hit = -1;
    this.count.textContent = wanted ? `${this.hits.length.toLocaleString("en")} found` : "";
    for (const button of this.steps) button.disabled = !this.hits.length;
  }

  pressIn(event) {
    if (event.key !== "Enter" || !this.hits.length) return;
    event.preventDefault();
    this.toHit(event.shiftKey ? -1 : 1);
  }

  /** Goes to the next place, whose first token is selected. */
  toHit(by) {
    this.hit = (this.hit + by + this.hits.length) % this.hits.length;
    if (this.hit < 0) this.hit = this.hits.length - 1;
    this.count.textContent = `${this.hit + 1} of ${this.hits.length.toLocaleString("en")}`;
    const letter = this.hits[this.hit];
    let at = this.starts.findLastIndex((start) => start <= letter);
    while (at + 1 < this.tokens.length && !this.texts[at].slice(letter - this.starts[at]).trim()) at++;
    this.choose(at);
    this.bring(at);
  }

  end() {}
}
