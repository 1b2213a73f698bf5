// All heads as small pictures of their weights, layer 0 on top, drawn once for each text on one canvas; over it a grid that can be walked with
// the arrow keys. Hovering over a head previews it on the whole stage, a click selects it; that only moves a frame.

import { draw, put } from "./svg.js";
import { make, makeButton, makeLive } from "./html.js";
import { setStop, walkAmong } from "./rove.js";
import { tonesOf } from "./matrix.js";

const [AT_LEFT, AT_TOP] = [34, 34]; // px, for the numbers of layers and heads
const [SMALLEST_SIDE, LARGEST_SIDE, SPACE] = [10, 30, 2]; // px of a picture, and between two
const EASY_SIDE = 14; // px; where pictures would be smaller, the heads of a layer stand in several lines if that makes them larger
const TAPPED_SIDE = 24; // px, where a finger points: WCAG 2.2, success criterion 2.5.8
const HIGHEST_SHEET = 512; // px, unless a finger points
const NUMBERED_SIDE = 16; // px of an empty cell with room for its number

/** The heads in order: layer by layer. */
function headsOf({ counts }) {
  return counts.flatMap((count, layer) => Array.from({ length: count }, (_, head) => ({ layer, head })));
}

/** Where the colours of a head's picture end, as `attnviz.heads.facts.colour_end` has it; at its largest weight if nothing is clipped. */
function pictureEnd({ queries, keys }, weights, clip) {
  const nKey = (keys ?? queries).labels.length;
  const [rowsAside, columnsAside] = [new Set(queries.special), new Set((keys ?? queries).resting)];
  let [largest, ordinary, sum, at] = [0, -1, 0, 0];
  for (let row = 0; row < queries.labels.length; row++) {
    const isAside = rowsAside.has(row);
    for (let column = 0; column < nKey; column++, at++) {
      const weight = weights[at] || 0; // what cannot be seen has none
      sum += weight;
      if (weight > largest) largest = weight;
      if (weight > ordinary && !isAside && !columnsAside.has(column)) ordinary = weight;
    }
  }
  if (!clip || ordinary < 0) return largest || 1;
  return Math.min(largest, Math.max(ordinary, sum / weights.length)) || 1;
}

export class Heads {
  constructor({ pick, preview, cellsOf }) {
    Object.assign(this, { pick, preview, cellsOf });
    this.canvas = make("canvas", "");
    this.svg = draw("svg", { role: "grid", "aria-label": "All heads; hover over one to preview it, click to select it" });
    this.sheet = make("div", "sheet", make("div", "over", this.canvas, this.svg));
    this.frame = draw("rect", { class: "frame", fill: "none", "stroke-width": 3, "pointer-events": "none" });
    const step = (name, sign, by) => {
      const button = makeButton("step", sign, () => this.step(by));
      button.setAttribute("aria-label", `${name} head`);
      button.title = `${name} head (key ${by < 0 ? "[" : "]"})`;
      return button;
    };
    this.name = make("span", "name");
    this.live = makeLive();
    this.note = make("p", "note");
    const steps = [step("Previous", "‹", -1), step("Next", "›", 1)];
    setStop(steps);
    const line = make("div", "steps", steps[0], this.name, steps[1]);
    line.onkeydown = (event) => walkAmong(steps, event);
    this.root = make("section", "heads", line, this.sheet, this.live, this.note);
    this.root.setAttribute("aria-label", "All heads");
    this.listen();
    this.sizes = new ResizeObserver(() => this.scene && this.sheet.clientWidth !== this.width && this.build());
    this.sizes.observe(this.sheet);
  }

  listen() {
    const { svg } = this;
    const placeOf = (target) => {
      const cell = target.closest?.("[role=gridcell]");
      return cell ? { layer: Number(cell.dataset.layer), head: Number(cell.dataset.head) } : null;
    };
    const tell = (place) => {
      this.pointed = place;
      this.say();
      this.preview(place && { place });
    };
    let at = null; // what comes to lie under a pointer at rest was not pointed at
    svg.addEventListener("pointermove", ({ target, pointerType }) => {
      if (pointerType === "touch") return; // a preview would move the page between a finger's press and its click
      const cell = target.closest("[role=gridcell]");
      if (cell !== at) tell(placeOf((at = cell) ?? svg));
    });
    svg.addEventListener("pointerleave", () => tell((at = null)));
    svg.addEventListener("focusin", ({ target }) => {
      this.rove(target);
      if (target.matches(":focus-visible")) tell(placeOf(target));
    });
    svg.addEventListener("focusout", () => tell(at && placeOf(at)));
    svg.addEventListener("click", ({ target }) => placeOf(target) && this.pick(placeOf(target)));
    svg.addEventListener("keydown", (event) => this.press(event, placeOf(event.target)));
  }

  press(event, place) {
    if (!place) return;
    const at = this.placed(place);
    const inLine = this.heads.filter((head) => this.placed(head).line === at.line);
    const beside = (by) => {
      const line = this.heads.filter((head) => this.placed(head).line === at.line + by);
      return line.findLast((head) => this.placed(head).column <= at.column);
    };
    const number = inLine.findIndex(({ head }) => head === place.head);
    const next = {
      ArrowUp: () => beside(-1),
      ArrowDown: () => beside(1),
      ArrowLeft: () => inLine[number - 1],
      ArrowRight: () => inLine[number + 1],
      Home: () => inLine[0],
      End: () => inLine.at(-1),
    }[event.key];
    if (event.key === "Enter" || event.key === " ") this.pick(place);
    else if (!next) return;
    event.preventDefault();
    if (next) this.cell(next() ?? place).focus();
  }

  step(by) {
    const { layer, head } = this.scene.selection;
    const at = this.heads.findIndex((place) => place.layer === layer && place.head === head);
    this.pick(this.heads[(at + by + this.heads.length) % this.heads.length]);
  }

  cell({ layer, head }) {
    return this.cells.get(`${layer}.${head}`);
  }

  /** Makes one cell the grid's stop of the Tab key. */
  rove(cell) {
    this.stop?.setAttribute("tabindex", -1);
    cell?.setAttribute("tabindex", 0);
    this.stop = cell;
  }

  draw(scene) {
    const { stage, selection, look } = scene;
    const isMissing = this.isEmpty && stage.cells.heads === "all" && Boolean(this.cellsOf(0, 0)); // they have come since
    const built = [stage, selection.clip, look.scale];
    const isOther = isMissing || built.some((value, at) => value !== this.built?.[at]);
    this.scene = scene;
    if (isOther) {
      this.built = built;
      this.build();
    } else if (this.marked !== `${selection.layer}.${selection.head}`) this.mark();
    this.say();
  }

  /** How large pictures are, how many stand in a line, and in how many lines the heads of a layer. */
  layOut() {
    const { counts } = this.scene.stage;
    const most = Math.max(...counts), isTapped = matchMedia("(pointer: coarse)").matches;
    const ofLines = (nLine) => {
      const nColumn = Math.ceil(most / nLine);
      const wide = (this.width - AT_LEFT - SPACE) / nColumn - SPACE;
      const high = isTapped ? LARGEST_SIDE : (HIGHEST_SHEET - AT_TOP) / (counts.length * nLine) - SPACE;
      const side = Math.floor(Math.min(wide, Math.max(high, EASY_SIDE), LARGEST_SIDE));
      return { nLine, nColumn, side: Math.max(SMALLEST_SIDE, side) };
    };
    let best = ofLines(1);
    const wanted = isTapped ? TAPPED_SIDE : EASY_SIDE;
    for (let nLine = 2; best.side < wanted && nLine <= most && counts.length * nLine * (wanted + SPACE) <= HIGHEST_SHEET; nLine++) {
      const other = ofLines(nLine);
      if (other.side > best.side) best = other;
    }
    Object.assign(this, best);
  }

  /** Draws all pictures, and the grid over them. */
  build() {
    const { stage, look } = this.scene;
    this.width = this.sheet.clientWidth;
    if (!this.width) return;
    this.heads = headsOf(stage);
    this.layOut();
    const { colours } = look, wide = this.side + SPACE;
    const size = { width: AT_LEFT + this.nColumn * wide + SPACE, height: AT_TOP + stage.counts.length * this.nLine * wide + SPACE };
    this.paint(size);
    put(this.svg, { ...size, viewBox: `0 0 ${size.width} ${size.height}`, "font-family": look.font, "font-size": 12 });
    this.cells = new Map(this.heads.map((place) => [`${place.layer}.${place.head}`, this.drawCell(place)]));
    const rows = [];
    for (const place of this.heads) (rows[this.placed(place).line] ??= []).push(place);
    const hadFocus = this.svg.contains(this.root.getRootNode().activeElement) && this.stop?.dataset;
    this.svg.replaceChildren(this.axes(size), ...rows.filter(Boolean).map((line) => draw("g", { role: "row" }, ...line.map((place) => this.cell(place)))), this.frame);
    put(this.frame, { width: this.side + 2, height: this.side + 2, stroke: colours.picked });
    this.note.textContent = this.isEmpty ? "Pictures for short texts; All heads draws them for up to 1,024 tokens." : "";
    this.mark();
    if (hadFocus) this.cell({ layer: hadFocus.layer, head: hadFocus.head })?.focus({ preventScroll: true });
  }

  placed({ layer, head }) {
    const line = layer * this.nLine + Math.floor(head / this.nColumn), column = head % this.nColumn;
    const wide = this.side + SPACE;
    return { line, column, x: AT_LEFT + column * wide, y: AT_TOP + line * wide };
  }

  /** The numbers of layers and heads; of heads in several lines, those of the first. */
  axes({ width, height }) {
    const { look, stage } = this.scene, { text, quiet } = look.colours;
    const wide = this.side + SPACE, middle = this.side / 2;
    const numbered = (count, room, drawNumber) => Array.from({ length: Math.ceil(count / room) }, (_, at) => drawNumber(at * room));
    const across = (head) => draw("text", { x: AT_LEFT + head * wide + middle, y: AT_TOP - 6, "text-anchor": "middle", fill: text }, head);
    const down = (layer) => draw("text", { x: AT_LEFT - 5, y: this.placed({ layer, head: 0 }).y + middle + 4, "text-anchor": "end", fill: text }, layer);
    return draw(
      "g",
      { "aria-hidden": true },
      draw("text", { x: (AT_LEFT + width) / 2, y: 12, "text-anchor": "middle", fill: quiet }, "head"),
      draw("text", { "text-anchor": "middle", fill: quiet, transform: `translate(11 ${(AT_TOP + height) / 2}) rotate(-90)` }, "layer"),
      ...numbered(this.nColumn, Math.ceil(18 / wide), across),
      ...numbered(stage.counts.length, Math.ceil(14 / (wide * this.nLine)), down)
    );
  }

  drawCell(place) {
    const { x, y } = this.placed(place), { side } = this;
    const { stage, look } = this.scene;
    const name = stage.names?.[place.layer]?.[place.head] ?? `Layer ${place.layer}, head ${place.head}`;
    const edge = draw("rect", { class: "edge", x: x - 0.5, y: y - 0.5, width: side + 1, height: side + 1, fill: "transparent", stroke: look.colours.edge });
    const cell = draw("g", { role: "gridcell", "aria-label": name, "aria-selected": false, tabindex: -1, "data-layer": place.layer, "data-head": place.head }, edge);
    if (this.isEmpty && side >= NUMBERED_SIDE) {
      cell.append(draw("text", { x: x + side / 2, y: y + side / 2 + 4, "text-anchor": "middle", fill: look.colours.quiet, "aria-hidden": true }, place.head));
    }
    return cell;
  }

  /** Frames the selected head. */
  mark() {
    if (!this.cells) return;
    const { selection } = this.scene, cell = this.cell(selection);
    this.marked = `${selection.layer}.${selection.head}`;
    this.selected?.setAttribute("aria-selected", "false");
    this.selected = cell;
    this.frame.setAttribute("display", cell ? "inline" : "none");
    if (!cell) return;
    const { x, y } = this.placed(selection);
    cell.setAttribute("aria-selected", "true");
    put(this.frame, { x: x - 1, y: y - 1 });
    if (!this.svg.contains(this.root.getRootNode().activeElement)) this.rove(cell);
  }

  /** All pictures as pixels of one canvas; none where the weights of some heads are not here. */
  paint({ width, height }) {
    const { canvas } = this, { stage, look, selection } = this.scene;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    canvas.style.cssText = `width:${width}px;height:${height}px`;
    this.isEmpty = stage.cells.heads !== "all" || !this.cellsOf(0, 0);
    if (this.isEmpty) return;
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const tones = Uint32Array.from(tonesOf(look.scale), ([red, green, blue]) => (255 << 24) | (blue << 16) | (green << 8) | red);
    for (const place of this.heads) {
      const { weights } = this.cellsOf(place.layer, place.head);
      const { x, y } = this.placed(place);
      const box = { left: Math.round(x * ratio), top: Math.round(y * ratio), side: Math.round(this.side * ratio) };
      this.paintHead(pixels, canvas.width, box, weights, tones, 255 / pictureEnd(stage, weights, selection.clip));
    }
    pen.putImageData(image, 0, 0);
  }

  /** One picture. A pixel shows the largest of the weights that fall on it, so that a thin line stays. */
  paintHead(pixels, wide, { left, top, side }, weights, tones, perWeight) {
    const { queries, keys } = this.scene.stage;
    const [nRow, nColumn] = [queries.labels.length, (keys ?? queries).labels.length];
    const edges = (count) => Array.from({ length: side }, (_, at) => [Math.floor((at * count) / side), Math.max(Math.floor((at * count) / side) + 1, Math.floor(((at + 1) * count) / side))]);
    const [rows, columns] = [edges(nRow), edges(nColumn)];
    rows.forEach(([firstRow, stopRow], down) => {
      const before = rows[down - 1], start = (top + down) * wide + left;
      if (before?.[0] === firstRow && before[1] === stopRow) return pixels.copyWithin(start, start - wide, start - wide + side);
      return columns.forEach(([first, stop], across) => {
        let largest = 0;
        for (let row = firstRow; row < stopRow; row++) {
          for (let at = row * nColumn + first; at < row * nColumn + stop; at++) if (weights[at] > largest) largest = weights[at];
        }
        pixels[start + across] = tones[Math.min(255, Math.round(largest * perWeight))];
      });
    });
  }

  say() {
    const { stage, selection } = this.scene;
    const { layer, head } = this.pointed ?? selection;
    const name = (place) => `Layer ${place.layer}, head ${place.head}`;
    this.name.textContent = name(selection);
    this.live.textContent = stage.names?.[layer]?.[head] ?? name({ layer, head });
  }

  end() {
    this.sizes.disconnect();
  }
}
