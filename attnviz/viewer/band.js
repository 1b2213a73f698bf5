// The tokens of a text in one line, and below them an arc from the query to each key, as wide as its weight; for a long text, chips with bars.
// Hovering over a token previews it, a click or Enter selects it as the query. The tokens are one stop of the Tab key; arrow keys, Home and
// End move among them. On the first visit the arcs draw themselves.

import { draw, put } from "./svg.js";
import { make, makeButton } from "./html.js";
import { keyed, renew } from "./renew.js";
import { remember, remembered } from "./remember.js";
import { shareText } from "./numbers.js";

const ARC_ROOM = 74; // px for the arcs
const DEEPEST = ARC_ROOM - 12, FLATTEST = 20, STEEP = 0.3; // px that arcs go down, and how much more the wider they are
const LEAST_ARC = 0.02; // weights under it have no arc
const WIDEST_ARC = 10; // px, for a weight of 1
const DREW = "attnviz.arcs"; // kept once arcs have drawn themselves in this browser
const SIZES = [[13, 18], [20, 16], [Infinity, 14]]; // px of a token's letters, by how many there are at most
const MOST_IN_LINE = 64; // tokens; of more there are chips

/** Whether arcs draw themselves now: once for a browser that keeps that they did, and whose visitor does not mind what moves. */
function drawsItself() {
  if (remembered(DREW) || matchMedia("(prefers-reduced-motion: reduce)").matches) return false;
  remember(DREW, 1);
  return remembered(DREW) !== null;
}

export class Band {
  constructor({ pick, preview, mask }) {
    Object.assign(this, { pick, preview, mask });
    this.line = make("div", "line");
    this.svg = draw("svg", { "aria-hidden": true, height: ARC_ROOM });
    this.others = make("div", "line others");
    this.scroller = make("div", "scroller", this.line, this.svg, this.others);
    this.beyond = make("div", "beyond");
    this.root = make("div", "band", this.scroller, this.beyond);
    this.line.setAttribute("role", "group");
    this.line.setAttribute("aria-label", "Tokens; select one as the query");
    this.line.onkeydown = (event) => this.press(event);
    // Only a moving pointer counts: a token that appears under a resting pointer was not hovered over on purpose.
    this.line.onmousemove = ({ target }) => target !== this.pointed && this.point((this.pointed = target));
    this.line.onmouseleave = () => {
      this.pointed = null;
      preview(null);
    };
    this.line.addEventListener("focusin", ({ target }) => {
      this.rove(target);
      if (target.matches(":focus-visible")) this.point(target);
    });
    this.line.addEventListener("focusout", () => preview(null));
    this.scroller.onscroll = () => this.tellBeyond();
    this.sizes = new ResizeObserver(() => this.scene && this.place());
    this.sizes.observe(this.root);
  }

  point(target) {
    const button = target.closest?.(".token");
    this.preview(button ? { query: Number(button.dataset.position) } : null);
  }

  draw(scene) {
    const { stage, shown, selection } = scene;
    this.root.classList.toggle("waits", !scene.whole);
    const isOther = this.scene?.stage !== stage || this.masked !== selection.query;
    if (this.scene?.stage !== stage) this.shownQuery = null;
    this.scene = scene;
    if (isOther) this.build(stage, selection.query);
    this.masked = selection.query;
    if (!scene.whole) return;
    const row = this.row(shown.query);
    const query = stage.queries.labels[shown.query];
    for (const button of this.buttons()) {
      const position = Number(button.dataset.position);
      button.classList.toggle("query", position === shown.query);
      button.setAttribute("aria-pressed", String(position === selection.query));
    }
    for (const [at, button] of this.keyButtons().entries()) {
      const share = Number.isNaN(row[at]) ? 0 : row[at];
      button.style.setProperty("--weight", Math.min(1, share));
      button.querySelector(".share").textContent = share >= 0.005 ? shareText(share) : "";
      button.setAttribute("aria-label", `token ${at}: ${this.labelOf(at)}, ${shareText(share)} of the attention of “${query}”`);
    }
    this.place();
  }

  get isLong() {
    return this.scene.stage.queries.labels.length > MOST_IN_LINE;
  }

  labelOf(at) {
    const { stage } = this.scene;
    return (stage.keys ?? stage.queries).labels[at];
  }

  row(query) {
    const { weights, keys } = this.scene.whole;
    const count = keys.labels.length;
    return weights.subarray(query * count, (query + 1) * count);
  }

  build(stage, query) {
    this.root.classList.toggle("long", this.isLong);
    this.root.classList.toggle("crossing", Boolean(stage.keys));
    const parts = stage.queries.labels.flatMap((label, position) => this.token(stage.queries, position, "query", query));
    renew(this.line, parts);
    renew(this.others, stage.keys ? stage.keys.labels.flatMap((label, position) => this.token(stage.keys, position, "key", null)) : []);
    this.rove(this.buttons()[query]);
  }

  token(side, position, of, query) {
    const button = makeButton("token", "", of === "query" ? () => this.pick({ query: position }) : null);
    button.classList.toggle("special", side.special.includes(position));
    button.classList.toggle("joined", side.joined.includes(position));
    button.dataset.position = position;
    button.disabled = of === "key";
    const label = make("bdi", "label", side.labels[position]);
    const was = side.was?.[position];
    if (was) label.append(" ", make("s", "was", was));
    button.append(make("span", "index", position), " ", label, " ", make("span", "share", ""));
    const made = [keyed(button, `${of} ${position}`)];
    if (position === query && this.mask && this.scene.stage.maskLabel && !side.special.includes(position)) made.push(this.maskButton(side, position, was));
    if (side.cut?.[position]) made.push(make("span", "cut", side.cut[position]));
    return made;
  }

  maskButton(side, position, was) {
    const { maskLabel } = this.scene.stage;
    const button = makeButton("mask", was ? "bring back" : "hide it", () => this.mask(position));
    button.title = was ? `Brings “${was}” back.` : `Puts ${maskLabel} in the place of “${side.labels[position]}”, so that the model cannot read it, and computes everything anew.`;
    button.setAttribute("aria-label", button.title);
    return keyed(button, "mask");
  }

  buttons() {
    return [...this.line.querySelectorAll(".token")];
  }

  keyButtons() {
    return [...(this.scene.stage.keys ? this.others : this.line).querySelectorAll(".token")];
  }

  /** Makes one button the line's stop of the Tab key. */
  rove(stop) {
    for (const button of this.line.querySelectorAll("button")) button.tabIndex = button === stop ? 0 : -1;
  }

  press(event) {
    const buttons = [...this.line.querySelectorAll("button")], at = buttons.indexOf(event.target);
    if (at < 0) return;
    const inRow = ({ offsetTop }) => offsetTop === event.target.offsetTop;
    const away = ({ offsetLeft }) => Math.abs(offsetLeft - event.target.offsetLeft);
    const beside = (others) => {
      const top = others.find((button) => !inRow(button))?.offsetTop;
      return others.filter(({ offsetTop }) => offsetTop === top).sort((button, other) => away(button) - away(other))[0];
    };
    const next = {
      ArrowLeft: () => buttons[at - 1],
      ArrowRight: () => buttons[at + 1],
      ArrowUp: () => beside(buttons.slice(0, at).reverse()),
      ArrowDown: () => beside(buttons.slice(at + 1)),
      Home: () => buttons[0],
      End: () => buttons.at(-1),
    }[event.key]?.();
    if (!next) return;
    event.preventDefault();
    next.focus();
  }

  /** What depends on how wide the line is: its letters, the arcs, and whether the query is in sight. */
  place() {
    if (!this.isLong) this.fit();
    if (this.scene.whole && !this.isLong) this.drawArcs();
    const { query } = this.scene.selection;
    if (this.shownQuery !== query) this.bring((this.shownQuery = query));
    this.tellBeyond();
  }

  /** The largest letters with which the line needs no scrolling; those for its number of tokens where none are small enough. */
  fit() {
    const room = this.scroller.clientWidth - 4; // its padding
    const count = this.buttons().length;
    const sizes = SIZES.filter(([most]) => count <= most).map(([, size]) => size);
    const set = (size) => this.root.style.setProperty("--size", `${size}px`);
    const fits = sizes.some((size) => (set(size), Math.max(this.line.offsetWidth, this.others.offsetWidth) <= room));
    if (!fits) set(sizes[0]);
  }

  /** Scrolls the line alone, never the page, until a token is in sight. */
  bring(position) {
    const { scroller } = this, button = this.buttons()[position];
    if (!button) return;
    const [left, top] = [button.offsetLeft, button.offsetTop];
    if (left < scroller.scrollLeft || left + button.offsetWidth > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = left - scroller.clientWidth / 2;
    if (top < scroller.scrollTop || top + button.offsetHeight > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top - scroller.clientHeight / 2;
  }

  /** Says, by a fade at its edges and for chips in words, that the line goes on. */
  tellBeyond() {
    const { scroller } = this;
    this.root.classList.toggle("from-left", scroller.scrollLeft > 2);
    this.root.classList.toggle("to-right", scroller.scrollLeft + scroller.clientWidth < scroller.scrollWidth - 2);
    const tops = this.isLong ? this.buttons().map(({ offsetTop }) => offsetTop - scroller.scrollTop) : [];
    const above = tops.filter((top) => top < 0).length, below = tops.filter((top) => top >= scroller.clientHeight).length;
    const hidden = [above && `${above} above`, below && `${below} below`].filter(Boolean);
    this.beyond.textContent = hidden.length ? `More tokens: ${hidden.join(", ")}. Scroll.` : "";
  }

  drawArcs() {
    const { stage, shown, look } = this.scene;
    const row = this.row(shown.query), keyButtons = this.keyButtons();
    const from = this.buttons()[shown.query];
    const middle = (button) => button.offsetLeft + button.offsetWidth / 2;
    const width = Math.max(this.line.scrollWidth, this.others.scrollWidth);
    put(this.svg, { width, viewBox: `0 0 ${width} ${ARC_ROOM}` });
    if (!from) return this.svg.replaceChildren();
    const start = middle(from);
    const arcs = keyButtons.map((button, key) => ({ key, end: middle(button), weight: row[key] })).filter(({ weight }) => weight >= LEAST_ARC);
    arcs.sort((arc, other) => arc.weight - other.weight);
    this.drawItself(`${shown.layer}.${shown.head} ${shown.query}`);
    return renew(
      this.svg,
      arcs.map(({ key, end, weight }) => {
        const deep = (4 / 3) * Math.min(DEEPEST, FLATTEST + STEEP * Math.abs(end - start));
        const d = stage.keys
          ? `M${start} 0C${start} ${ARC_ROOM / 2} ${end} ${ARC_ROOM / 2} ${end} ${ARC_ROOM}`
          : end === start
            ? `M${start - 6} 0C${start - 18} ${deep} ${start + 18} ${deep} ${start + 6} 0`
            : `M${start} 0C${start} ${deep} ${end} ${deep} ${end} 0`;
        const arc = draw("path", {
          ...{ d, pathLength: 1, fill: "none", stroke: look.colours.key, "stroke-linecap": "round" },
          ...{ "stroke-width": (1 + (WIDEST_ARC - 1) * weight).toFixed(2), "stroke-opacity": (0.25 + 0.65 * Math.sqrt(weight)).toFixed(2) },
          ...{ "data-key": key, "data-weight": weight.toFixed(4) },
        });
        return keyed(arc, key); // one that is drawing itself goes on when it is drawn again
      })
    );
  }

  /** The first arcs of the first visit; others, and the same once more, are there at once. */
  drawItself(shown) {
    this.drawing ??= drawsItself() ? shown : "";
    if (this.drawing !== shown) this.drawing = "";
    this.svg.classList.toggle("draws", Boolean(this.drawing));
  }

  end() {
    this.sizes.disconnect();
  }
}
