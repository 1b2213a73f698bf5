// All attention of one head: queries at the left, keys at the right, joined by lines as thick as the weights. The lines of the shown query and key
// stand out, with their numbers; those of a token under the pointer alone are drawn.

import { draw, put } from "./svg.js";
import { make, makeLive } from "./html.js";
import { measureIn, shortened, widthOf } from "./measure.js";
import { entryOf } from "./cells.js";
import { cellText, labelAt } from "./matrix.js";

const [LOWEST_ROW, HIGHEST_ROW] = [18, 34]; // px of a token
const THICKEST_LINE = 10; // px, for the largest weight
const MOST_LINES = 1000; // beside those of the pair
const MOST_AT_ONCE = 48; // tokens; of a longer text only the lines of what is selected, until another token is pointed at
const FAINTEST = 0.005; // weights under it have no line

export class Flow {
  constructor({ pick, preview }) {
    Object.assign(this, { pick, preview });
    this.svg = draw("svg", { role: "group", "aria-label": "All attention of this head: queries on the left, keys on the right" });
    this.scroll = make("div", "scroll", this.svg);
    this.live = makeLive();
    this.root = make("div", "flow", this.scroll, this.live);
    const tokenOf = (target) => target.closest?.("[data-side]");
    const point = (target) => {
      const token = tokenOf(target);
      const pointed = token ? { side: token.dataset.side, entry: Number(token.dataset.entry) } : null;
      if (pointed?.side === this.pointed?.side && pointed?.entry === this.pointed?.entry) return;
      this.pointed = pointed;
      this.drawLines();
    };
    this.svg.addEventListener("mousemove", ({ target }) => point(target));
    this.svg.addEventListener("mouseleave", () => point(this.svg));
    this.svg.addEventListener("focusin", ({ target }) => target.matches(":focus-visible") && point(target));
    this.svg.addEventListener("focusout", () => point(this.svg));
    this.svg.addEventListener("click", ({ target }) => this.take(tokenOf(target)));
    this.svg.addEventListener("keydown", (event) => this.press(event));
    this.sizes = new ResizeObserver(() => this.scene && this.build());
    this.sizes.observe(this.scroll);
  }

  take(token) {
    if (!token) return;
    const { pattern } = this.scene;
    const { side, entry } = token.dataset;
    if (side === "query") this.pick({ query: pattern.queries.positions[entry] });
    else this.pick({ key: pattern.keys.positions[entry] });
  }

  press(event) {
    const { side, entry } = event.target.dataset ?? {};
    if (!side) return;
    const to = { ArrowUp: [side, Number(entry) - 1], ArrowDown: [side, Number(entry) + 1], ArrowLeft: ["query", entry], ArrowRight: ["key", entry] }[event.key];
    if (event.key === "Enter" || event.key === " ") this.take(event.target);
    else if (!to) return;
    event.preventDefault();
    if (to) this.svg.querySelector(`[data-side="${to[0]}"][data-entry="${to[1]}"]`)?.focus();
  }

  draw(scene) {
    this.root.classList.toggle("waits", !scene.pattern);
    if (!scene.pattern) return;
    this.scene = scene;
    this.build();
  }

  build() {
    const { pattern, look } = this.scene;
    const { queries, keys } = pattern;
    const [width, height] = [this.scroll.clientWidth, this.scroll.clientHeight];
    if (!width) return;
    const longest = Math.max(queries.labels.length, keys.labels.length);
    this.row = Math.max(LOWEST_ROW, Math.min(HIGHEST_ROW, (height - 24) / longest));
    measureIn(`13px ${look.tokenFont}`);
    const room = Math.min(Math.max(...[...queries.labels, ...keys.labels].map(widthOf)) + 40, 0.3 * width);
    this.ends = [room + 8, width - room - 64];
    put(this.svg, { width: width - 2, height: 24 + longest * this.row, "font-family": look.tokenFont, "font-size": 13 });
    this.lines = draw("g", { class: "lines" });
    const title = (x, anchor, text, fill) => draw("text", { x, y: 14, "text-anchor": anchor, fill, "font-family": look.font, "font-size": 12 }, text);
    this.svg.replaceChildren(
      title(this.ends[0], "end", "query", look.colours.query),
      title(this.ends[1], "start", "key", look.colours.key_text),
      this.lines,
      ...queries.labels.map((label, entry) => this.token("query", queries, entry, room)),
      ...keys.labels.map((label, entry) => this.token("key", keys, entry, room))
    );
    this.drawLines();
  }

  yOf(entry) {
    return 24 + (entry + 0.5) * this.row;
  }

  token(side, entries, entry, room) {
    const { shown, look } = this.scene;
    const isPicked = entry === entryOf(entries, shown[side]);
    const x = side === "query" ? this.ends[0] - 6 : this.ends[1] + 6;
    const style = { "text-anchor": side === "query" ? "end" : "start", fill: isPicked ? look.colours[side === "query" ? "query" : "key_text"] : look.colours.text, "font-weight": isPicked ? 700 : 400 };
    const label = labelAt(entries.labels[entry], entries.positions[entry], 24);
    const text = draw("text", { x, y: this.yOf(entry) + 4, ...style }, shortened(label, room));
    const ground = draw("rect", { x: side === "query" ? 0 : this.ends[1], y: this.yOf(entry) - this.row / 2, width: room + (side === "key" ? 64 : 8), height: this.row, fill: "transparent" });
    return draw("g", { role: "button", "aria-label": `${side} ${label}`, "aria-pressed": isPicked, tabindex: isPicked && side === "query" ? 0 : -1, "data-side": side, "data-entry": entry }, ground, text);
  }

  /** The lines that are drawn: those of the token under the pointer alone, or all, the pair's on top. */
  drawLines() {
    const { pattern, shown, look } = this.scene;
    const { queries, keys, weights, measure } = pattern;
    const [row, column] = [entryOf(queries, shown.query), entryOf(keys, shown.key)];
    const count = keys.labels.length;
    const isLong = Math.max(queries.labels.length, count) > MOST_AT_ONCE;
    const { pointed } = this;
    let largest = 1e-9, least = Infinity;
    for (const weight of weights) {
      if (weight > largest) largest = weight;
      if (weight < least) least = weight;
    }
    const from = measure === "scores" ? least : 0, most = measure === "norms" || measure === "scores" ? largest : 1;
    const all = [];
    weights.forEach((weight, at) => {
      const share = (weight - from) / (most - from || 1);
      if (share >= FAINTEST) all.push({ query: Math.floor(at / count), key: at % count, weight, share });
    });
    const isOfPair = ({ query, key }) => (pointed ? (pointed.side === "query" ? query : key) === pointed.entry : query === row || key === column);
    const own = all.filter(isOfPair), others = pointed || isLong ? [] : all.filter((line) => !isOfPair(line));
    others.sort((line, other) => other.weight - line.weight);
    const drawn = [...others.slice(0, MOST_LINES).reverse(), ...own.sort((line, other) => line.weight - other.weight)];
    const [left, right] = this.ends, middle = (left + right) / 2;
    const lines = drawn.map((line) => {
      const [y1, y2] = [this.yOf(line.query), this.yOf(line.key)];
      const stands = isOfPair(line);
      return draw("path", { d: `M${left} ${y1}C${middle} ${y1} ${middle} ${y2} ${right} ${y2}`, fill: "none", stroke: stands ? look.colours.strong : look.colours.quiet, "stroke-width": Math.max(0.6, THICKEST_LINE * line.share).toFixed(2), "stroke-opacity": stands ? 0.75 : 0.25 });
    });
    const named = own.filter((line) => (pointed?.side === "key" ? line.key === pointed.entry : line.query === (pointed?.entry ?? row)) && line.share >= 0.01);
    const numbers = named.map((line) => {
      const isAtQuery = pointed?.side === "key";
      const place = isAtQuery ? { x: left + 4, y: this.yOf(line.query) - 3 } : { x: right - 4, y: this.yOf(line.key) - 3, "text-anchor": "end" };
      return draw("text", { ...place, fill: look.colours.text, "font-size": 12, stroke: look.colours.background, "stroke-width": 3, "paint-order": "stroke" }, cellText(line.weight, measure));
    });
    this.lines.replaceChildren(...lines, ...numbers);
    const hidden = all.length - drawn.length;
    const side = pointed && (pointed.side === "query" ? queries : keys);
    const most3 = named.slice(-3).reverse().map((line) => `${(pointed?.side === "key" ? queries : keys).labels[pointed?.side === "key" ? line.query : line.key]} ${cellText(line.weight, measure)}`);
    this.live.textContent = pointed ? `${side.labels[pointed.entry]}: ${most3.join(", ") || "no line"}` : hidden ? `${hidden.toLocaleString("en")} lines of other tokens are hidden: hover over a token or tap it for all of its lines.` : "";
  }

  end() {
    this.sizes.disconnect();
  }
}
