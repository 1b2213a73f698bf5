// One cell, opened where it stands: the way of one number from two vectors to a weight and on to the head's output, as one picture.
// Every number is a text that attnviz/viewer/pair.py wrote. The style is in attributes, so that the SVG can be saved unchanged.

import { draw, put } from "./svg.js";
import { activeIn, make, makeButton, makeLive } from "./html.js";
import { measureIn, shortened, widthOf } from "./measure.js";

const PAIR_NARROW = 560; // px; a narrower viewer has a sheet at its bottom, a narrower picture its captions above the drawings
const PAIR_WIDTHS = [400, 700];
const PAIR_LOW = 320; // a panel that would be lower than this lies over the cell
const PAIR_AWAY = 20; // from the cell
const PAIR_GROWS_MS = 180;
const [PAIR_LETTER, PAIR_SMALL, PAIR_LINE] = [13, 12, 17]; // px, as are all sizes of the picture
const [PAIR_STRIP, PAIR_ROW, PAIR_GAP, PAIR_LABELS, PAIR_EDGE] = [32, 20, 18, 92, 14];
const PAIR_TIGHT = 100; // px for bars beside their numbers; with less they are below them
const PAIR_HINT = "Hover over or tap a bar for its numbers (keys: ← →).";

const pairClamped = (number, low, high) => Math.max(low, Math.min(high, number));

/** Texts in lines of this width, in the font that was set last. What has no spaces is parted anywhere. */
function pairLines(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (widthOf(longer) <= width) {
      lines[lines.length - 1] = longer;
      continue;
    }
    if (lines.at(-1)) lines.push("");
    for (const letter of word) {
      if (lines.at(-1) && widthOf(lines.at(-1) + letter) > width) lines.push("");
      lines[lines.length - 1] += letter;
    }
  }
  return lines;
}

/** The picture as SVG, each step below the one before. */
class PairPicture {
  constructor(data, look, width) {
    const isWide = width >= PAIR_NARROW;
    const start = isWide ? Math.min(220, 0.32 * width) + 16 : PAIR_EDGE; // of the drawings; captions are beside or above them
    const colours = { grows: look.colours.text, falls: look.colours.quiet, ...look.colours };
    Object.assign(this, { data, look, colours, width, isWide, start, at: 2, groups: [] });
    this.left = start + PAIR_LABELS;
    this.right = width - PAIR_EDGE;
    this.svg = draw("svg", { role: "img", "font-family": look.font, "font-size": PAIR_SMALL });
    this.behind = draw("g", {});
    this.svg.append(this.behind);
    const [vectors, products, score, row, weight, value, output] = data.captions;
    this.products = this.group(data.products, `dimension {}: query {} × key {} = {}`, ["query", "key", "product"]);
    this.values = this.group(data.values, `dimension {}: value {} × ${data.weight} = {}; output {}`, ["value", "value", "output"]);
    this.step(vectors, () => [0, 1].forEach((at) => this.strip(this.products, at, ["", "×"][at])));
    this.step(products, () => this.drawProducts());
    this.step(score, () => this.drawScore());
    this.step(row, () => this.drawRows());
    this.step(weight, () => this.drawWeight());
    this.step(value, () => this.drawValue());
    this.step(output, () => this.drawOutput());
    const height = Math.ceil(this.at);
    const told = data.captions.map(({ name, text }) => `${name}. ${text}`).join(" ");
    put(this.svg, { width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": told });
  }

  group(strips, told, roles) {
    const wide = (this.right - this.left) / strips.dimensions.length;
    const mark = draw("rect", { width: wide, fill: this.colours.picked, "fill-opacity": 0.25, visibility: "hidden", "pointer-events": "none" });
    const made = { strips, told, roles, wide, mark, tops: [], number: this.groups.length };
    this.groups.push(made);
    return made;
  }

  write(text, x, middle, attributes = {}) {
    const node = draw("text", { x, y: middle + 0.35 * PAIR_SMALL, fill: this.colours.text, ...attributes }, text);
    this.svg.append(node);
    return node;
  }

  // A caption and, beside or below it, what `picture` draws from `this.at` on.
  step({ name, text }, picture) {
    const top = this.at;
    measureIn(`${PAIR_LETTER}px ${this.look.font}`);
    const [x, room] = this.isWide ? [2, this.start - 20] : [this.start, this.right - this.start];
    const lines = pairLines(text, room);
    const style = { "font-size": PAIR_LETTER, fill: this.colours.text };
    [name, ...lines].forEach((line, at) => this.write(line, x, top + (at + 0.5) * PAIR_LINE, at ? style : { ...style, "font-weight": 700 }));
    const foot = top + (lines.length + 1) * PAIR_LINE;
    if (!this.isWide) this.at = foot + 5;
    picture();
    this.at = Math.max(this.at, foot) + PAIR_GAP;
  }

  // A vector as bars up and down from a line: the side shows the sign.
  strip(group, at, sign = "", over = null) {
    const { colours, left, right } = this;
    const { name, label, heights } = group.strips.strips[at];
    const role = group.roles[at];
    const edge = colours[role] ?? (role === "output" ? colours.value : colours.quiet);
    const [top, middle, most] = [this.at, this.at + PAIR_STRIP / 2, PAIR_STRIP / 2 - 2];
    group.tops.push(top);
    this.named(role === "value" && at === 1 ? ["× weight", this.data.weight] : [name, label], edge, top, sign);
    this.svg.append(draw("rect", { x: left, y: top, width: right - left, height: PAIR_STRIP, rx: 2, fill: "none", stroke: edge, "stroke-opacity": 0.6 }));
    this.svg.append(draw("line", { x1: left, x2: right, y1: middle, y2: middle, stroke: colours.edge }));
    const bars = (numbers, isFaint, thin = 0.8) =>
      numbers.forEach((number, cell) => {
        const height = Math.abs(number) * most;
        const fill = role !== "product" ? edge : number < 0 ? colours.falls : colours.grows;
        const x = left + (cell + (1 - thin) / 2) * group.wide;
        const place = { x: x.toFixed(2), y: (number < 0 ? middle : middle - height).toFixed(2), width: (thin * group.wide).toFixed(2), height: height.toFixed(2) };
        this.svg.append(draw("rect", { ...place, fill, "fill-opacity": isFaint ? 0.3 : 1 }));
      });
    bars(heights, over !== null);
    if (over) bars(over, false, 0.5);
    heights.forEach((_, cell) => {
      const place = { x: (left + cell * group.wide).toFixed(2), y: top, width: group.wide.toFixed(2), height: PAIR_STRIP };
      this.svg.append(draw("rect", { ...place, fill: "none", "pointer-events": "all", "data-group": group.number, "data-cell": cell, "data-strip": name }));
    });
    this.at = top + PAIR_STRIP + 4;
  }

  // What a strip shows and, below that, whose it is.
  named([name, label], colour, top, sign) {
    const { tokenFont } = this.look;
    const middle = top + PAIR_STRIP / 2;
    this.svg.append(draw("rect", { x: this.start + 1, y: top, width: 3, height: PAIR_STRIP, fill: colour })); // small letters need more contrast than it has
    this.write(name, this.start + 8, label ? middle - 8 : middle, { "font-weight": 700 });
    measureIn(`${PAIR_SMALL}px ${tokenFont}`);
    if (label) this.write(shortened(label, PAIR_LABELS - 28), this.start + 8, middle + 8, { "font-family": tokenFont });
    if (sign) this.write(sign, this.left - 11, middle, { "text-anchor": "middle", "font-size": 16 });
  }

  drawProducts() {
    const { data, colours } = this;
    this.strip(this.products, 2, "=");
    const foot = this.at;
    const x = this.left + (data.largest + 0.5) * this.products.wide;
    this.svg.append(draw("path", { d: `M${x.toFixed(2)} ${foot - 2}l4 7h-8z`, fill: colours.text }));
    const { texts } = data.products.strips[2];
    const name = `largest: ${texts[data.largest]}`;
    measureIn(`${PAIR_SMALL}px ${this.look.font}`);
    const half = widthOf(name) / 2;
    this.write(name, pairClamped(x, this.left + half, this.right - half), foot + 14, { "text-anchor": "middle" });
    const bracket = foot + 25;
    this.line(`M${this.right} ${bracket - 4}V${bracket}H${this.left}V${bracket - 4}`);
    this.from = { x: this.left, y: bracket };
    this.at = bracket + 2;
  }

  // The line on which the number goes, on the left of the drawings, where no text is.
  line(d) {
    const style = { fill: "none", stroke: this.colours.picked, "stroke-width": 1.5, "stroke-linejoin": "round" };
    this.behind.append(draw("path", { d, ...style, ...(this.isOff ? { "stroke-dasharray": "3 3" } : {}) }));
  }

  // From where the number was down to what stands at x.
  goOn(x, y) {
    this.line(`M${this.from.x} ${this.from.y}H${this.start - 8}V${y}H${x}`);
    this.svg.append(draw("path", { d: `M${x} ${y}l-6 -4v8z`, fill: this.colours.picked }));
  }

  // The products are added up, and the score goes on to its row.
  drawScore() {
    const [first, last] = this.equation(this.data.score, this.left);
    this.goOn(first.x - 4, this.at + 10);
    this.isOff = this.data.isMasked; // what would come of it is not used
    this.at += 42;
    const x = last.x + last.wide / 2;
    this.line(`M${x} ${this.at - 2}V${this.at + 4}`);
    this.from = { x, y: this.at + 4 };
  }

  // Numbers with signs between them and names below; gives where the first and the last stand.
  equation(pieces, from, { last = 16, until = null } = {}) {
    const { tokenFont } = this.look;
    const boxes = pieces.map(({ sign, text, name }, at) => {
      const size = at === pieces.length - 1 ? last : PAIR_LETTER;
      measureIn(`${at === pieces.length - 1 ? 700 : 400} ${size}px ${tokenFont}`);
      const number = widthOf(text);
      measureIn(`${PAIR_SMALL}px ${this.look.font}`);
      return { sign, text, name, size, wide: Math.max(number, widthOf(name)) + 4 };
    });
    const gap = pairClamped((this.right - from - boxes.reduce((sum, { wide }) => sum + wide, 0)) / boxes.length, 12, 24);
    const long = boxes.reduce((sum, { wide }) => sum + wide, 0) + gap * (boxes.length - 1);
    let x = until === null ? Math.max(this.start, Math.min(from, this.right - long)) : Math.max(this.start, until - long);
    const middle = this.at + Math.max(10, last / 2);
    boxes.forEach((box, at) => {
      if (at) this.write(box.sign, x + gap / 2, middle, { "text-anchor": "middle", "font-size": 15 });
      box.x = x += at ? gap : 0;
      const isLast = at === boxes.length - 1;
      const style = { "text-anchor": "middle", "font-family": tokenFont, "font-size": box.size, "font-weight": isLast ? 700 : 400 };
      this.write(box.text, x + box.wide / 2, middle + (box.size - PAIR_SMALL) * 0.1, style);
      this.write(box.name, x + box.wide / 2, middle + box.size / 2 + 11, { "text-anchor": "middle", fill: this.colours.quiet });
      x += box.wide;
    });
    return [boxes[0], boxes.at(-1)];
  }

  // Where the columns of the row's table are: numbers end at these places, and bars lie from one place to another.
  columns() {
    const { data: { rows, exponentials, total }, left, right } = this;
    measureIn(`700 ${PAIR_SMALL}px ${this.look.tokenFont}`);
    const widest = (name, sum = "") => Math.max(widthOf(sum), ...rows.map((row) => widthOf(row[name]))) + 2;
    const [first, second, third] = [widest("scoreText"), widest("exponentialText", exponentials), widest("weightText", total)];
    const room = right - left - first - second - third;
    if (room < PAIR_TIGHT) {
      const more = Math.max(0, room - 24) / 3;
      const [score, exponential] = [left + first + more, right - 4 - third - more - 10];
      return { isTight: true, score, scoreBars: [left, score], exponential, weight: right - 4, weightBars: [exponential + 10, right - 4] };
    }
    const score = left + first;
    const exponential = score + 0.45 * (room - 34) + 16 + second;
    const weight = exponential + 10 + third;
    return { isTight: false, score, scoreBars: [score + 8, score + 8 + 0.45 * (room - 34)], exponential, weight, weightBars: [weight + 6, right - 4] };
  }

  drawRows() {
    const { data, colours } = this;
    const columns = this.columns();
    const head = { "text-anchor": "end", fill: colours.quiet };
    measureIn(`${PAIR_SMALL}px ${this.look.font}`);
    const formula = "e^(score − largest)";
    const power = widthOf(formula) < columns.exponential - columns.score - 6 ? formula : "exponential";
    [["score", columns.score], [power, columns.exponential], ["weight", columns.weight]].forEach(([name, x]) => this.write(name, x, this.at + 8, head));
    this.at += PAIR_ROW;
    const scores = data.rows.map(({ score }) => score ?? 0);
    const [low, high] = [Math.min(0, ...scores), Math.max(0, ...scores)];
    const lengths = {
      high: PAIR_ROW + (columns.isTight ? 6 : 0),
      score: (columns.scoreBars[1] - columns.scoreBars[0]) / (high - low || 1),
      weight: (columns.weightBars[1] - columns.weightBars[0]) / (Math.max(...data.rows.map(({ weight }) => weight)) || 1),
    };
    const zero = columns.scoreBars[0] - low * lengths.score;
    const top = this.at;
    for (const row of data.rows) {
      if (row.isPicked) this.follow(lengths.high);
      this.drawRow(row, columns, zero, lengths);
    }
    if (!columns.isTight) this.svg.append(draw("line", { x1: zero, x2: zero, y1: top, y2: this.at, stroke: colours.edge }));
    this.svg.append(draw("line", { x1: this.start, x2: this.right, y1: this.at + 1, y2: this.at + 1, stroke: colours.quiet }));
    const sums = [["sum", this.start + 6, {}], [data.exponentials, columns.exponential, this.digits()], [data.total, columns.weight, this.digits()]];
    sums.forEach(([text, x, style]) => this.write(text, x, this.at + 2 + PAIR_ROW / 2, style));
    this.at += PAIR_ROW + 4;
  }

  digits() {
    return { "text-anchor": "end", "font-family": this.look.tokenFont };
  }

  drawRow(row, columns, zero, lengths) {
    const { colours } = this;
    const middle = this.at + PAIR_ROW / 2;
    const weight = row.isPicked ? 700 : 400;
    const quiet = { fill: row.isSpecial && !row.isPicked ? colours.quiet : colours.text };
    measureIn(`${weight} ${PAIR_SMALL}px ${this.look.tokenFont}`);
    const style = { ...quiet, "font-family": this.look.tokenFont, "font-weight": weight };
    this.write(shortened(row.label, PAIR_LABELS - 18), this.start + 6, middle, style);
    this.write(row.scoreText, columns.score, middle, { ...this.digits(), fill: row.score === null ? colours.quiet : colours.text });
    this.write(row.exponentialText, columns.exponential, middle, this.digits());
    this.write(row.weightText, columns.weight, middle, { ...this.digits(), "font-weight": weight });
    const [top, high] = columns.isTight ? [middle + 7, 5] : [this.at + 4, PAIR_ROW - 8];
    const bar = (x, width, fill) => this.svg.append(draw("rect", { x: x.toFixed(2), y: top, width: width.toFixed(2), height: high, fill }));
    const score = (row.score ?? 0) * lengths.score;
    bar(zero + Math.min(0, score), Math.abs(score), row.isPicked ? colours.picked : colours.quiet);
    bar(columns.weightBars[0], row.weight * lengths.weight, row.isPicked ? colours.picked : colours.strong);
    this.at += lengths.high;
  }

  // The score comes to its row, and goes on at the row's other end.
  follow(high) {
    const { start, right } = this;
    const frame = { x: start + 1, y: this.at + 1, width: right - start - 1, height: high - 2, rx: 4, fill: "none", stroke: this.colours.picked };
    const y = this.at + high / 2;
    this.goOn(start + 1, y);
    this.isOff = false;
    this.svg.append(draw("rect", frame));
    this.from = { x: right, y };
  }

  drawWeight() {
    const { data, right } = this;
    const because = data.isMasked ? { sign: "", text: "masked", name: "may not be seen" } : { sign: "", text: "replaced", name: "by you" };
    const pieces = [...(data.softmax.length ? data.softmax : [because]), { sign: "=", text: data.weight, name: `weight: ${data.weightShare}` }];
    const top = this.at;
    const [, last] = this.equation(pieces, this.left, { last: 26, until: right - 16 });
    const edge = right + 8;
    const middle = top + 13;
    this.line(`M${this.from.x} ${this.from.y}H${edge}V${middle}H${last.x + last.wide + 2}`);
    this.from = { x: edge, y: middle };
    this.at = top + 54;
  }

  drawValue() {
    this.strip(this.values, 0);
    const middle = this.at + PAIR_STRIP / 2;
    this.strip(this.values, 1);
    this.line(`M${this.from.x} ${this.from.y}V${middle}H${this.right + 1}`);
  }

  drawOutput() {
    const { data } = this;
    this.strip(this.values, 2, "", data.part);
    for (const { mark } of this.groups) this.svg.append(mark);
  }

  /** Marks a dimension in all strips that have it; gives its numbers in words. */
  read(group, cell) {
    for (const { mark } of this.groups) mark.setAttribute("visibility", "hidden");
    const { strips, told, tops, mark, wide } = this.groups[group];
    const y = Math.min(...tops);
    put(mark, { x: this.left + cell * wide, y, height: Math.max(...tops) + PAIR_STRIP - y, visibility: "visible" });
    const texts = [strips.dimensions[cell], ...strips.strips.map((strip) => strip.texts[cell])];
    return told.replace(/\{\}/g, () => texts.shift());
  }
}

/** The panel over the cell. */
export class Pair {
  /** @param close what the host does once the visitor has closed it. */
  constructor({ close }) {
    this.close = close;
    this.root = make("div", "pair");
    this.root.setAttribute("role", "dialog");
    this.root.tabIndex = -1;
    this.title = make("p", "pair-title");
    this.shutter = makeButton("pair-close", "✕", () => this.leave());
    this.shutter.setAttribute("aria-label", "Close");
    this.screen = make("div", "pair-screen");
    this.screen.tabIndex = 0;
    this.screen.setAttribute("role", "group");
    this.live = makeLive();
    this.live.classList.add("pair-live");
    this.root.append(make("div", "pair-head", this.title, this.shutter), this.screen, this.live);
    this.screen.addEventListener("keydown", (event) => this.press(event));
    let pointed = null; // what comes to lie under a pointer at rest was not pointed at
    this.screen.addEventListener("pointermove", ({ target }) => target !== pointed && this.read((pointed = target).dataset));
    this.screen.addEventListener("click", ({ target }) => this.read(target.dataset));
    this.outside = (event) => !event.composedPath().includes(this.root) && this.leave();
    this.escape = (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.leave();
    };
    this.sizes = new ResizeObserver(() => this.fit());
  }

  /** Opens it over its parent; `from` is where the cell is in that, in px. */
  show(data, look, from) {
    Object.assign(this, { data, look, from });
    this.before = activeIn(this.root.getRootNode());
    this.root.setAttribute("aria-label", data.name);
    this.screen.setAttribute("aria-label", "The picture; left and right arrow keys read its numbers");
    this.title.textContent = data.name;
    this.live.textContent = PAIR_HINT;
    this.build();
    const { ownerDocument } = this.root;
    ownerDocument.addEventListener("pointerdown", this.outside, true);
    ownerDocument.addEventListener("keydown", this.escape, true);
    this.sizes.observe(this.around());
    this.grow();
    this.root.focus({ preventScroll: true });
  }

  /** Draws it in other colours. */
  dress(look) {
    this.look = look;
    this.build();
  }

  /** What it is placed in. */
  around() {
    return this.root.offsetParent ?? this.root.parentElement;
  }

  fit() {
    if (this.around()?.clientWidth !== this.wide) this.build();
  }

  build() {
    const around = this.around();
    this.wide = around.clientWidth;
    const place = this.placeIn(around);
    Object.assign(this.root.style, { width: `${place.width}px`, maxHeight: `${place.most}px` });
    this.root.classList.toggle("pair-sheet", place.isSheet);
    const padding = 24;
    this.picture = new PairPicture(this.data, this.look, Math.max(280, this.screen.clientWidth - padding));
    this.screen.replaceChildren(this.picture.svg);
    this.cell = null;
    const [left, top] = [place.left, place.top(this.root.offsetHeight)];
    Object.assign(this.root.style, { left: `${left}px`, top: `${top}px`, transformOrigin: `${this.from.x - left}px ${this.from.y - top}px` });
  }

  // Beside the cell, whose label is at the other side; else below or above its row; else over it. A sheet where there is little room.
  placeIn(around) {
    const { x, y } = this.from;
    const box = around.getBoundingClientRect();
    const high = this.root.ownerDocument.defaultView.innerHeight;
    const [first, last] = [Math.max(0, -box.top) + 8, high - box.top - 8]; // what of it is in the window
    const within = (top, height) => Math.max(first, Math.min(top, last - height));
    if (box.width < PAIR_NARROW) {
      const foot = Math.max(Math.min(box.height, last), first + PAIR_LOW);
      return { isSheet: true, left: 0, width: box.width, most: 0.72 * (last - first), top: (height) => Math.max(0, foot - height) };
    }
    const beside = box.width - x - PAIR_AWAY;
    if (beside >= PAIR_WIDTHS[0]) {
      const width = Math.min(PAIR_WIDTHS[1], beside);
      return { left: x + PAIR_AWAY, width, most: last - first, top: (height) => within(y - 3 * PAIR_AWAY, height) };
    }
    const width = Math.min(PAIR_WIDTHS[1], box.width);
    const left = pairClamped(x - width / 2, 0, box.width - width);
    const [below, above] = [last - y - PAIR_AWAY, y - PAIR_AWAY - first];
    if (Math.max(below, above) < PAIR_LOW) return { left, width, most: last - first, top: (height) => within(y, height) };
    if (below >= above) return { left, width, most: below, top: () => y + PAIR_AWAY };
    return { left, width, most: above, top: (height) => y - PAIR_AWAY - height };
  }

  grow() {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    this.root.animate([{ transform: "scale(0.1)", opacity: 0 }, { transform: "none", opacity: 1 }], { duration: PAIR_GROWS_MS, easing: "ease-out" });
  }

  press(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation(); // the viewer's arrow keys go elsewhere
    const cells = this.picture.groups.flatMap(({ strips }, group) => strips.dimensions.map((_, cell) => ({ group, cell })));
    const at = cells.findIndex(({ group, cell }) => this.cell?.group === group && this.cell.cell === cell);
    this.read(cells[at < 0 ? this.data.largest : (at + by + cells.length) % cells.length]);
    this.picture.groups[this.cell.group].mark.scrollIntoView({ block: "nearest" });
  }

  read({ group, cell }) {
    if (cell === undefined) return;
    this.cell = { group: Number(group), cell: Number(cell) };
    this.live.textContent = this.picture.read(this.cell.group, this.cell.cell);
  }

  /** The visitor closes it. */
  leave() {
    this.end();
    this.close();
  }

  /** Takes it away; the focus goes back to where it was, if it is still here. */
  end() {
    const { ownerDocument } = this.root;
    ownerDocument.removeEventListener("pointerdown", this.outside, true);
    ownerDocument.removeEventListener("keydown", this.escape, true);
    this.sizes.disconnect();
    const hasFocus = this.root.contains(activeIn(this.root.getRootNode()));
    this.root.remove();
    if (hasFocus && this.before?.isConnected) this.before.focus({ preventScroll: true });
  }
}
