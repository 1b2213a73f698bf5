// The attention matrix of one head on a canvas: queries down, keys across, square cells. Labels, frames and the colour bar are SVG over it. It
// takes its cells through one function, so that a text of any length can stand behind it, and zooms into them.

import { draw, put } from "./svg.js";
import { make, makeButton, makeLive } from "./html.js";
import { measureIn, shortened, widthOf } from "./measure.js";
import { numberText, percentText, shareText } from "./numbers.js";
import { renew } from "./renew.js";
import { holdsShares } from "./cells.js";
import { amountText, isolated } from "./words.js";

const LETTERS = 12; // px of all text
const [ACROSS, DOWN] = [14.5, 13]; // px from one label to the next, of turned ones and of those in lines
const TURNED = Math.PI / 3; // of the labels of keys
const [LARGEST_CELL, CLOSEST_CELL] = [46, 60]; // px of a whole matrix, and as far as one zooms in
const [GAPPED, FRAMED] = [8, 9]; // px of a cell, from which cells stand apart, and frames are as large as what they frame
const MARK = 6; // px from the middle of a smaller cell to its frame
const [WIDEST_LABEL, HIGHEST_LABEL] = [150, 104]; // px
const [TITLE, BAR, LINE_BELOW] = [18, 34, 16]; // px for an axis's title, for the colour bar, and for its name where it has a line of its own
const [BAR_WIDE, BAR_LEAST] = [240, 130]; // px
const BAR_PARTS = 60;
const HATCH = 6; // px from one line of the hatching to the next
const DECADES = 4; // of logarithmic colours, LOG_DECADES of attnviz/figures/theme.py
const COUNTED_CELLS = 48; // entries a side, MOST_COUNTED of attnviz/figures/heatmap.py; of more, dragging a box zooms in
const MOST_DOTS = 192; // entries a side, MOST_DOTS of attnviz/figures/heatmap.py; of more, a small matrix has cells smaller than a pixel
const MOST_PIXELS = 4096; // a side
const [TAP, TWICE_MS, WHEEL_REST_MS] = [5, 350, 300]; // px that a press may move and still be a click; ms between two taps; ms
const CLOSER = 1.3; // a step of the zoom
const [PROFILE, PROFILE_GAP] = [34, 5]; // px of the selected row and column along the edges of a long text's matrix, and beside them
const NEAR_SIDE = 8; // px of a cell that one is brought to
const SEEN_MS = 200; // without a move, after which what is in sight is told
const MEASURES = { weights: "weight", scores: "score", norms: "norm-based weight", rollout: "rollout", alti: "ALTI", value_zeroing: "value zeroing" };
const WALKS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -Infinity], End: [0, Infinity] };

const within = (number, least, most) => Math.max(least, Math.min(most, number));

/** What scrolls around an element: the page, or a box of the host. */
function scrollerOf(element) {
  for (let around = element; around; around = around.parentElement ?? around.getRootNode().host) {
    if (around.scrollHeight > around.clientHeight && /auto|scroll/.test(getComputedStyle(around).overflowY)) return around;
  }
  return document.scrollingElement;
}

/** A label of at most so many letters: a longer one loses its middle, as `shortened` of attnviz/figures/labels.py. */
function cutLabel(label, most) {
  const letters = Array.from(label);
  const end = most > 8 ? 4 : 0;
  return letters.length <= most ? label : `${letters.slice(0, most - 1 - end).join("")}…${letters.slice(letters.length - end).join("")}`;
}

/** "door·5", short enough for an axis. */
export function labelAt(label, position, most = 14) {
  return `${isolated(cutLabel(label, most))}·${position}`;
}

/** A cell's number as it is written everywhere. */
export function cellText(number, measure) {
  if (Number.isNaN(number)) return "masked";
  return holdsShares(measure) ? shareText(number) : numberText(number);
}

/** 256 colours of a scale, as red, green and blue. */
export function tonesOf(scale) {
  const pixelAt = pixelFinder(scale);
  return Array.from({ length: 256 }, (_, tone) => channelsIn(pixelAt(tone / 255)));
}

/** Finds the colour at a share of a scale, 0 to 1: straight lines in RGB between its stops. As bytes of a pixel, in the order of
 * little-endian machines, which all browsers run on; an array for each of a million cells would take its time. */
function pixelFinder(scale) {
  const places = Float64Array.from(scale, ([place]) => place);
  const channels = Float64Array.from(scale.flatMap(([, colour]) => channelsOf(colour)));
  const last = places.length - 2;
  return (share) => {
    let at = Math.min(last, Math.floor(share * (last + 1))); // right at once where stops are evenly spaced
    while (at < last && places[at + 1] < share) at++;
    while (at > 0 && places[at] > share) at--;
    const part = (share - places[at]) / (places[at + 1] - places[at]);
    const from = 3 * at;
    const red = Math.round(channels[from] + part * (channels[from + 3] - channels[from]));
    const green = Math.round(channels[from + 1] + part * (channels[from + 4] - channels[from + 1]));
    const blue = Math.round(channels[from + 2] + part * (channels[from + 5] - channels[from + 2]));
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  };
}

function pixelOf([red, green, blue]) {
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}

function channelsIn(pixel) {
  return [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
}

function channelsOf(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

/** The largest number of each block of cells, NaN where a query may see none of them: at most so many rows and columns. */
function pooledCells({ weights, keys }) {
  const wide = keys.labels.length;
  const startsOf = (first, count, parts) => Int32Array.from({ length: parts + 1 }, (_, part) => first + Math.floor((part * count) / parts));
  return ([top, bottom], [left, right], size) => {
    const [rows, columns] = [Math.min(size.rows, bottom - top), Math.min(size.columns, right - left)];
    const [down, across] = [startsOf(top, bottom - top, rows), startsOf(left, right - left, columns)];
    const values = new Float64Array(rows * columns).fill(NaN);
    for (let part = 0; part < rows; part++) {
      for (let row = down[part]; row < down[part + 1]; row++) {
        for (let column = 0, at = part * columns; column < columns; column++, at++) {
          for (let cell = row * wide + across[column]; cell < row * wide + across[column + 1]; cell++) {
            if (!(weights[cell] <= values[at]) && weights[cell] === weights[cell]) values[at] = weights[cell];
          }
        }
      }
    }
    return { values, rows, columns };
  };
}

const endsOfPatterns = new WeakMap(); // the smallest and the largest number of each

function endsOf(pattern) {
  if (pattern.ends) return pattern.ends;
  if (!endsOfPatterns.has(pattern)) {
    let [lowest, highest] = [Infinity, -Infinity];
    for (const number of pattern.weights) {
      if (number < lowest) lowest = number;
      if (number > highest) highest = number;
    }
    endsOfPatterns.set(pattern, highest === -Infinity ? [0, 0] : [lowest, highest]);
  }
  return endsOfPatterns.get(pattern);
}

/** What the colours stand for: numbers from `lowest` to `highest`, and where one lies between them. */
function shadesOf(pattern, end, colour) {
  const isScores = pattern.measure === "scores" && !pattern.isRenormalised;
  const [smallest, largest] = endsOf(pattern);
  const highest = end ?? largest;
  const isClipped = largest > highest;
  if (colour === "logarithmic" && !isScores) {
    const power = Math.log10(Math.max(highest, 1e-30));
    const share = (number) => (number > 0 ? within(1 + (Math.log10(number) - power) / DECADES, 0, 1) : 0);
    return { lowest: 10 ** (power - DECADES), highest, isClipped, isLogarithmic: true, share };
  }
  const lowest = isScores ? smallest : 0;
  const span = Math.max(highest - lowest, 1e-9);
  return { lowest, highest, isClipped, isLogarithmic: false, share: (number) => within((number - lowest) / span, 0, 1) };
}

/** Round numbers from one to another, at most so many, with their texts. */
function roundTicks(lowest, highest, most, isShare) {
  const unit = isShare ? 100 : 1;
  const least = (unit * (highest - lowest)) / Math.max(1, most);
  if (!(least > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(least) + 1e-9);
  const step = [1, 2, 5, 10].find((times) => times * power >= least * (1 - 1e-9)) * power;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let at = Math.ceil((unit * lowest) / step - 1e-9); at * step <= unit * highest * (1 + 1e-9) + 1e-12; at++) {
    const text = digits > 4 ? numberText((at * step) / unit) : `${Math.abs(at * step).toFixed(digits)}${isShare ? "%" : ""}`;
    ticks.push({ number: (at * step) / unit, text: at < 0 && digits <= 4 ? `−${text}` : text });
  }
  return ticks;
}

/** The powers of ten between two numbers, with their texts. */
function powerTicks(lowest, highest, isShare) {
  const [first, last] = [Math.ceil(Math.log10(lowest) - 1e-9), Math.floor(Math.log10(highest) + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, at) => first + at).map((power) => {
    const isPercent = isShare && power >= -6;
    return { number: 10 ** power, text: isPercent ? `${(10 ** (power + 2)).toFixed(Math.max(0, -power - 2))}%` : numberText(10 ** power) };
  });
}

/** Which entries of an axis are labelled, and where, px: some at an even step, which give way to the marked ones; marked ones that are close
 * to each other move apart. */
function labelPlaces({ count, first, side, long, room, marked }) {
  const middle = (entry) => (entry + 0.5 - first) * side;
  const isInSight = (entry) => middle(entry) >= 0 && middle(entry) <= long;
  const always = [...new Set(marked)].filter((entry) => entry >= 0 && isInSight(entry)).sort((entry, other) => entry - other);
  const placed = always.map((entry) => ({ entry, place: middle(entry), isMarked: true }));
  for (let round = 0; round < 3; round++) {
    for (let at = 1; at < placed.length; at++) {
      const lack = room - (placed[at].place - placed[at - 1].place);
      if (lack <= 1e-6) continue;
      placed[at - 1].place -= lack / 2;
      placed[at].place += lack / 2;
    }
  }
  const step = Math.max(1, Math.ceil(room / side - 1e-6));
  const others = [];
  for (let entry = Math.ceil(Math.max(0, first - 0.5) / step) * step; entry < count && middle(entry) <= long; entry += step) {
    if (placed.every(({ place }) => Math.abs(place - middle(entry)) >= room - 1e-6)) others.push({ entry, place: middle(entry), isMarked: false });
  }
  return [...others, ...placed].sort((label, other) => label.entry - other.entry);
}

/** Paints a block of cells into pixels: `xs` and `ys` are where its columns and rows begin, and where the last one ends. */
function paintBlock({ pixels, width, height }, { values, rows, columns }, { xs, ys, gap, shades, pixelAt, ground, hatch }) {
  pixels.fill(ground);
  for (let row = 0; row < rows; row++) {
    const [top, bottom] = [ys[row], Math.min(height, ys[row + 1] - gap)];
    if (bottom <= top) continue;
    const line = top * width;
    for (let column = 0; column < columns; column++) {
      const number = values[row * columns + column];
      if (number !== number) continue; // masked
      const colour = pixelAt(shades.share(number));
      const [left, right] = [xs[column], Math.min(width, xs[column + 1] - gap)];
      for (let x = left; x < right; x++) pixels[line + x] = colour;
    }
    for (let y = top + 1; y < bottom; y++) pixels.copyWithin(y * width, line, line + width);
    if (!shades.isClipped) continue;
    for (let column = 0; column < columns; column++) {
      if (!(values[row * columns + column] > shades.highest)) continue;
      const right = Math.min(width, xs[column + 1] - gap);
      for (let y = top; y < bottom; y++) {
        for (let x = xs[column]; x < right; x++) if ((x + y) % hatch.step < hatch.wide) pixels[y * width + x] = hatch.colour;
      }
    }
  }
}

export class Matrix {
  constructor({ pick, preview, open, want, seen }) {
    Object.assign(this, { pick, preview, open, want, tellSeen: seen });
    this.canvas = make("canvas", "cells");
    this.svg = draw("svg", { "aria-hidden": true });
    this.sheet = make("div", "sheet", this.canvas, this.svg);
    this.buttons = {
      closer: makeButton("step", "+", () => this.zoom(this.at.side * CLOSER ** 2)),
      farther: makeButton("step", "−", () => this.zoom(this.at.side / CLOSER ** 2)),
      whole: makeButton("whole", "Whole matrix", () => this.zoomOut()),
    };
    this.buttons.closer.setAttribute("aria-label", "Zoom in");
    this.buttons.farther.setAttribute("aria-label", "Zoom out");
    this.zooms = make("div", "zooms", ...Object.values(this.buttons));
    this.live = makeLive();
    this.root = make("div", "matrix", this.sheet, this.zooms, this.live);
    this.sheet.tabIndex = 0;
    this.sheet.setAttribute("role", "application");
    this.sheet.setAttribute("aria-roledescription", "matrix");
    this.window = null; // what is zoomed into: its first row and column, and how large a cell is
    this.pointed = null; // what the pointer is over: {row, column}, of a label one of them
    this.walk = null; // the cell that the keyboard has come to
    this.pointers = new Map(); // that press now
    this.widths = new Map(); // of labels
    this.listen();
    this.sizes = new ResizeObserver(() => this.paint());
    this.sizes.observe(this.sheet);
  }

  listen() {
    const { sheet } = this;
    const on = (names, act, options) => names.split(" ").forEach((name) => sheet.addEventListener(name, act, options));
    on("pointerdown", (event) => this.press(event));
    on("pointermove", (event) => this.move(event));
    on("pointerup pointercancel", (event) => this.release(event));
    on("pointerleave", () => !this.held && this.point(null));
    on("click", (event) => this.click(event));
    on("dblclick", (event) => this.openAt(event));
    on("wheel", (event) => this.wheel(event), { passive: false });
    on("touchstart", (event) => event.touches.length > 1 && event.preventDefault(), { passive: false }); // two fingers zoom the matrix, not the page
    on("keydown", (event) => this.key(event));
    on("focus", () => sheet.matches(":focus-visible") && this.scene && this.walkTo(this.start()));
    on("blur", () => this.walk && this.walkTo(null));
  }

  draw(scene) {
    const { pattern } = scene;
    this.root.classList.toggle("waits", !pattern);
    this.root.classList.toggle("empty", !pattern && this.ofText !== scene.stage?.text); // of another text nothing stays
    if (!pattern) {
      this.said("…");
      return;
    }
    this.ofText = scene.stage?.text;
    const { keys, queries } = pattern;
    const tokens = JSON.stringify([scene.stage?.text, queries.positions, keys.positions]);
    if (tokens !== this.tokens) [this.window, this.walk, this.pointed, this.seen, this.sized] = [null, null, null, "", null];
    this.tokens = tokens;
    const before = this.scene;
    this.scene = scene;
    if (before?.look.scale !== scene.look.scale) this.pixelAt = pixelFinder(scene.look.scale);
    if (before?.look.tokenFont !== scene.look.tokenFont) [this.sized] = [null, this.widths.clear()];
    this.cells = scene.cells ?? pooledCells(pattern);
    this.shades = shadesOf(pattern, scene.end, scene.selection.colour);
    this.showSeen(scene.selection.seen ?? "");
    const name = `Attention matrix, ${queries.labels.length} queries down, ${keys.labels.length} keys across. Arrow keys walk through its cells, Enter selects one, and opens the selected one; plus, minus and 0 zoom.`;
    if (this.sheet.getAttribute("aria-label") !== name) this.sheet.setAttribute("aria-label", name);
    this.paint();
  }

  /** Shows what the selection says was in sight: "row.column.rows", the first row and column, and how many rows; empty for all. */
  showSeen(seen) {
    if (!this.scene.pattern.tiled || seen === this.seen) return;
    const [row, column, rows] = seen.split(".").map(Number);
    this.seen = seen;
    this.window = rows > 0 ? { row, column, rows } : null; // the side of a cell is known with the layout
  }

  /** Tells what is in sight, once it stays. */
  settleSeen() {
    if (!this.scene.pattern.tiled) return;
    clearTimeout(this.seeing);
    this.seeing = setTimeout(() => {
      const { at } = this;
      this.seen = this.window ? [at.row, at.column, at.high / at.side].map(Math.round).join(".") : "";
      this.tellSeen(this.seen);
    }, SEEN_MS);
  }

  /** Brings a cell in sight, large enough to be told from its neighbours. */
  goTo({ query, key }) {
    const { at } = this;
    const [row, column] = [this.entryOf("queries", query), this.entryOf("keys", key)];
    if (!at || row < 0 || column < 0) return;
    const side = Math.max(NEAR_SIDE, at.least, this.window?.side ?? 0);
    this.window = { side, row: row + 0.5 - at.high / side / 2, column: column + 0.5 - at.wide / side / 2 };
    this.paint();
    this.settleSeen();
  }

  /** Where it is zoomed in, brings the row of a query, or the column of a key, in sight. */
  follow({ query, key }) {
    const { at, window } = this;
    if (!window || !at) return;
    const [high, wide] = [at.high / at.side, at.wide / at.side];
    const [row, column] = [this.entryOf("queries", query ?? null), this.entryOf("keys", key ?? null)];
    const apart = (entry, first, inSight) => (entry >= 0 && (entry < first || entry >= first + inSight) ? entry - first - inSight / 2 : 0);
    const moved = apart(row, at.row, high) || apart(column, at.column, wide);
    if (!moved) return;
    Object.assign(window, { row: at.row + moved, column: at.column + moved }); // along the diagonal, where most of the weight is
    this.paint();
    this.settleSeen();
  }

  paint() {
    if (!this.scene || !this.sheet.clientWidth) return;
    this.at = this.layout();
    this.paintCells();
    this.paintAround();
    this.showZooms();
    this.tell();
  }

  // ---- where everything stands

  /** The entries' numbers that are selected, or shown in their place. A key that is not known yet is the one of before. */
  picked() {
    const { selection, shown } = this.scene;
    const isSame = shown.query === selection.query;
    if (isSame || selection.key !== null) this.kept = { query: selection.query, key: selection.key ?? shown.key };
    const key = this.kept?.query === selection.query ? this.kept.key : null;
    return { row: this.entryOf("queries", selection.query), column: this.entryOf("keys", key) };
  }

  /** The row or column of a token, which may be a part of a word; -1 where it is not shown. */
  entryOf(side, position) {
    const { positions, spans } = this.scene.pattern[side];
    const at = positions.indexOf(position);
    if (at >= 0 || !spans || position === null || position === undefined) return at;
    return spans.findIndex(([first, stop]) => first <= position && position < stop);
  }

  positions({ row, column }) {
    const { queries, keys } = this.scene.pattern;
    return { ...(row === undefined ? {} : { query: queries.positions[row] }), ...(column === undefined ? {} : { key: keys.positions[column] }) };
  }

  widthOfLabel(label) {
    if (this.widths.size > 20000) this.widths.clear();
    if (!this.widths.has(label)) this.widths.set(label, widthOf(label));
    return this.widths.get(label);
  }

  /** Whether rows end with the share of their weight that is on hidden keys. */
  hasLost() {
    const { measure, hidden } = this.scene.pattern;
    return measure !== "norms" && Boolean(hidden?.some((share) => share > 0));
  }

  /** The plot, the side of a cell, and the first row and column in sight. Sizes that depend on labels are those of all labels, so that the
   * matrix stays where it is while heads change. */
  layout() {
    const { pattern, look } = this.scene;
    const { queries, keys } = pattern;
    const [width, height] = [this.sheet.clientWidth, this.sheet.clientHeight];
    const [nRow, nColumn] = [queries.labels.length, keys.labels.length];
    measureIn(`bold ${LETTERS}px ${look.tokenFont}`);
    const widthsOf = ({ labels, positions }) => labels.map((label, at) => this.widthOfLabel(labelAt(label, positions[at])));
    this.sized ??= { rows: Math.max(0, ...widthsOf(queries)), columns: widthsOf(keys) };
    const lost = this.hasLost() ? widthOf(", under 1% hidden") : 0;
    const widest = Math.min(this.sized.rows + lost, WIDEST_LABEL + lost, (lost ? 0.42 : 0.25) * width);
    const columnWidths = this.sized.columns;
    const profile = pattern.tiled ? PROFILE + PROFILE_GAP : 0;
    const longest = Math.min(Math.max(0, ...columnWidths), Math.min(HIGHEST_LABEL, 0.3 * height) / Math.sin(TURNED), 0.25 * width);
    const left = TITLE + widest + 8, top = TITLE + longest * Math.sin(TURNED) + 12;
    const isBelow = this.barWords(true).width + BAR_LEAST + 40 > width - 4;
    const bar = BAR + (isBelow ? LINE_BELOW : 0) + profile;
    const high = Math.max(60, height - top - bar);
    const edge = 6 + profile;
    let [over, least] = [edge, 0]; // what the last labels need at the right, and the side of a cell
    for (let round = 0; round < 3; round++) {
      least = Math.max(Math.min((width - left - over) / nColumn, high / nRow, LARGEST_CELL), 60 / Math.max(nRow, nColumn));
      const beyond = columnWidths.map((wide, at) => Math.min(wide, longest) * Math.cos(TURNED) + LETTERS - (nColumn - at - 0.5) * least);
      over = beyond.reduce((most, length) => Math.max(most, length), edge);
    }
    const area = { wide: least * nColumn, high: least * nRow };
    const x = Math.round(left + Math.max(0, (width - left - over - area.wide) / 2)), y = Math.round(top);
    if (this.window?.rows) this.window.side = area.high / this.window.rows;
    const side = Math.max(least, this.window?.side ?? 0);
    const at = { width, height, x, y, profile, ...area, side, least, nRow, nColumn, widest, longest, isBelow, row: 0, column: 0 };
    if (!this.window) return at;
    at.row = this.window.row = within(this.window.row, 0, nRow - area.high / side);
    at.column = this.window.column = within(this.window.column, 0, nColumn - area.wide / side);
    return at;
  }

  xOf(column) {
    return this.at.x + (column - this.at.column) * this.at.side;
  }

  yOf(row) {
    return this.at.y + (row - this.at.row) * this.at.side;
  }

  // ---- cells

  /** Pixels of the canvas in a px of the page; more where the matrix is presented, and thereby enlarged. */
  ratio() {
    const enlarged = this.sheet.getBoundingClientRect().width / this.sheet.offsetWidth || 1;
    const ratio = (globalThis.devicePixelRatio || 1) * Math.max(1, enlarged);
    return Math.min(ratio, MOST_PIXELS / Math.max(this.at.wide, this.at.high));
  }

  paintCells() {
    const { canvas, at, scene, shades, pixelAt } = this;
    const ratio = this.ratio();
    const now = [scene.pattern, scene.cells, scene.look.scale, shades.lowest, shades.highest, shades.isLogarithmic, ...Object.values(at), ratio];
    if (this.painted?.length === now.length && now.every((part, number) => part === this.painted[number])) return;
    this.painted = now;
    const [width, height] = [at.wide, at.high].map((size) => Math.max(1, Math.round(size * ratio)));
    if (this.image?.width !== width || this.image.height !== height) {
      [canvas.width, canvas.height] = [width, height];
      this.image = new ImageData(width, height);
    }
    const place = `left:${at.x}px;top:${at.y}px;width:${at.wide}px;height:${at.high}px`;
    if (place !== this.placed) canvas.style.cssText = this.placed = place;
    const range = (first, long, count) => [Math.floor(first), Math.min(count, Math.ceil(first + long / at.side - 1e-9))];
    const [rows, columns] = [range(at.row, at.high, at.nRow), range(at.column, at.wide, at.nColumn)];
    const most = ([first, stop]) => Math.max(1, Math.round((stop - first) * at.side * ratio));
    const block = this.cells(rows, columns, { rows: most(rows), columns: most(columns) });
    const span = block.span ?? { rows, columns };
    this.pooled = block.pooled ?? Math.ceil(Math.max((span.rows[1] - span.rows[0]) / block.rows, (span.columns[1] - span.columns[0]) / block.columns));
    if (block.missing?.length) this.want(scene.pattern.tiled, block.level, block.missing);
    const edges = ([first, stop], parts, start, size) =>
      Int32Array.from({ length: parts + 1 }, (_, part) => within(Math.round((first + (part * (stop - first)) / parts - start) * at.side * ratio), 0, size));
    const { background } = scene.look.colours;
    paintBlock({ pixels: new Uint32Array(this.image.data.buffer), width, height }, block, {
      ...{ xs: edges(span.columns, block.columns, at.column, width), ys: edges(span.rows, block.rows, at.row, height), gap: at.side >= GAPPED && this.pooled === 1 ? Math.max(1, Math.round(ratio)) : 0 },
      ...{ shades, pixelAt, ground: pixelOf(channelsOf(background)) },
      hatch: { colour: pixelOf(channelsOf(background)), step: Math.round(HATCH * ratio), wide: Math.max(1, Math.round(1.2 * ratio)) },
    });
    canvas.getContext("2d").putImageData(this.image, 0, 0);
  }

  // ---- what is around them

  paintAround() {
    const { at, svg } = this;
    const { look, pattern, shown, selection } = this.scene;
    const { colours } = look;
    const picked = this.picked();
    const looked = this.walk ?? this.pointed ?? {};
    const previewed = shown.query === selection.query ? -1 : this.entryOf("queries", shown.query);
    this.setAround({ width: at.width, height: at.height, viewBox: `0 0 ${at.width} ${at.height}`, "font-family": look.font, "font-size": LETTERS, fill: colours.text });
    this.labels = {
      rows: labelPlaces({ count: at.nRow, first: at.row, side: at.side, long: at.high, room: DOWN, marked: [picked.row, previewed, looked.row ?? -1] }),
      columns: labelPlaces({ count: at.nColumn, first: at.column, side: at.side, long: at.wide, room: ACROSS, marked: [picked.column, looked.column ?? -1] }),
    };
    measureIn(`bold ${LETTERS}px ${look.tokenFont}`);
    renew(svg, [
      draw("text", { x: (at.x + at.wide / 2).toFixed(1), y: 12, "text-anchor": "middle", fill: colours.key_text ?? colours.key }, "key (token·position)"),
      draw("text", { "text-anchor": "middle", fill: colours.query, transform: `translate(${(at.x - at.widest - 12).toFixed(1)} ${(at.y + at.high / 2).toFixed(1)}) rotate(-90)` }, "query"),
      draw("g", { "font-family": look.tokenFont, class: "rows", "text-anchor": "end" }, ...this.labels.rows.map((label) => this.rowLabel(label))),
      draw("g", { "font-family": look.tokenFont, class: "columns" }, ...this.labels.columns.map((label) => this.columnLabel(label))),
      draw("rect", { x: at.x - 0.5, y: at.y - 0.5, width: at.wide + 1, height: at.high + 1, fill: "none", stroke: colours.edge, "stroke-width": 1 }),
      this.borders(pattern, colours),
      this.profiles(colours),
      this.windowEdges(pattern, colours),
      this.frames(picked, previewed, colours),
      this.renewedBar(),
    ]);
  }

  /** Attributes of the SVG; setting one that it has would have the browser lay it out again. */
  setAround(attributes) {
    const changed = Object.entries(attributes).filter(([name, value]) => this.svg.getAttribute(name) !== String(value));
    if (changed.length) put(this.svg, Object.fromEntries(changed));
  }

  /** The bar that is there, unless what it says has changed: the pointer moves often. */
  renewedBar() {
    const { at, scene, shades } = this;
    const now = [at.x, at.y, at.wide, at.high, at.width, at.isBelow, scene.look.scale, scene.look.font, scene.pattern.measure, this.barWords().text, shades.lowest, shades.highest, shades.isLogarithmic];
    const isSame = this.barred?.length === now.length && now.every((part, number) => part === this.barred[number]);
    this.barred = now;
    return (isSame && this.svg.lastChild) || this.bar();
  }

  /** A label that fits into its room: what is cut is the token, never its position. */
  fitted(label, tail, room) {
    const text = isolated(cutLabel(label, 14));
    if (this.widthOfLabel(text + tail) <= room + 0.5) return text + tail;
    return isolated(shortened(label, room - widthOf(tail))) + tail;
  }

  lookOfLabel(isMarked) {
    return isMarked ? { fill: this.scene.look.colours.picked, "font-weight": 700 } : {};
  }

  rowLabel({ entry, place, isMarked }) {
    const { queries, hidden } = this.scene.pattern;
    const lost = this.hasLost() ? `, ${percentText(hidden[entry])} hidden` : "";
    const text = this.fitted(queries.labels[entry], `·${queries.positions[entry]}${lost}`, this.at.widest);
    return draw("text", { x: this.at.x - 6, y: (this.at.y + place + 4).toFixed(1), "data-row": entry, ...this.lookOfLabel(isMarked) }, text);
  }

  columnLabel({ entry, place, isMarked }) {
    const { keys } = this.scene.pattern;
    const text = this.fitted(keys.labels[entry], `·${keys.positions[entry]}`, this.at.longest);
    const transform = `translate(${(this.at.x + place + 4).toFixed(1)} ${this.at.y - 5}) rotate(-60)`;
    return draw("text", { transform, "data-column": entry, ...this.lookOfLabel(isMarked) }, text);
  }

  /** Dotted lines where the second sentence begins. */
  borders({ queries, keys }, { quiet }) {
    const { at } = this;
    const begins = ({ segment }) => Array.from(segment ?? []).flatMap((of, entry) => (entry && of !== segment[entry - 1] ? [entry] : []));
    const down = begins(keys).map((column) => this.xOf(column)).filter((x) => x > at.x && x < at.x + at.wide);
    const across = begins(queries).map((row) => this.yOf(row)).filter((y) => y > at.y && y < at.y + at.high);
    return draw(
      "g",
      { class: "borders", stroke: quiet, "stroke-dasharray": "2 2" },
      ...down.map((x) => draw("line", { x1: x, x2: x, y1: at.y, y2: at.y + at.high })),
      ...across.map((y) => draw("line", { x1: at.x, x2: at.x + at.wide, y1: y, y2: y }))
    );
  }

  /** The selected row below the matrix and the selected column at its right, as far as they are in sight: the largest number of each px. */
  profiles({ picked, edge, quiet }) {
    const { at, shades } = this, { profiles } = this.scene;
    if (!profiles) return draw("g", {});
    const outline = (numbers, first, long, place) => {
      const points = [place(0, 0)];
      for (let px = 0; px < long; px++) {
        const [from, stop] = [Math.floor(first + px / at.side), Math.max(Math.floor(first + px / at.side) + 1, Math.ceil(first + (px + 1) / at.side))];
        let largest = 0;
        for (let entry = from; entry < Math.min(stop, numbers.length); entry++) largest = Math.max(largest, shades.share(numbers[entry]) || 0);
        points.push(place(px, largest), place(px + 1, largest));
      }
      return `M${[...points, place(long, 0)].join("L")}Z`;
    };
    const low = at.y + at.high + PROFILE_GAP, right = at.x + at.wide + PROFILE_GAP;
    const strip = (box, name, path) => draw("g", { class: name }, draw("rect", { ...box, fill: "none", stroke: edge, "stroke-width": 0.5 }), ...(path ? [draw("path", { d: path, fill: picked, "fill-opacity": 0.75 })] : []));
    const written = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
    const row = profiles.row && outline(profiles.row, at.column, Math.floor(at.wide), (px, share) => written(at.x + px, low + PROFILE * (1 - share)));
    const column = profiles.column && outline(profiles.column, at.row, Math.floor(at.high), (px, share) => written(right + PROFILE * share, at.y + px));
    return draw(
      "g",
      { class: "profiles", fill: quiet },
      strip({ x: at.x, y: low, width: at.wide, height: PROFILE }, "row-profile", row),
      strip({ x: right, y: at.y, width: PROFILE, height: at.high }, "column-profile", column)
    );
  }

  /** Lines where the window of a sliding layer ends, as far as they are in sight. */
  windowEdges({ window }, { quiet }) {
    const { at } = this;
    const [high, wide] = [at.high / at.side, at.wide / at.side];
    const edge = (apart) => {
      const [first, last] = [Math.max(at.row, at.column - apart), Math.min(at.row + high, at.column + wide - apart)];
      return first < last ? [draw("line", { x1: this.xOf(first + apart), x2: this.xOf(last + apart), y1: this.yOf(first), y2: this.yOf(last) })] : [];
    };
    const [before, after] = window ?? [0, 0];
    return draw("g", { class: "window", stroke: quiet, "stroke-dasharray": "6 4" }, ...(before ? edge(-before) : []), ...(after ? edge(after + 1) : []));
  }

  /** A frame around some cells, as far as they are in sight. One around a small cell has a size of its own. */
  frame(cells, look, isCell = false) {
    const { at } = this;
    const grown = isCell && at.side < FRAMED ? MARK - at.side / 2 : at.side < FRAMED ? 1 : 0;
    const [left, right] = [this.xOf(cells.column) - grown, this.xOf(cells.column + (cells.columns ?? 1)) + grown];
    const [top, bottom] = [this.yOf(cells.row) - grown, this.yOf(cells.row + (cells.rows ?? 1)) + grown];
    const [x, y] = [Math.max(left, at.x - grown), Math.max(top, at.y - grown)];
    const [width, height] = [Math.min(right, at.x + at.wide + grown) - x, Math.min(bottom, at.y + at.high + grown) - y];
    const isInSight = width > 2 * grown && height > 2 * grown;
    return isInSight ? [draw("rect", { x: x.toFixed(2), y: y.toFixed(2), width: width.toFixed(2), height: height.toFixed(2), ...look })] : [];
  }

  frames({ row, column }, previewed, { picked, text }) {
    const { at, walk, pointed, dragged } = this;
    const parts = [];
    if (previewed >= 0) parts.push(...this.frame({ row: previewed, column: 0, columns: at.nColumn }, { stroke: text, "stroke-width": 1, "stroke-opacity": 0.6 }));
    if (row >= 0) parts.push(...this.frame({ row, column: 0, columns: at.nColumn }, { stroke: picked, "stroke-width": 1, class: "row" }));
    if (column >= 0) parts.push(...this.frame({ row: 0, column, rows: at.nRow }, { stroke: picked, "stroke-width": 1, class: "column" }));
    if (row >= 0 && column >= 0) parts.push(...this.frame({ row, column }, { stroke: picked, "stroke-width": at.side < FRAMED ? 2 : 3, class: "picked" }, true));
    if (walk) parts.push(...this.frame(walk, { stroke: text, "stroke-width": 3, "stroke-dasharray": "4 2", class: "walk" }, true));
    else if (pointed?.row !== undefined && pointed.column !== undefined) parts.push(...this.frame(pointed, { stroke: text, "stroke-width": 1.5, class: "pointed" }, true));
    if (dragged) {
      const [x, y] = [Math.min(dragged.from.x, dragged.to.x), Math.min(dragged.from.y, dragged.to.y)];
      parts.push(draw("rect", { x, y, width: Math.abs(dragged.to.x - dragged.from.x), height: Math.abs(dragged.to.y - dragged.from.y), fill: picked, "fill-opacity": 0.15, stroke: picked, class: "box" }));
    }
    return draw("g", { class: "frames", fill: "none" }, ...parts);
  }

  /** What the colours stand for, in words; with `most` the widest that this may become, for a layout that stays. */
  barWords(most = false) {
    const { pattern, selection, look } = this.scene;
    const { isClipped, highest } = this.shades;
    const isHatched = isClipped || (most && selection.clip);
    const hatched = isHatched ? `; hatched: above ${most && !isClipped ? "99.9%" : amountText(pattern, highest)}` : "";
    const isPooled = most ? Math.max(pattern.queries.labels.length, pattern.keys.labels.length) > MOST_DOTS : this.pooled > 1;
    const kept = selection.pool === "mean" && pattern.tiled ? "mean of" : "largest in";
    const blocks = isPooled ? `; ${kept} each block of ${this.pooled ?? 2} × ${this.pooled ?? 2}` : "";
    const text = `${MEASURES[pattern.measure]}${blocks}${hatched}`;
    measureIn(`${LETTERS}px ${look.font}`);
    return { text, width: widthOf(text) };
  }

  /** The colours from the lowest to the highest number, below the matrix. */
  bar() {
    const { at, shades, pixelAt } = this;
    const { pattern, look } = this.scene;
    const { colours } = look;
    const areShares = pattern.isRenormalised || holdsShares(pattern.measure);
    const words = this.barWords();
    const swatch = shades.isClipped ? 18 : 0;
    const beside = at.isBelow ? 0 : words.width + 14, below = at.high + at.profile;
    const wide = Math.floor(within(at.wide, BAR_LEAST, Math.max(BAR_LEAST, Math.min(BAR_WIDE, at.width - beside - swatch - 24))));
    const x = Math.round(within(at.x, 12, Math.max(12, at.width - wide - swatch - beside - 4))), y = at.y + below + 7;
    const edgeOf = (part) => Math.round(x + (part * wide) / BAR_PARTS); // whole px: between others one would see the seams
    const tones = Array.from({ length: BAR_PARTS }, (_, number) => draw("rect", { x: edgeOf(number), y, width: edgeOf(number + 1) - edgeOf(number), height: 8, fill: `rgb(${channelsIn(pixelAt((number + 0.5) / BAR_PARTS))})` }));
    const ticks = shades.isLogarithmic ? powerTicks(shades.lowest, shades.highest, areShares) : roundTicks(shades.lowest, shades.highest, Math.floor(wide / 42), areShares);
    const marks = ticks.flatMap(({ number, text }) => {
      const across = (x + shades.share(number) * wide).toFixed(2);
      return [draw("line", { x1: across, x2: across, y1: y + 8, y2: y + 11, stroke: colours.quiet }), draw("text", { x: across, y: y + 22, "text-anchor": "middle" }, text)];
    });
    const place = at.isBelow ? { x: Math.min(x, Math.max(2, at.width - words.width - 2)), y: y + 38 } : { x: x + wide + swatch + 14, y: y + 9 };
    return draw("g", { class: "bar", fill: colours.text }, ...tones, draw("rect", { x, y, width: wide, height: 8, fill: "none", stroke: colours.edge, "stroke-width": 0.5 }), ...marks, ...this.swatch(x + wide + 4, y), draw("text", { ...place, fill: colours.quiet, class: "told" }, shortened(words.text, at.width - place.x)));
  }

  /** What a cell beyond the colours looks like. */
  swatch(x, y) {
    if (!this.shades.isClipped) return [];
    const { background } = this.scene.look.colours;
    const slants = [2, 6, 10].map((at) => `M${x + at} ${y + 8}l4 -8`).join("");
    return [draw("rect", { x, y, width: 14, height: 8, fill: `rgb(${channelsIn(this.pixelAt(1))})` }), draw("path", { d: slants, stroke: background, "stroke-width": 1.2, fill: "none" })];
  }

  // ---- what is said

  said(text) {
    if (this.live.textContent !== text) this.live.textContent = text;
  }

  tell() {
    const looked = this.walk ?? this.pointed ?? {};
    const isCell = looked.row !== undefined && looked.column !== undefined;
    const cell = isCell ? looked : this.picked();
    this.said(cell.row >= 0 && cell.column >= 0 ? this.words(cell) : "");
  }

  /** A cell in words: its tokens, shortened so that its number is in sight too. */
  words({ row, column }) {
    const { queries, keys } = this.scene.pattern;
    const most = within(Math.floor((this.at.width / 7 - 24) / 2), 8, 40);
    const named = ({ labels, positions }, entry) => `“${isolated(cutLabel(labels[entry], most))}”·${positions[entry]}`;
    const { pattern, selection } = this.scene;
    const { number, wide } = pattern.tiled?.cell(row, column) ?? { number: this.cells([row, row + 1], [column, column + 1], { rows: 1, columns: 1 }).values[0], wide: 1 };
    const of = wide > 1 ? `${selection.pool === "mean" ? "mean of" : "at most, in"} ${wide} × ${wide} cells here: ` : "";
    return `${named(queries, row)} → ${named(keys, column)}: ${Number.isNaN(number) ? "masked" : of + amountText(pattern, number)}`;
  }

  // ---- the pointer

  /** The cell at a place in the window, or the row or column whose label is there. */
  placeAt({ clientX, clientY }) {
    const box = this.sheet.getBoundingClientRect(), { at } = this;
    if (!at) return null;
    const enlarged = box.width / this.sheet.offsetWidth || 1;
    const [x, y] = [(clientX - box.left) / enlarged, (clientY - box.top) / enlarged];
    const [across, down] = [x - at.x, y - at.y];
    const isInRows = down >= 0 && down < at.high, isInColumns = across >= 0 && across < at.wide;
    const row = within(Math.floor(at.row + down / at.side), 0, at.nRow - 1), column = within(Math.floor(at.column + across / at.side), 0, at.nColumn - 1);
    if (isInRows && isInColumns) return { row, column, x, y };
    const labelled = (labels, place, room) => labels.find((label) => Math.abs(label.place - place) <= room / 2)?.entry;
    if (isInRows && across < 0) return { row: labelled(this.labels.rows, down, DOWN) ?? row, x, y };
    const leaning = across + down / Math.tan(TURNED); // labels begin at their column, and lean
    if (down < 0 && y > TITLE && leaning >= 0 && leaning < at.wide) {
      return { column: labelled(this.labels.columns, leaning, ACROSS) ?? Math.floor(at.column + leaning / at.side), x, y };
    }
    return null;
  }

  /** Something else is hovered over, or nothing. */
  point(place) {
    if (!this.scene || (place?.row === this.pointed?.row && place?.column === this.pointed?.column)) return;
    this.pointed = place && { row: place.row, column: place.column };
    this.sheet.classList.toggle("labelled", Boolean(place) && (place.row === undefined || place.column === undefined));
    this.look();
  }

  /** Draws what is looked at, and previews its row. */
  look() {
    this.paintAround();
    this.tell();
    const query = this.positions(this.walk ?? this.pointed ?? {}).query ?? null;
    if (query === (this.previewed ?? null)) return;
    this.previewed = query;
    this.preview(query === null ? null : { query });
  }

  press(event) {
    if (event.button || !this.scene) return;
    this.pointers.set(event.pointerId, event);
    this.byTouch = event.pointerType === "touch";
    this.moved = false;
    const [first, second] = this.pointers.values();
    if (second) {
      const middle = this.placeAt({ clientX: (first.clientX + second.clientX) / 2, clientY: (first.clientY + second.clientY) / 2 });
      this.pinched = { apart: this.apartBy(), side: this.at.side, middle };
      [this.held, this.moved] = [null, true];
      return;
    }
    this.held = { from: this.placeAt(event), x: event.clientX, y: event.clientY, row: this.at.row, column: this.at.column };
  }

  /** How far two fingers are apart. */
  apartBy() {
    const [first, second] = this.pointers.values();
    return Math.hypot(first.clientX - second.clientX, first.clientY - second.clientY);
  }

  move(event) {
    if (!this.scene || !this.at) return;
    if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, event);
    if (this.pinched) {
      if (this.pinched.middle && this.pointers.size > 1) this.zoom((this.pinched.side * this.apartBy()) / this.pinched.apart, this.pinched.middle);
    } else if (this.held) this.drag(event);
    else if (event.pointerType !== "touch") this.point(this.placeAt(event));
  }

  /** Dragging moves what is zoomed into; in the whole matrix of a long text it draws a box, but a finger scrolls the page. */
  drag(event) {
    const { held, at } = this;
    const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
    if (!this.moved && Math.hypot(dx, dy) < TAP) return;
    if (!this.moved) {
      this.moved = true;
      this.sheet.setPointerCapture(event.pointerId);
    }
    if (held.from?.row === undefined || held.from.column === undefined) return;
    if (this.window) {
      const row = held.row - dy / at.side;
      Object.assign(this.window, { row, column: held.column - dx / at.side });
      this.paint();
      this.settleSeen();
      if (this.byTouch) this.scrollOn((row - this.window.row) * at.side);
    } else if (this.drawsBox() && !this.byTouch) {
      const box = this.sheet.getBoundingClientRect(), enlarged = box.width / this.sheet.offsetWidth || 1;
      const [x, y] = [(event.clientX - box.left) / enlarged, (event.clientY - box.top) / enlarged];
      this.dragged = { from: held.from, to: { x: within(x, at.x, at.x + at.wide), y: within(y, at.y, at.y + at.high) } };
      this.paintAround();
    }
  }

  /** A finger that has come to the edge of the matrix scrolls the page on. */
  scrollOn(beyond) {
    scrollerOf(this.sheet).scrollTop += beyond - (this.held.beyond ?? 0);
    this.held.beyond = beyond;
  }

  drawsBox() {
    return Math.max(this.at.nRow, this.at.nColumn) > COUNTED_CELLS;
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) this.pinched = null;
    const { dragged } = this;
    [this.held, this.dragged] = [null, null];
    if (dragged && event.type === "pointerup") this.zoomTo(dragged);
    else if (dragged) this.paintAround();
  }

  click(event) {
    if (!this.scene || this.moved) return; // what ends a drag is no click
    const place = this.placeAt(event);
    const isSecond = this.byTouch && event.timeStamp - (this.tapped ?? -Infinity) < TWICE_MS;
    this.tapped = event.timeStamp;
    if (isSecond && this.window) {
      this.tapped = -Infinity;
      this.zoomOut();
      return;
    }
    if (!place) return;
    const chosen = this.positions(place), name = JSON.stringify(chosen);
    if (event.detail > 1 && name === this.chosen) return; // the second click of two, which open
    this.chosen = name;
    this.pick(chosen);
  }

  openAt(event) {
    const place = this.scene && !this.moved ? this.placeAt(event) : null;
    if (place?.row === undefined || place.column === undefined || (this.byTouch && this.tapped === -Infinity)) return;
    this.open(this.positions(place));
  }

  // ---- zoom

  /** Zooms so that a cell has this side, px, while the cell at a place stays there; to the whole matrix where it is small enough. */
  zoom(side, place = null) {
    const { at } = this;
    if (!at) return;
    const next = Math.min(side, this.closest());
    if (next <= at.least * 1.001) this.window = null;
    else {
      const cell = this.walk ?? this.picked();
      const isInSight = cell.row >= 0 && cell.column >= 0 && Math.abs(cell.row - at.row - at.high / at.side / 2) <= at.high / at.side / 2;
      const start = place ?? (isInSight ? { x: this.xOf(cell.column + 0.5), y: this.yOf(cell.row + 0.5) } : { x: at.x + at.wide / 2, y: at.y + at.high / 2 });
      const [x, y] = [start.x - at.x, start.y - at.y];
      this.window = { side: next, row: at.row + y / at.side - y / next, column: at.column + x / at.side - x / next };
    }
    this.paint();
    this.settleSeen();
  }

  zoomOut() {
    this.window = null;
    if (this.zooms.contains(this.root.getRootNode().activeElement)) this.sheet.focus(); // its button goes
    this.paint();
    this.settleSeen();
  }

  closest() {
    return Math.max(CLOSEST_CELL, 2 * this.at.least);
  }

  /** Zooms to a box. */
  zoomTo({ from, to }) {
    const { at } = this;
    const [across, down] = [Math.abs(to.x - from.x) / at.side, Math.abs(to.y - from.y) / at.side];
    const side = Math.min(this.closest(), at.wide / Math.max(1, across), at.high / Math.max(1, down));
    const [column, row] = [at.column + ((from.x + to.x) / 2 - at.x) / at.side, at.row + ((from.y + to.y) / 2 - at.y) / at.side];
    this.window = side > at.least * 1.001 ? { side, row: row - at.high / side / 2, column: column - at.wide / side / 2 } : null;
    this.pointed = null;
    this.paint();
    this.settleSeen();
  }

  wheel(event) {
    if (!this.scene || !this.at) return;
    const rests = event.timeStamp - (this.wheeled ?? -Infinity) < WHEEL_REST_MS; // the turn that zoomed out does not go on to scroll the page
    if (!event.ctrlKey && !this.window && !rests) return;
    const place = this.placeAt(event);
    if (place?.row === undefined || place.column === undefined) return;
    event.preventDefault();
    if (!event.ctrlKey && !this.window) return;
    const turned = event.deltaY * (event.deltaMode ? 16 : 1);
    this.zoom(this.at.side * within(2 ** (-turned / (event.ctrlKey ? 80 : 240)), 1 / 1.5, 1.5), place);
    if (!this.window) this.wheeled = event.timeStamp;
  }

  showZooms() {
    const { closer, farther, whole } = this.buttons;
    const isLong = this.drawsBox();
    this.root.classList.toggle("zoomed", Boolean(this.window));
    this.root.classList.toggle("long", isLong);
    this.zooms.hidden = !isLong && !this.window;
    whole.hidden = !this.window;
    farther.disabled = !this.window;
    closer.disabled = this.at.side >= this.closest() * 0.999;
    this.zooms.style.maxWidth = `${Math.max(68, this.at.x - 4)}px`;
  }

  // ---- the keyboard

  /** Where a walk begins. */
  start() {
    const { row, column } = this.picked();
    return { row: Math.max(0, row), column: Math.max(0, column) };
  }

  walkTo(cell) {
    this.walk = cell;
    if (cell && this.window && this.at) {
      const { at } = this;
      const inside = (entry, first, inSight) => within(first, entry + 1 - inSight, entry);
      Object.assign(this.window, { row: inside(cell.row, at.row, at.high / at.side), column: inside(cell.column, at.column, at.wide / at.side) });
      this.paint();
      this.settleSeen();
    }
    this.look();
  }

  key(event) {
    if (!this.scene || !this.at || event.ctrlKey || event.metaKey || event.altKey) return;
    const { at } = this;
    const here = this.walk ?? this.start();
    if (event.key in WALKS) {
      const [down, right] = WALKS[event.key];
      this.walkTo({ row: within(here.row + down, 0, at.nRow - 1), column: within(here.column + right, 0, at.nColumn - 1) });
    } else if (event.key === "Enter" || event.key === " ") {
      const { row, column } = this.picked();
      const isPicked = here.row === row && here.column === column;
      (isPicked ? this.open : this.pick)(this.positions(here));
    } else if (event.key === "+" || event.key === "=") this.zoom(at.side * CLOSER);
    else if (event.key === "-") this.zoom(at.side / CLOSER);
    else if (event.key === "0") this.zoomOut();
    else return;
    event.preventDefault();
  }

  /** The middle of a cell, px from the corner of the viewer; null where it is not shown. */
  placeOf({ query, key }) {
    const [row, column] = [this.entryOf("queries", query), this.entryOf("keys", key)];
    if (!this.at || row < 0 || column < 0) return null;
    const box = this.sheet.getBoundingClientRect(), around = (this.root.closest(".viewer") ?? this.root).getBoundingClientRect();
    const enlarged = box.width / this.sheet.offsetWidth || 1;
    return { x: box.left - around.left + enlarged * this.xOf(column + 0.5), y: box.top - around.top + enlarged * this.yOf(row + 0.5) };
  }

  end() {
    clearTimeout(this.seeing);
    this.sizes.disconnect();
  }
}
