// The attention matrix of one head on a canvas: queries down, keys across, square cells. Labels, frames and the colour bar are SVG over it. It
// takes its cells through one function, so that a text of any length can stand behind it, and zooms into them.

import { draw, put } from "./svg.js";
import { make, makeButton, makeLive } from "./html.js";
import { measureIn, shortened, widthOf } from "./measure.js";
import { entryOf } from "./cells.js";
import { numberText, percentText, shareText } from "./numbers.js";

const [LETTERS, LABEL] = [12, 15]; // px of a label, and of the room that it takes across its line
const TURNED = Math.PI / 3; // of the labels of keys
const [LARGEST_CELL, GAPPED, MARKED] = [46, 8, 9]; // px: of a cell; from which cells stand apart, and clipped ones have a mark
const [WIDEST_LABEL, HIGHEST_LABELS] = [150, 104]; // px
const [TITLE, BAR] = [18, 42]; // px for the title of an axis, and for the colour bar below
const DECADES = 4; // of logarithmic colours, LOG_DECADES of attnviz/figures/theme.py
const FRAMED = 48; // entries a side up to which rows and columns are framed; above, dragging a box zooms in
const [CLOSER, CLOSEST] = [1.3, 40]; // px a cell: a step of the zoom, and where it ends
const TAP = 5; // px that a press may move and still be a click
const MEASURES = { weights: "weight", scores: "score", norms: "norm-based weight", rollout: "rollout" };

/** "door·5", short enough for an axis: a long label loses its middle. */
export function labelAt(label, position, most = 14) {
  const text = label.length <= most ? label : `${label.slice(0, most - 5)}…${label.slice(-4)}`;
  return `${text}·${position}`;
}

/** A cell's number as it is written everywhere. */
export function cellText(number, measure) {
  if (Number.isNaN(number)) return "not seen";
  return measure === "weights" || measure === "rollout" ? shareText(number) : numberText(number);
}

/** 256 colours between the stops of a scale, as red, green and blue. */
export function tonesOf(scale) {
  const stops = scale.map(([place, colour]) => [place, [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16))]);
  return Array.from({ length: 256 }, (_, tone) => {
    const at = tone / 255;
    const next = Math.max(1, stops.findIndex(([place]) => place >= at));
    const [[from, first], [to, last]] = [stops[next - 1], stops[next]];
    const share = (at - from) / (to - from);
    return first.map((channel, index) => Math.round(channel + share * (last[index] - channel)));
  });
}

/** The largest number of each block of cells, NaN where a query may see none of them: at most so many rows and columns. */
function pooledCells(weights, nColumns) {
  return ([top, bottom], [left, right], { rows, columns }) => {
    const [nRow, nColumn] = [Math.min(rows, bottom - top), Math.min(columns, right - left)];
    const values = new Float64Array(nRow * nColumn).fill(NaN);
    for (let row = top; row < bottom; row++) {
      const start = Math.floor(((row - top) * nRow) / (bottom - top)) * nColumn;
      for (let column = left; column < right; column++) {
        const at = start + Math.floor(((column - left) * nColumn) / (right - left));
        const value = weights[row * nColumns + column];
        if (!(values[at] >= value) && !Number.isNaN(value)) values[at] = value;
      }
    }
    return { values, rows: nRow, columns: nColumn };
  };
}

export class Matrix {
  constructor({ pick, preview, open }) {
    Object.assign(this, { pick, preview, open });
    this.canvas = make("canvas", "cells");
    this.svg = draw("svg", { "aria-hidden": true });
    this.sheet = make("div", "sheet", this.canvas, this.svg);
    this.whole = makeButton("whole", "Whole matrix", () => this.zoom(null));
    this.whole.hidden = true;
    this.live = makeLive();
    this.root = make("div", "matrix", this.sheet, this.whole, this.live);
    this.sheet.tabIndex = 0;
    this.sheet.setAttribute("role", "application");
    this.window = null; // what is zoomed into: its first row and column, and how large a cell is
    this.listen();
    this.sizes = new ResizeObserver(() => this.scene && this.paint());
    this.sizes.observe(this.sheet);
  }

  listen() {
    const { sheet } = this;
    sheet.addEventListener("pointerdown", (event) => this.press(event));
    sheet.addEventListener("pointermove", (event) => this.move(event));
    sheet.addEventListener("pointerup", (event) => this.release(event));
    sheet.addEventListener("pointercancel", () => (this.held = null));
    sheet.addEventListener("pointerleave", () => this.point(null));
    sheet.addEventListener("dblclick", (event) => this.openAt(this.placeAt(event)));
    sheet.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    sheet.addEventListener("keydown", (event) => this.key(event));
    sheet.addEventListener("blur", () => this.walkTo(null));
  }

  draw(scene) {
    const isOther = this.scene?.stage !== scene.stage;
    if (!scene.pattern) {
      this.root.classList.add("waits");
      return;
    }
    this.root.classList.remove("waits");
    const { keys, queries } = scene.pattern;
    const size = `${queries.labels.length} ${keys.labels.length}`;
    if (isOther || size !== this.size) [this.window, this.walk] = [null, null];
    this.size = size;
    this.scene = scene;
    if (this.look !== scene.look.scale) [this.look, this.tones] = [scene.look.scale, tonesOf(scene.look.scale)];
    const name = `Attention matrix, ${queries.labels.length} queries down, ${keys.labels.length} keys across. Arrow keys walk through its cells, Enter selects one, and opens a selected one.`;
    this.sheet.setAttribute("aria-label", name);
    this.paint();
  }

  /** Where everything stands: the plot, the size of a cell, and the first row and column in sight. */
  layout() {
    const { pattern, look } = this.scene;
    const { queries, keys } = pattern;
    const [width, height] = [this.sheet.clientWidth, this.sheet.clientHeight];
    measureIn(`${LETTERS}px ${look.tokenFont}`);
    const lost = pattern.measure !== "norms" && pattern.hidden.some((share) => share > 0);
    this.rowLabels = queries.labels.map((label, at) => labelAt(label, queries.positions[at]) + (lost ? `, ${percentText(pattern.hidden[at])} hidden` : ""));
    this.columnLabels = keys.labels.map((label, at) => labelAt(label, keys.positions[at]));
    const widest = Math.min(Math.max(...this.rowLabels.map(widthOf)), lost ? 2 * WIDEST_LABEL : WIDEST_LABEL, 0.4 * width);
    const longest = Math.min(Math.max(...this.columnLabels.map(widthOf)), HIGHEST_LABELS / Math.sin(TURNED));
    const left = TITLE + widest + 6, top = TITLE + longest * Math.sin(TURNED) + 10;
    const over = Math.min(60, Math.cos(TURNED) * longest); // what the last label needs at the right
    const [nRow, nColumn] = [queries.labels.length, keys.labels.length];
    const room = [width - left - over, height - top - BAR];
    const least = Math.max(0.5, Math.min(room[0] / nColumn, room[1] / nRow, LARGEST_CELL));
    const [wide, high] = [least * nColumn, least * nRow];
    const x = left + Math.max(0, (room[0] - wide) / 2);
    const side = Math.max(least, this.window?.side ?? 0);
    const inSight = [high / side, wide / side];
    const first = [
      Math.min(Math.max(0, this.window?.row ?? 0), nRow - inSight[0]),
      Math.min(Math.max(0, this.window?.column ?? 0), nColumn - inSight[1]),
    ];
    if (this.window) [this.window.row, this.window.column] = first;
    return { width, height, x, y: top, wide, high, side, least, nRow, nColumn, row: first[0], column: first[1], widest, longest };
  }

  paint() {
    if (!this.sheet.clientWidth) return;
    this.at = this.layout();
    this.whole.hidden = !this.window;
    this.paintCells();
    this.paintAround();
  }

  /** The ends of the colours, and where a number lies between them, 0 to 1. */
  colours() {
    const { pattern, end, selection } = this.scene;
    const { weights, measure } = pattern;
    let [lowest, highest] = [Infinity, -Infinity];
    for (const weight of weights) {
      if (weight < lowest) lowest = weight;
      if (weight > highest) highest = weight;
    }
    if (measure !== "scores") lowest = 0;
    if (!Number.isFinite(highest)) [lowest, highest] = [0, 1];
    if (selection.colour === "logarithmic" && measure !== "scores") {
      const power = Math.log10(Math.max(highest, 1e-30));
      return { lowest: 10 ** (power - DECADES), highest, isLogarithmic: true, of: (value) => (value > 0 ? (Math.log10(value) - power) / DECADES + 1 : 0) };
    }
    const last = Math.max(end ?? highest, lowest + 1e-9);
    return { lowest, highest: last, largest: highest, isClipped: last < highest, of: (value) => (value - lowest) / (last - lowest) };
  }

  paintCells() {
    const { canvas, at } = this;
    const ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [at.wide, at.high].map((size) => Math.max(1, Math.round(size * ratio)));
    canvas.style.cssText = `left:${at.x}px;top:${at.y}px;width:${at.wide}px;height:${at.high}px`;
    const pen = canvas.getContext("2d");
    const rows = [Math.floor(at.row), Math.min(at.nRow, Math.ceil(at.row + at.high / at.side))];
    const columns = [Math.floor(at.column), Math.min(at.nColumn, Math.ceil(at.column + at.wide / at.side))];
    const cellsOf = this.scene.cells ?? pooledCells(this.scene.pattern.weights, at.nColumn);
    const most = { rows: Math.ceil((rows[1] - rows[0]) * at.side * ratio), columns: Math.ceil((columns[1] - columns[0]) * at.side * ratio) };
    const block = cellsOf(rows, columns, most);
    this.shades = this.colours();
    const sizes = { across: ((columns[1] - columns[0]) * at.side) / block.columns, down: ((rows[1] - rows[0]) * at.side) / block.rows };
    const from = { x: (columns[0] - at.column) * at.side, y: (rows[0] - at.row) * at.side };
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (at.side < GAPPED / 2) this.paintImage(pen, block, sizes, from);
    else this.paintSquares(pen, block, sizes, from);
  }

  toneOf(value) {
    return this.tones[Math.round(255 * Math.min(1, Math.max(0, this.shades.of(value))))];
  }

  paintImage(pen, { values, rows, columns }, { across, down }, { x, y }) {
    const image = new ImageData(columns, rows);
    values.forEach((value, at) => {
      if (!Number.isNaN(value)) image.data.set([...this.toneOf(value), 255], 4 * at);
    });
    const picture = make("canvas", "");
    [picture.width, picture.height] = [columns, rows];
    picture.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(picture, x, y, across * columns, down * rows);
  }

  paintSquares(pen, { values, rows, columns }, { across, down }, from) {
    const gap = this.at.side >= GAPPED ? 1 : 0;
    const { isClipped, highest } = this.shades;
    pen.lineWidth = 1.5;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const value = values[row * columns + column];
        if (Number.isNaN(value)) continue;
        const [x, y] = [from.x + column * across, from.y + row * down];
        pen.fillStyle = `rgb(${this.toneOf(value)})`;
        pen.fillRect(x, y, across - gap, down - gap);
        if (!isClipped || value <= highest || across < MARKED) continue;
        pen.strokeStyle = this.scene.look.colours.background; // a mark: the colours end below this number
        pen.beginPath();
        for (const share of [0.35, 0.75]) {
          pen.moveTo(x, y + share * down);
          pen.lineTo(x + share * across, y);
        }
        pen.moveTo(x + 0.25 * across, y + down);
        pen.lineTo(x + across, y + 0.25 * down);
        pen.stroke();
      }
    }
  }

  xOf(column) {
    return this.at.x + (column - this.at.column) * this.at.side;
  }

  yOf(row) {
    return this.at.y + (row - this.at.row) * this.at.side;
  }

  rowOf(position) {
    return entryOf(this.scene.pattern.queries, position);
  }

  columnOf(position) {
    return entryOf(this.scene.pattern.keys, position);
  }

  /** Labels, frames, borders and the colour bar. */
  paintAround() {
    const { at, svg } = this;
    const { look, shown, pattern } = this.scene;
    const { colours } = look;
    const [row, column] = [this.rowOf(shown.query), this.columnOf(shown.key)];
    const mark = this.walk ?? this.pointed;
    put(svg, { width: at.width, height: at.height, viewBox: `0 0 ${at.width} ${at.height}`, "font-family": look.font, "font-size": LETTERS });
    const titles = [
      draw("text", { x: at.x + at.wide / 2, y: 12, "text-anchor": "middle", fill: colours.key }, "key (token·position)"),
      draw("text", { x: 0, y: 0, "text-anchor": "middle", fill: colours.query, transform: `translate(${at.x - at.widest - 10} ${at.y + at.high / 2}) rotate(-90)` }, "query"),
    ];
    const labels = [...this.labelsDown([row, mark?.row]), ...this.labelsAcross([column, mark?.column])];
    svg.replaceChildren(...titles, draw("g", { "font-family": look.tokenFont }, ...labels), ...this.borders(pattern, colours), this.frames(row, column, colours), ...this.bar(colours));
  }

  /** Which entries of an axis are labelled: all where there is room, else some at even distances; those that are marked always. */
  labelled(count, first, inSight, marked) {
    const { side } = this.at;
    const step = Math.max(1, Math.ceil(LABEL / side));
    const always = marked.filter((entry) => entry >= 0);
    const isFree = (entry) => always.every((other) => other === entry || Math.abs(other - entry) * side >= LABEL);
    return Array.from({ length: count }, (_, entry) => entry).filter((entry) => {
      const isInSight = entry + 0.5 >= first && entry + 0.5 <= first + inSight;
      return isInSight && (always.includes(entry) || (entry % step === 0 && isFree(entry)));
    });
  }

  labelsDown([picked, marked]) {
    const { at } = this;
    const { colours } = this.scene.look;
    measureIn(`${LETTERS}px ${this.scene.look.tokenFont}`);
    return this.labelled(at.nRow, at.row, at.high / at.side, [picked, marked]).map((row) => {
      const isPicked = row === picked;
      const look = { "text-anchor": "end", fill: isPicked ? colours.query : colours.text, "font-weight": isPicked ? 700 : 400 };
      return draw("text", { x: at.x - 6, y: this.yOf(row + 0.5) + 4, ...look, "data-row": row }, shortened(this.rowLabels[row], at.widest));
    });
  }

  labelsAcross([picked, marked]) {
    const { at } = this;
    const { colours } = this.scene.look;
    return this.labelled(at.nColumn, at.column, at.wide / at.side, [picked, marked]).map((column) => {
      const isPicked = column === picked;
      const look = { fill: isPicked ? colours.key_text : colours.text, "font-weight": isPicked ? 700 : 400, "data-column": column };
      const place = `translate(${this.xOf(column + 0.5) + 4} ${at.y - 6}) rotate(${(-180 * TURNED) / Math.PI})`;
      return draw("text", { x: 0, y: 0, transform: place, ...look }, shortened(this.columnLabels[column], at.longest));
    });
  }

  borders({ queries, keys }, { quiet }) {
    const { at } = this;
    const line = { stroke: quiet, "stroke-dasharray": "2 2" };
    const begins = ({ segment }) => segment.flatMap((of, entry) => (entry && of !== segment[entry - 1] ? [entry] : []));
    const down = begins(keys).map((column) => [this.xOf(column), at.y, this.xOf(column), at.y + at.high]);
    const across = begins(queries).map((row) => [at.x, this.yOf(row), at.x + at.wide, this.yOf(row)]);
    const isInSight = ([x, y]) => x >= at.x && y >= at.y && x <= at.x + at.wide && y <= at.y + at.high;
    return [...down, ...across].filter(isInSight).map(([x1, y1, x2, y2]) => draw("line", { x1, y1, x2, y2, ...line }));
  }

  /** What frames the selected row and cell, and the cell under the pointer or the keyboard. */
  frames(row, column, { picked, quiet }) {
    const { at } = this;
    const group = draw("g", { class: "frames", fill: "none" });
    const box = (top, left, down, across, look) => {
      const [x, y] = [Math.max(at.x, this.xOf(left)), Math.max(at.y, this.yOf(top))];
      const [right, bottom] = [Math.min(at.x + at.wide, this.xOf(left + across)), Math.min(at.y + at.high, this.yOf(top + down))];
      if (right > x && bottom > y) group.append(draw("rect", { x, y, width: right - x, height: bottom - y, ...look }));
    };
    const isLarge = Math.max(at.nRow, at.nColumn) <= FRAMED || at.side >= GAPPED;
    if (row >= 0 && isLarge) box(row, 0, 1, at.nColumn, { stroke: picked, "stroke-width": 1 });
    if (row >= 0 && column >= 0) {
      if (isLarge) box(row, column, 1, 1, { stroke: picked, "stroke-width": 3, class: "picked" });
      else group.append(draw("rect", { x: this.xOf(column + 0.5) - 6, y: this.yOf(row + 0.5) - 6, width: 12, height: 12, stroke: picked, "stroke-width": 2, class: "picked" }));
    }
    if (this.walk) box(this.walk.row, this.walk.column, 1, 1, { stroke: picked, "stroke-width": 2, "stroke-dasharray": "3 2" });
    else if (this.pointed) box(this.pointed.row, this.pointed.column, 1, 1, { stroke: quiet, "stroke-width": 1.5 });
    if (this.dragged) {
      const { from, to } = this.dragged;
      const [x, y] = [Math.min(from.x, to.x), Math.min(from.y, to.y)];
      group.append(draw("rect", { x, y, width: Math.abs(to.x - from.x), height: Math.abs(to.y - from.y), stroke: picked, "stroke-dasharray": "4 3" }));
    }
    return group;
  }

  /** The colours from their lowest to their highest number, with what they stand for and whether numbers lie beyond. */
  bar({ text, quiet, edge }) {
    const { at, tones, shades, scene } = this;
    const { measure } = scene.pattern;
    const wide = Math.min(at.wide, 260), y = at.y + at.high + 10;
    const x = at.x;
    const stops = Array.from({ length: 17 }, (_, part) => draw("stop", { offset: part / 16, "stop-color": `rgb(${tones[Math.round((255 * part) / 16)]})` }));
    const gradient = draw("linearGradient", { id: "matrix-scale" }, ...stops);
    const parts = shades.isLogarithmic ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1];
    const numberAt = (part) => (shades.isLogarithmic ? 10 ** (Math.log10(shades.highest) + DECADES * (part - 1)) : shades.lowest + part * (shades.highest - shades.lowest));
    const ticks = parts.map((part) => draw("text", { x: x + part * wide, y: y + 22, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle", fill: text }, part === 0 && !shades.lowest ? "0" : cellText(numberAt(part), measure)));
    const told = `${MEASURES[measure]}${shades.isClipped ? `; hatched: above ${cellText(shades.highest, measure)}, up to ${cellText(shades.largest, measure)}` : ""}`;
    const rect = draw("rect", { x, y, width: wide, height: 8, fill: "url(#matrix-scale)", stroke: edge, "stroke-width": 0.5 });
    measureIn(`${LETTERS}px ${scene.look.font}`);
    const isBeside = widthOf(told) < at.width - x - wide - 12;
    const place = isBeside ? { x: x + wide + 12, y: y + 8 } : { x, y: y + 38 };
    return [draw("defs", {}, gradient), rect, ...ticks, draw("text", { ...place, fill: quiet, class: "told" }, shortened(told, at.width - place.x))];
  }

  /** The cell at a place in the window, or the row or column whose label is there. */
  placeAt({ clientX, clientY }) {
    const box = this.sheet.getBoundingClientRect(), { at } = this;
    const scale = box.width / this.sheet.clientWidth || 1; // what is presented is enlarged
    const [x, y] = [(clientX - box.left) / scale, (clientY - box.top) / scale];
    const row = Math.floor(at.row + (y - at.y) / at.side), column = Math.floor(at.column + (x - at.x) / at.side);
    const isInRows = y >= at.y && y < at.y + at.high, isInColumns = x >= at.x && x < at.x + at.wide;
    if (isInRows && isInColumns) return { row, column, x, y };
    if (isInRows && x < at.x) return { row, x, y };
    if (y < at.y && y > TITLE) {
      const slanted = Math.floor(at.column + (x - at.x - (at.y - y) / Math.tan(TURNED)) / at.side);
      if (slanted >= 0 && slanted < at.nColumn) return { column: slanted, x, y };
    }
    return null;
  }

  positions({ row, column }) {
    const { queries, keys } = this.scene.pattern;
    return { query: queries.positions[row], key: keys.positions[column] };
  }

  /** What a cell says: its tokens and its number. */
  words({ row, column }) {
    const { pattern } = this.scene;
    const value = pattern.weights[row * pattern.keys.labels.length + column];
    const [query, key] = [labelAt(pattern.queries.labels[row], pattern.queries.positions[row], 40), labelAt(pattern.keys.labels[column], pattern.keys.positions[column], 40)];
    return `${query} → ${key}: ${cellText(value, pattern.measure)}`;
  }

  point(place) {
    const isSame = place?.row === this.pointed?.row && place?.column === this.pointed?.column;
    if (isSame || !this.scene) return;
    const wasRow = this.pointed?.row;
    this.pointed = place && place.row !== undefined && place.column !== undefined ? { row: place.row, column: place.column } : null;
    this.live.textContent = this.pointed ? this.words(this.pointed) : "";
    if (wasRow !== this.pointed?.row) this.preview(this.pointed ? { query: this.positions(this.pointed).query } : null);
    else this.paintAround();
  }

  press(event) {
    if (event.button || !this.scene) return;
    this.held = { from: this.placeAt(event), x: event.clientX, y: event.clientY, row: this.at.row, column: this.at.column };
  }

  move(event) {
    if (!this.scene) return;
    const { held } = this;
    if (!held || event.pointerType === "touch") {
      if (event.pointerType !== "touch") this.point(this.placeAt(event));
      return;
    }
    const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
    if (Math.hypot(dx, dy) < TAP && !held.moved) return;
    held.moved = true;
    if (this.window) {
      Object.assign(this.window, { row: held.row - dy / this.at.side, column: held.column - dx / this.at.side });
      this.paint();
    } else if (Math.max(this.at.nRow, this.at.nColumn) > FRAMED && held.from) {
      this.dragged = { from: held.from, to: this.placeAt(event) ?? held.from };
      this.paintAround();
    }
  }

  release(event) {
    const { held, dragged } = this;
    [this.held, this.dragged] = [null, null];
    if (!held || !this.scene) return;
    if (dragged) return this.zoomTo(dragged);
    if (held.moved) return;
    const place = this.placeAt(event);
    if (!place) return;
    const { query, key } = this.positions(place);
    if (place.column === undefined) this.pick({ query });
    else if (place.row === undefined) this.pick({ key });
    else this.pick({ query, key });
  }

  openAt(place) {
    if (place?.row !== undefined && place.column !== undefined) this.open(this.positions(place));
  }

  /** Zooms so that a cell has this side, px, with a place in the window held; to the whole matrix with null. */
  zoom(side, place = null) {
    const { at } = this;
    if (side === null || side <= at.least) this.window = null;
    else {
      const [x, y] = place ? [place.x - at.x, place.y - at.y] : [at.wide / 2, at.high / 2];
      const [row, column] = [at.row + y / at.side, at.column + x / at.side];
      const next = Math.min(side, Math.max(CLOSEST, at.least));
      this.window = { side: next, row: row - y / next, column: column - x / next };
    }
    this.paint();
  }

  zoomTo({ from, to }) {
    const { at } = this;
    const across = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y)) / at.side;
    if (across < 1) return;
    const row = at.row + (Math.min(from.y, to.y) - at.y) / at.side, column = at.column + (Math.min(from.x, to.x) - at.x) / at.side;
    this.window = { side: Math.min(CLOSEST, Math.min(at.wide, at.high) / across), row, column };
    this.paint();
  }

  wheel(event) {
    if (!event.ctrlKey && !this.window) return; // the page scrolls
    const place = this.placeAt(event);
    if (!place || place.row === undefined || place.column === undefined) return;
    event.preventDefault();
    if (event.ctrlKey) this.zoom(this.at.side * (event.deltaY < 0 ? CLOSER : 1 / CLOSER), place);
    else {
      this.window.row += event.deltaY / this.at.side;
      this.window.column += event.deltaX / this.at.side;
      this.paint();
    }
  }

  walkTo(cell) {
    this.walk = cell;
    if (!this.scene) return;
    if (cell && this.window) {
      const { at } = this;
      const inside = (entry, first, inSight) => Math.min(Math.max(first, entry + 1 - inSight), entry);
      this.window.row = inside(cell.row, at.row, at.high / at.side);
      this.window.column = inside(cell.column, at.column, at.wide / at.side);
      this.at = this.layout();
      this.paintCells();
    }
    this.live.textContent = cell ? this.words(cell) : "";
    this.paintAround();
  }

  key(event) {
    if (!this.scene || event.ctrlKey || event.metaKey || event.altKey) return;
    const { at } = this;
    const { shown, selection } = this.scene;
    const here = this.walk ?? { row: Math.max(0, this.rowOf(shown.query)), column: Math.max(0, this.columnOf(shown.key)) };
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -Infinity], End: [0, Infinity] };
    const within = (entry, count) => Math.min(Math.max(0, entry), count - 1);
    if (event.key in steps) {
      const [down, right] = steps[event.key];
      this.walkTo({ row: within(here.row + down, at.nRow), column: within(here.column + right, at.nColumn) });
    } else if (event.key === "Enter" || event.key === " ") {
      const { query, key } = this.positions(here);
      if (query === selection.query && key === selection.key) this.open({ query, key });
      else this.pick({ query, key });
    } else if (event.key === "+") this.zoom(at.side * CLOSER);
    else if (event.key === "-") this.zoom(at.side / CLOSER);
    else if (event.key === "0") this.zoom(null);
    else return;
    event.preventDefault();
  }

  /** The middle of a cell, in the window's coordinates. */
  placeOf({ query, key }) {
    const box = this.sheet.getBoundingClientRect();
    return { x: box.left + this.xOf(this.columnOf(key) + 0.5), y: box.top + this.yOf(this.rowOf(query) + 0.5) };
  }

  end() {
    this.sizes.disconnect();
  }
}
