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
const LEAST_WRITTEN = 0.005; // weights under it have no number below their token

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
    const hint = (side, sign) => {
      const more = make("span", `more ${side}`, sign);
      more.setAttribute("aria-hidden", "true");
      return more;
    };
    this.root = make("div", "band", this.scroller, hint("before", "‹"), hint("after", "›"), this.beyond);
    this.line.setAttribute("role", "group");
    this.line.setAttribute("aria-label", "Tokens; select one as the query");
    this.line.onkeydown = (event) => this.press(event);
    // Only a moving pointer counts: a token that appears under a resting pointer was not hovered over on purpose.
    this.line.onpointermove = ({ target, pointerType }) => pointerType !== "touch" && target !== this.pointed && this.point((this.pointed = target));
    this.line.onpointerleave = () => {
      this.pointed = null;
      preview(null);
    };
    this.line.addEventListener("focusin", ({ target }) => {
      this.rove(target);
      if (target.matches(":focus-visible")) this.point(target);
    });
    this.line.addEventListener("focusout", () => this.point(this.pointed ?? this.line));
    this.scroller.onscroll = () => this.tellBeyond();
    this.sizes = new ResizeObserver(() => this.resized());
    for (const part of [this.root, this.line, this.others]) this.sizes.observe(part); // a font that comes late widens a line
  }

  point(target) {
    const button = target.closest?.(".token");
    this.preview(button ? { query: Number(button.dataset.position) } : null);
  }

  draw(scene) {
    const { stage, shown, selection, whole } = scene;
    const isOther = this.scene?.stage !== stage, before = this.scene?.whole;
    this.scene = scene;
    this.root.classList.toggle("waits", !whole);
    if (isOther || this.selected !== selection.query) this.build(isOther);
    if (!whole) return; // what was drawn last stays, dimmed
    if (isOther || this.query !== shown.query) this.markQuery();
    if (isOther || before !== whole || this.written !== shown.query) this.write();
    this.drawArcs();
  }

  /** Frames the shown query, previewed or not. */
  markQuery() {
    const { shown } = this.scene;
    this.tokens.forEach((button, position) => button.classList.toggle("query", position === shown.query));
    this.query = shown.query; // its letters are bold; a line that is wider for it is measured again
  }

  /** What the shown query gives to each key, as tone and as number. */
  write() {
    const { stage, shown } = this.scene;
    const row = this.row(shown.query), { labels } = stage.keys ?? stage.queries;
    const query = stage.queries.labels[shown.query];
    this.written = shown.query;
    this.keys.forEach((button, position) => {
      const share = row[position];
      button.style.setProperty("--weight", Math.min(1, share || 0).toFixed(4));
      button.lastChild.textContent = share >= LEAST_WRITTEN ? shareText(share).replace("over ", ">") : "";
      const given = Number.isNaN(share) ? `not seen by “${query}”` : `${shareText(share)} of the attention of “${query}”`;
      button.setAttribute("aria-label", `token ${position}: ${labels[position]}, ${given}`);
      button.title = [`${labels[position]}: ${given}`, this.meaning(stage.keys ?? stage.queries, position)].filter(Boolean).join(". ");
    });
  }

  get isLong() {
    const { queries, keys } = this.scene.stage;
    return Math.max(queries.labels.length, keys?.labels.length ?? 0) > MOST_IN_LINE;
  }

  row(query) {
    const { weights, keys } = this.scene.whole;
    const count = keys.labels.length;
    return weights.subarray(query * count, (query + 1) * count);
  }

  /** The tokens, with what belongs to the selected one. Of another text nothing stays. */
  build(isOther) {
    const { stage, selection, shown } = this.scene;
    this.selected = selection.query;
    this.root.classList.toggle("long", this.isLong);
    this.root.classList.toggle("crossing", Boolean(stage.keys));
    if (isOther) {
      this.svg.replaceChildren();
      this.svg.classList.remove("draws");
      for (const line of [this.line, this.others]) line.replaceChildren();
    }
    const lineOf = (side, of) => side.labels.flatMap((_, position) => this.token(side, position, of));
    renew(this.line, lineOf(stage.queries, "query"));
    renew(this.others, stage.keys ? lineOf(stage.keys, "key") : []);
    this.tokens = [...this.line.querySelectorAll(".token")];
    this.keys = stage.keys ? [...this.others.querySelectorAll(".token")] : this.tokens;
    this.tokens.forEach((button, position) => button.setAttribute("aria-pressed", String(position === selection.query)));
    this.query = this.written = null; // new elements have neither frame nor numbers
    if (!this.line.contains(this.root.getRootNode().activeElement)) this.rove(this.tokens[selection.query]);
    else this.rove(this.root.getRootNode().activeElement);
    this.tokens[shown.query]?.classList.add("query");
    this.place();
    this.bring(selection.query);
  }

  token(side, position, of) {
    const isQuery = of === "query", was = side.was?.[position], cut = side.cut?.[position];
    const button = makeButton("token", "", isQuery ? () => this.pick({ query: position }) : null);
    button.classList.toggle("special", side.special.includes(position));
    button.classList.toggle("joined", side.joined.includes(position));
    button.dataset.position = position;
    button.disabled = !isQuery;
    button.title = this.meaning(side, position);
    const label = make("bdi", "label", side.labels[position]);
    if (side.pictures?.length) label.prepend(Object.assign(make("img", "picture"), { src: side.pictures[position], alt: "" }));
    if (was) label.append(" ", make("s", "was", was));
    button.append(make("span", "index", position), " ", label, " ", make("span", "share", ""));
    const made = [keyed(button, `${of} ${position}`)];
    const isMaskable = isQuery && this.mask && this.scene.stage.maskLabel && !side.special.includes(position);
    if (isMaskable && position === this.scene.selection.query) made.push(this.maskButton(side.labels[position], position, was));
    if (cut) made.push(make("span", "cut", cut));
    return made;
  }

  /** What a special token is; nothing of another. */
  meaning({ special }, position) {
    return special.includes(position) ? this.scene.stage.specialMeans : "";
  }

  /** The button that puts the mask token in the place of the selected one, or brings that back; it says which. */
  maskButton(label, position, was) {
    const { maskLabel } = this.scene.stage;
    const [does, what] = was ? ["bring back", was] : ["replace with", maskLabel];
    const button = makeButton("mask", make("span", "", does), () => this.mask(position));
    button.append(" ", make("bdi", "what", what));
    button.title = was
      ? `Brings “${was}” back and computes everything again.`
      : `Puts ${maskLabel} in the place of “${label}”, so that the model cannot read it, and computes everything again: what depends on it changes.`;
    return keyed(button, `mask ${position}`);
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

  /** What depends on how wide the line is: its letters, and where the tokens are. */
  place() {
    if (!this.isLong) this.fit();
    this.measure();
    this.tellBeyond();
  }

  resized() {
    if (!this.scene || !this.root.clientWidth) return;
    this.place();
    if (this.scene.whole) this.drawArcs();
    if (this.width !== this.scroller.clientWidth) this.bring(this.scene.selection.query);
    this.width = this.scroller.clientWidth;
  }

  /** Where arcs begin and end; kept, since reading it makes a browser lay out the page. */
  measure() {
    if (this.isLong) return;
    const middle = (button) => button.offsetLeft - this.line.offsetLeft + button.offsetWidth / 2;
    this.middles = this.tokens.map(middle);
    this.ends = this.scene.stage.keys ? this.keys.map(middle) : this.middles;
    this.wide = Math.max(this.line.scrollWidth, this.others.scrollWidth);
  }

  /** The largest letters with which the line needs no scrolling; those for its number of tokens where none are small enough. */
  fit() {
    const room = this.scroller.clientWidth - 4; // its padding
    const sizes = SIZES.filter(([most]) => this.tokens.length <= most).map(([, size]) => size);
    const set = (size) => this.root.style.setProperty("--size", `${size}px`);
    const fits = sizes.some((size) => (set(size), Math.max(this.line.offsetWidth, this.others.offsetWidth) <= room));
    if (!fits) set(sizes[0]);
  }

  /** Scrolls the line alone, never the page, until a token is in sight. */
  bring(position) {
    const { scroller } = this, button = this.tokens[position];
    if (!button) return;
    const [left, top] = [button.offsetLeft, button.offsetTop];
    if (left < scroller.scrollLeft || left + button.offsetWidth > scroller.scrollLeft + scroller.clientWidth) scroller.scrollLeft = left - scroller.clientWidth / 2;
    if (top < scroller.scrollTop || top + button.offsetHeight > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top - scroller.clientHeight / 2;
  }

  /** Says, by a fade at its edges and for chips in words, that the line goes on. */
  tellBeyond() {
    const { scroller } = this;
    this.root.classList.toggle("goes-before", scroller.scrollLeft > 2);
    this.root.classList.toggle("goes-after", scroller.scrollLeft + scroller.clientWidth < scroller.scrollWidth - 2);
    const tops = this.isLong ? this.tokens.map(({ offsetTop }) => offsetTop - scroller.scrollTop) : [];
    const above = tops.filter((top) => top < 0).length, below = tops.filter((top) => top >= scroller.clientHeight).length;
    const hidden = [above && `${above} above`, below && `${below} below`].filter(Boolean);
    this.beyond.textContent = hidden.length ? `More tokens: ${hidden.join(", ")}. Scroll.` : "";
  }

  drawArcs() {
    if (this.isLong) return;
    const { stage, shown, look } = this.scene;
    const row = this.row(shown.query), start = this.middles[shown.query];
    put(this.svg, { width: this.wide, viewBox: `0 0 ${this.wide} ${ARC_ROOM}` });
    const arcs = this.ends.map((end, key) => ({ key, end, weight: row[key] })).filter(({ weight }) => weight >= LEAST_ARC);
    arcs.sort((arc, other) => arc.weight - other.weight);
    this.drawItself(`${shown.layer}.${shown.head} ${shown.query}`);
    renew(
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
