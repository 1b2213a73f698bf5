// All attention of one head: queries at the left, keys at the right, joined by lines as thick as the weights. The lines of the shown query stand
// out, with their numbers at its keys, and those of a token under the pointer instead; a click selects the token.
// The style is in attributes, so that the SVG can be saved unchanged.

import { draw, put } from "./svg.js";
import { make, makeLive } from "./html.js";
import { measureIn, shortened, widthOf } from "./measure.js";
import { numberText, shareText } from "./numbers.js";
import { keyed, renew } from "./renew.js";
import { entryOf } from "./cells.js";
import { cellText, labelAt } from "./matrix.js";

const FLOW_SHARE = 0.7; // of each query, the strongest keys that hold this share of its row have a line
const MOST_LINES = 2000; // MOST_LINES of attnviz/heads/flow.py
const MOST_AT_ONCE = 48; // entries a side; of more only the pair's lines are drawn, until another token is pointed at
const [LEAST_ROW, TAPPED_ROW, TALLEST_ROW] = [17, 28, 60]; // px of a token
const [LEAST_LETTERS, MOST_LETTERS] = [13, 18]; // px
const [FLOW_TOP, FLOW_END] = [26, 6]; // px above and below the rows
const WIDEST_FLOW = 12; // px of a line
const MOST_READ = 6;
const ATTENDED = { weights: "attention weight", norms: "sum of all norm-based weights", rollout: "rollout", alti: "ALTI", value_zeroing: "value zeroing" };

/** The keys of each query that together hold a share of its row, strongest first, as `above_share` of attnviz/heads/flow.py: lines
 * {query, key, weight}, the weakest first; those of one row take precedence over all others. */
export function flowLines({ weights, queries, keys }, wholeRow, share = FLOW_SHARE, most = MOST_LINES) {
  const nKey = keys.labels.length, lines = [];
  for (let query = 0; query < queries.labels.length; query++) {
    const row = weights.subarray(query * nKey, (query + 1) * nKey);
    const falling = row.filter((weight) => weight > 0).sort().reverse();
    const total = falling.reduce((sum, weight) => sum + weight, 0);
    let [held, last] = [0, 0];
    while (last < falling.length - 1 && (held += falling[last]) < share * total) last++;
    row.forEach((weight, key) => weight > 0 && weight >= falling[last] && lines.push({ query, key, weight }));
  }
  const isFirst = ({ query }) => query === wholeRow;
  lines.sort((line, other) => isFirst(other) - isFirst(line) || other.weight - line.weight);
  return lines.slice(0, most).sort((line, other) => line.weight - other.weight);
}

export class Flow {
  constructor({ pick, preview }) {
    Object.assign(this, { pick, preview });
    this.svg = draw("svg", { role: "group", "aria-label": "All attention of this head: queries on the left, keys on the right", tabindex: -1 });
    this.scroll = make("div", "scroll", this.svg);
    this.told = make("p", "told");
    this.live = makeLive();
    this.root = make("div", "flow", this.scroll, make("div", "below", this.told, this.live));
    const group = (key) => keyed(draw("g", { "pointer-events": "none" }), key);
    [this.others, this.own, this.frames] = ["others", "own", "frames"].map(group);
    this.frames.setAttribute("class", "frames"); // a saved picture leaves them out
    this.listen();
    this.sizes = new ResizeObserver(() => this.pattern && this.build());
    this.sizes.observe(this.scroll);
  }

  listen() {
    const { svg } = this;
    const tokenOf = (target) => {
      const token = target.closest?.("[data-side]");
      return token ? { side: token.dataset.side, entry: Number(token.dataset.entry) } : null;
    };
    let at = null; // what comes to lie under a pointer at rest was not pointed at
    svg.addEventListener("pointermove", ({ target, pointerType }) => pointerType === "mouse" && target !== at && this.point(tokenOf((at = target))));
    svg.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && this.point((at = null)));
    svg.addEventListener("focusin", ({ target }) => {
      if (this.isBuilding || !tokenOf(target)) return;
      this.rove(target);
      if (target.matches(":focus-visible")) this.point(tokenOf(target));
    });
    svg.addEventListener("focusout", () => this.isBuilding || this.point(at && tokenOf(at)));
    svg.addEventListener("click", (event) => this.take(tokenOf(event.target), event.pointerType === "touch"));
    svg.addEventListener("keydown", (event) => this.press(event, tokenOf(event.target)));
  }

  /** Shows the lines of one token alone, and previews a query on the whole stage. */
  point(token) {
    if (token?.side === this.pointed?.side && token?.entry === this.pointed?.entry) return;
    this.pointed = token;
    this.preview(token?.side === "query" ? { query: this.pattern.queries.positions[token.entry] } : null);
    this.drawLines();
  }

  take(token, isTapped) {
    if (!token) return isTapped && this.point(null);
    if (isTapped) this.point(token.side === "key" ? token : null);
    const { queries, keys } = this.pattern;
    return this.pick(token.side === "query" ? { query: queries.positions[token.entry] } : { key: keys.positions[token.entry] });
  }

  press(event, token) {
    if (!token) return;
    const { side, entry } = token, last = (of) => this.tokens[of].length - 1;
    const next = {
      ArrowUp: [side, Math.max(0, entry - 1)],
      ArrowDown: [side, Math.min(last(side), entry + 1)],
      Home: [side, 0],
      End: [side, last(side)],
      ArrowLeft: ["query", Math.min(entry, last("query"))],
      ArrowRight: ["key", Math.min(entry, last("key"))],
    }[event.key];
    if (event.key === "Enter" || event.key === " ") this.take(token, false);
    else if (next) this.tokens[next[0]][next[1]].focus();
    else return;
    event.preventDefault();
  }

  rove(token) {
    this.stop?.setAttribute("tabindex", -1);
    token?.setAttribute("tabindex", 0);
    this.stop = token;
  }

  draw(scene) {
    // Scores have no share of a row; the weights that they lead to do.
    const pattern = scene.pattern?.measure === "scores" ? scene.told : scene.pattern;
    this.root.classList.toggle("waits", !pattern);
    const isOther = this.text !== scene.stage.text;
    this.text = scene.stage.text;
    if (isOther) this.pointed = null;
    if (!pattern) {
      if (isOther) this.clear();
      return;
    }
    const before = this.pattern;
    const isLike = before && before.queries === pattern.queries && before.keys === pattern.keys && this.look?.colours === scene.look.colours;
    Object.assign(this, { pattern, shown: scene.shown, look: scene.look });
    const row = entryOf(pattern.queries, scene.shown.query);
    if (before !== pattern || this.row !== row) this.lines = flowLines(pattern, row);
    this.row = row;
    if (!isLike || isOther) this.build();
    else this.drawLines();
    this.bring();
  }

  /** Of another text nothing stays. */
  clear() {
    this.pattern = null;
    this.svg.replaceChildren();
    this.told.textContent = this.live.textContent = "";
  }

  /** The tokens, spread over the height that there is. */
  build() {
    const { pattern: { queries, keys }, look } = this;
    const [width, height] = [this.scroll.clientWidth, this.scroll.clientHeight];
    if (!width) return;
    const count = Math.max(queries.labels.length, keys.labels.length);
    const least = matchMedia("(pointer: coarse)").matches ? TAPPED_ROW : LEAST_ROW;
    this.pitch = Math.max(least, Math.min(TALLEST_ROW, (height - FLOW_TOP - FLOW_END) / count));
    this.letters = Math.round(Math.max(LEAST_LETTERS, Math.min(MOST_LETTERS, 0.45 * this.pitch)));
    measureIn(`700 ${this.letters}px ${look.tokenFont}`);
    const sides = { query: queries, key: keys };
    const labels = Object.fromEntries(Object.entries(sides).map(([side, of]) => [side, of.labels.map((label, entry) => labelAt(label, of.positions[entry], 24))]));
    this.labels = labels;
    this.room = Math.min(Math.max(40, ...labels.query.map(widthOf), ...labels.key.map(widthOf)) + 16, 0.32 * width);
    this.ends = { query: this.room + 4, key: width - this.room - 4 };
    const high = Math.max(FLOW_TOP + count * this.pitch + FLOW_END, 0);
    put(this.svg, { width, height: high, viewBox: `0 0 ${width} ${high}`, "font-family": look.tokenFont, "font-size": this.letters });
    const title = (side, x, anchor, fill) => draw("text", { x, y: 15, "text-anchor": anchor, fill, "font-family": look.font, "font-size": 13, "font-weight": 600 }, side);
    const titles = [title("query", this.room - 6, "end", look.colours.query), title("key", width - this.room + 6, "start", look.colours.key_text)];
    const tokens = Object.entries(labels).flatMap(([side, of]) => of.map((label, entry) => this.token(side, entry, label, width)));
    this.isBuilding = true;
    const active = () => this.svg.contains(this.svg.getRootNode().activeElement);
    const hadFocus = active();
    const drawn = renew(this.svg, [...titles, ...this.borders(sides, width), this.others, this.own, this.frames, ...tokens]);
    this.tokens = Object.fromEntries(["query", "key"].map((side) => [side, drawn.filter((part) => part.dataset.side === side)]));
    this.rove(this.tokens.query.find((token) => token === this.stop) ?? this.tokens.query[Math.max(0, this.row)]);
    if (hadFocus && !active()) this.stop.focus({ preventScroll: true });
    this.isBuilding = false;
    this.drawLines();
  }

  token(side, entry, label, width) {
    const x = side === "query" ? this.room - 6 : width - this.room + 6, top = FLOW_TOP + entry * this.pitch;
    const place = { x: side === "query" ? 0 : width - this.room, y: top, width: this.room, height: this.pitch };
    const written = draw("text", { x, y: top + this.pitch / 2 + 0.35 * this.letters, "text-anchor": side === "query" ? "end" : "start", "pointer-events": "none" }, shortened(label, this.room - 8));
    const ground = draw("rect", { class: "place", ...place, fill: "transparent" });
    return keyed(draw("g", { role: "button", tabindex: -1, "data-side": side, "data-entry": entry, "aria-label": `${side} ${label}` }, ground, written), `${side} ${entry}`);
  }

  /** Where the second text begins. */
  borders(sides, width) {
    return Object.entries(sides).flatMap(([side, { segment }]) => {
      const second = segment.findIndex((number, entry) => entry > 0 && number !== segment[entry - 1]);
      if (second < 0) return [];
      const y = FLOW_TOP + second * this.pitch;
      const [x1, x2] = side === "query" ? [0, this.room + 20] : [width - this.room - 20, width];
      return [draw("line", { class: "border", x1, x2, y1: y, y2: y, stroke: this.look.colours.quiet, "stroke-dasharray": "2 3" })];
    });
  }

  middle(entry) {
    return FLOW_TOP + (entry + 0.5) * this.pitch;
  }

  /** The token whose lines stand out: the one pointed at, or else the shown query. */
  get active() {
    if (this.pointed) return this.pointed;
    return this.row < 0 ? null : { side: "query", entry: this.row };
  }

  path(line, stands) {
    const { ends, look, pattern, shown } = this;
    const [y1, y2, half] = [this.middle(line.query), this.middle(line.key), (ends.query + ends.key) / 2];
    const strength = Math.min(1, line.weight / this.largest);
    const widest = Math.min(WIDEST_FLOW, Math.max(2.5, 0.6 * this.pitch));
    const isPair = stands && line.query === this.row && line.key === entryOf(pattern.keys, shown.key);
    return draw("path", {
      ...{ d: `M${ends.query} ${y1}C${half} ${y1} ${half} ${y2} ${ends.key} ${y2}`, fill: "none", stroke: isPair ? look.colours.picked : look.colours.strong },
      ...{ "stroke-width": Math.max(stands ? 1.5 : 0.75, widest * strength).toFixed(2), "stroke-opacity": (0.2 + 0.75 * Math.sqrt(strength)).toFixed(3) },
      ...{ "data-query": line.query, "data-key": line.key, "data-weight": line.weight.toFixed(4) },
    });
  }

  /** Everything that depends on the token whose lines stand out. */
  drawLines() {
    if (!this.tokens || !this.pattern) return;
    const { pattern, active, shown, look } = this;
    const column = entryOf(pattern.keys, shown.key);
    this.largest = pattern.measure === "norms" ? Math.max(this.lines.at(-1)?.weight ?? 0, 1e-9) : 1;
    const isOwn = (line) => active && line[active.side] === active.entry;
    const isOfPair = (line) => line.query === this.row || line.key === column;
    const isLong = Math.max(pattern.queries.labels.length, pattern.keys.labels.length) > MOST_AT_ONCE;
    const own = this.lines.filter(isOwn);
    const others = this.lines.filter((line) => !isOwn(line) && (!isLong || isOfPair(line)));
    put(this.others, { opacity: this.pointed ? 0.08 : 0.4 });
    this.others.replaceChildren(...others.map((line) => this.path(line, false)));
    this.own.replaceChildren(...own.map((line) => this.path(line, true)), ...(active ? own.map((line) => this.number(line, active.side === "query" ? "key" : "query")) : []));
    this.mark(own, column);
    const hidden = this.pointed ? 0 : this.lines.length - own.length - others.length;
    this.told.textContent = this.drawnWords(hidden);
    this.root.classList.toggle("points", Boolean(this.pointed));
    this.live.textContent = this.pointed ? this.describe(this.pointed, own) : "";
    this.frames.setAttribute("stroke", look.colours.picked);
  }

  /** The number of a line, at the end that is not the active token's. */
  number(line, side) {
    const { colours, font } = this.look;
    const text = cellText(line.weight, this.pattern.measure), y = this.middle(line[side]);
    measureIn(`13px ${font}`);
    const wide = widthOf(text) + 6, left = side === "key" ? this.ends.key - 8 - wide : this.ends.query + 8;
    const ground = draw("rect", { x: left, y: y - 8, width: wide, height: 16, fill: colours.background });
    const written = draw("text", { class: "number", x: left + wide / 2, y: y + 4.5, "text-anchor": "middle", fill: colours.text, "font-family": font, "font-size": 13, "data-of": line[side] }, text);
    return draw("g", {}, ground, written);
  }

  /** Labels in the colours of their parts, and frames around the selected query and key. */
  mark(own, column) {
    const { active, pattern, look: { colours }, room, ends } = this;
    const ofOther = new Set(active ? own.map((line) => line[active.side === "query" ? "key" : "query"]) : []);
    const picked = { query: this.row, key: column };
    for (const side of ["query", "key"]) {
      const { special } = side === "query" ? pattern.queries : pattern.keys;
      this.tokens[side].forEach((token, entry) => {
        const isActive = active?.side === side && active.entry === entry;
        const isNamed = active && active.side !== side ? ofOther.has(entry) : !special[entry];
        token.setAttribute("aria-pressed", String(entry === picked[side]));
        put(token.lastChild, { "font-weight": isActive ? 700 : 400, fill: isActive ? colours[side === "query" ? "query" : "key_text"] : isNamed ? colours.text : colours.quiet });
      });
    }
    const framed = Object.entries(picked).filter(([, entry]) => entry >= 0);
    const height = Math.min(this.pitch, 2 * this.letters + 4) - 2;
    this.frames.replaceChildren(...framed.map(([side, entry]) => draw("rect", { x: side === "query" ? 1.5 : ends.key + 5.5, y: this.middle(entry) - height / 2, width: room - 3, height, rx: 5, fill: "none", "stroke-width": 2 })));
  }

  /** What a token's lines are, in words. */
  describe({ side, entry }, own) {
    const { measure } = this.pattern, other = side === "query" ? "key" : "query";
    const strongest = own.slice(-MOST_READ).reverse().map((line) => `${this.labels[other][line[other]]} ${cellText(line.weight, measure)}`);
    if (own.length > MOST_READ) strongest.push(`${own.length - MOST_READ} weaker`);
    return `${side} ${this.labels[side][entry]} ${side === "query" ? "→" : "←"} ${strongest.join(", ") || "no line"}`;
  }

  /** Which lines are drawn, and how many are not. */
  drawnWords(hidden) {
    const { weights, measure } = this.pattern;
    let [total, count] = [0, 0];
    for (const weight of weights) if (weight > 0) [total, count] = [total + weight, count + 1];
    const held = total ? this.lines.reduce((sum, { weight }) => sum + weight, 0) / total : 0;
    const numbered = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
    const weaker = count - this.lines.length;
    const sentences = [
      `For each query, the strongest keys that hold ${Math.round(100 * FLOW_SHARE)}% of its row: ${numbered(this.lines.length, "line")}, ${shareText(held)} of the ${ATTENDED[measure]}${weaker ? `; ${numbered(weaker, "weaker one")} ${weaker === 1 ? "is" : "are"} not drawn` : ""}.`,
      hidden ? `${hidden.toLocaleString("en")} of these lines, of other queries and keys, are hidden: hover over a token or tap it for all of its lines.` : "",
      measure === "norms" ? `Thickness is relative to the largest, ${numberText(this.largest)}.` : "",
    ];
    return sentences.filter(Boolean).join(" ");
  }

  /** Scrolls the picture alone, never the page, until the selected query is in sight. */
  bring() {
    if (this.pointed || this.row < 0 || !this.pitch || this.brought === `${this.text} ${this.row}`) return;
    this.brought = `${this.text} ${this.row}`;
    const y = this.middle(this.row), { scrollTop, clientHeight } = this.scroll;
    if (y < scrollTop + this.pitch || y > scrollTop + clientHeight - this.pitch) this.scroll.scrollTop = y - clientHeight / 2;
  }

  end() {
    this.sizes.disconnect();
  }
}
