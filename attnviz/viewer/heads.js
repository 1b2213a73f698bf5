// All heads as small pictures of their weights, layer 0 on top, drawn once for each text on one canvas; over it a grid that can be walked with
// the arrow keys. Hovering over a head previews it on the whole stage, a click selects it.

import { draw, put } from "./svg.js";
import { make, makeButton, makeLive } from "./html.js";
import { tonesOf } from "./matrix.js";

const [AT_LEFT, AT_TOP] = [30, 36]; // px, for the numbers of layers and heads
const [SMALLEST_SIDE, LARGEST_SIDE, SPACE] = [14, 30, 2]; // px of a picture, and between two
const ABOVE_HEADS = 300; // px that a window has above and below the heads

export class Heads {
  constructor({ pick, preview, cellsOf }) {
    Object.assign(this, { pick, preview, cellsOf });
    this.canvas = make("canvas", "");
    this.svg = draw("svg", { role: "grid", "aria-label": "All heads; hover over one to preview it, click to select it" });
    this.sheet = make("div", "sheet", this.canvas, this.svg);
    const step = (name, sign, by) => {
      const button = makeButton("step", sign, () => this.step(by));
      button.setAttribute("aria-label", `${name} head`);
      button.title = `${name} head (key ${by < 0 ? "[" : "]"})`;
      return button;
    };
    this.name = make("span", "name");
    this.live = makeLive();
    this.root = make("section", "heads", make("div", "steps", step("Previous", "‹", -1), this.name, step("Next", "›", 1)), this.sheet, this.live);
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
    svg.addEventListener("mousemove", ({ target }) => target !== at && tell(placeOf((at = target))));
    svg.addEventListener("mouseleave", () => tell((at = null)));
    svg.addEventListener("focusin", ({ target }) => target.matches(":focus-visible") && tell(placeOf(target)));
    svg.addEventListener("focusout", () => tell(null));
    svg.addEventListener("click", ({ target }) => placeOf(target) && this.pick(placeOf(target)));
    svg.addEventListener("keydown", (event) => this.press(event, placeOf(event.target)));
  }

  press(event, place) {
    if (!place) return;
    const { counts } = this.scene.stage;
    let { layer, head } = place;
    if (event.key === "Enter" || event.key === " ") this.pick(place);
    else if (event.key === "ArrowUp") layer = Math.max(0, layer - 1);
    else if (event.key === "ArrowDown") layer = Math.min(counts.length - 1, layer + 1);
    else if (event.key === "ArrowLeft") head = Math.max(0, head - 1);
    else if (event.key === "ArrowRight") head += 1;
    else if (event.key === "Home") head = 0;
    else if (event.key === "End") head = Infinity;
    else return;
    event.preventDefault();
    const next = this.cell({ layer, head: Math.min(head, counts[layer] - 1) });
    this.rove(next);
    next.focus();
  }

  step(by) {
    const { stage, selection } = this.scene;
    const heads = stage.counts.flatMap((count, layer) => Array.from({ length: count }, (_, head) => ({ layer, head })));
    const at = heads.findIndex(({ layer, head }) => layer === selection.layer && head === selection.head);
    this.pick(heads[(at + by + heads.length) % heads.length]);
  }

  cell({ layer, head }) {
    return this.svg.querySelector(`[data-layer="${layer}"][data-head="${head}"]`);
  }

  rove(cell) {
    this.svg.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
    cell?.setAttribute("tabindex", 0);
  }

  draw(scene) {
    const { stage, selection, look } = scene;
    const built = [stage.text, stage.names, selection.clip, look.scale];
    const isOther = built.some((value, at) => value !== this.built?.[at]);
    this.scene = scene;
    if (isOther) {
      this.built = built;
      this.build();
    } else if (this.marked !== `${selection.layer}.${selection.head}`) this.mark();
    this.say();
  }

  /** Draws all pictures, and the grid over them. */
  build() {
    const { stage, look } = this.scene;
    const { counts } = stage;
    this.width = this.sheet.clientWidth;
    if (!this.width) return;
    const nColumns = Math.max(...counts);
    const room = [(this.width - AT_LEFT - 2) / nColumns, (window.innerHeight - ABOVE_HEADS) / counts.length];
    this.side = Math.max(SMALLEST_SIDE, Math.min(LARGEST_SIDE, Math.floor(Math.min(...room)) - SPACE));
    const size = { width: AT_LEFT + nColumns * (this.side + SPACE) + 2, height: AT_TOP + counts.length * (this.side + SPACE) + 2 };
    this.paint(size);
    put(this.svg, { ...size, viewBox: `0 0 ${size.width} ${size.height}`, "font-family": look.font, "font-size": 12 });
    const rows = counts.map((count, layer) => draw("g", { role: "row" }, ...Array.from({ length: count }, (_, head) => this.drawCell({ layer, head }))));
    this.svg.replaceChildren(this.axes(nColumns, size), ...rows);
    this.mark();
  }

  placed({ layer, head }) {
    return { x: AT_LEFT + head * (this.side + SPACE), y: AT_TOP + layer * (this.side + SPACE) };
  }

  axes(nColumns, { width, height }) {
    const { look, stage } = this.scene;
    const { text, quiet } = look.colours;
    const every = Math.ceil(18 / (this.side + SPACE)); // so that numbers do not touch
    const numbers = (count, make_) => Array.from({ length: count }, (_, at) => at).filter((at) => at % every === 0).map(make_);
    const middle = this.side / 2;
    return draw(
      "g",
      { "aria-hidden": true },
      draw("text", { x: (AT_LEFT + width) / 2, y: 12, "text-anchor": "middle", fill: quiet }, "head"),
      draw("text", { x: 0, y: 0, "text-anchor": "middle", fill: quiet, transform: `translate(11 ${(AT_TOP + height) / 2}) rotate(-90)` }, "layer"),
      ...numbers(nColumns, (head) => draw("text", { x: this.placed({ layer: 0, head }).x + middle, y: AT_TOP - 7, "text-anchor": "middle", fill: text }, head)),
      ...numbers(stage.counts.length, (layer) => draw("text", { x: AT_LEFT - 4, y: this.placed({ layer, head: 0 }).y + middle + 4, "text-anchor": "end", fill: text }, layer))
    );
  }

  drawCell(place) {
    const { x, y } = this.placed(place);
    const { stage, look } = this.scene;
    const name = stage.names?.[place.layer]?.[place.head] ?? `Layer ${place.layer}, head ${place.head}`;
    const frame = draw("rect", { class: "edge", x: x - 0.5, y: y - 0.5, width: this.side + 1, height: this.side + 1, fill: "transparent", stroke: look.colours.edge, "stroke-width": 1 });
    return draw("g", { role: "gridcell", "aria-label": name, tabindex: -1, "data-layer": place.layer, "data-head": place.head }, frame);
  }

  /** Frames the selected head. */
  mark() {
    const { selection, look } = this.scene;
    this.marked = `${selection.layer}.${selection.head}`;
    const before = this.svg.querySelector("[aria-selected=true]");
    if (before) {
      before.removeAttribute("aria-selected");
      put(before.firstChild, { stroke: look.colours.edge, "stroke-width": 1 });
    }
    const cell = this.cell(selection);
    if (!cell) return;
    cell.setAttribute("aria-selected", "true");
    put(cell.firstChild, { stroke: look.colours.picked, "stroke-width": 3 });
    cell.parentNode.append(cell); // its frame lies over its neighbours
    if (!this.svg.contains(this.root.getRootNode().activeElement)) this.rove(cell);
  }

  paint({ width, height }) {
    const { canvas, side } = this;
    const ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    canvas.style.cssText = `width:${width}px;height:${height}px`;
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const tones = tonesOf(this.scene.look.scale);
    this.isEmpty = false;
    this.scene.stage.counts.forEach((count, layer) => {
      for (let head = 0; head < count; head++) {
        const whole = this.cellsOf(layer, head);
        if (!whole) this.isEmpty = true;
        else this.paintHead(pen, whole, tones, { ...this.placed({ layer, head }), side });
      }
    });
  }

  /** One picture, a pixel for each cell, with colours of its own up to the largest of what is no resting place. */
  paintHead(pen, { weights, queries, keys }, tones, { x, y, side }) {
    const [rows, columns] = [queries.labels.length, keys.labels.length];
    let [largest, ordinary, sum] = [1 / 255, 0, 0];
    weights.forEach((weight, at) => {
      if (!(weight > 0)) return;
      sum += weight;
      largest = Math.max(largest, weight);
      if (!queries.special[Math.floor(at / columns)] && !keys.resting[at % columns]) ordinary = Math.max(ordinary, weight);
    });
    const end = this.scene.selection.clip && ordinary ? Math.min(largest, Math.max(sum / weights.length, ordinary)) : largest;
    const image = new ImageData(columns, rows);
    weights.forEach((weight, at) => image.data.set([...tones[Math.round(255 * Math.min(1, (weight || 0) / end))], 255], 4 * at));
    const picture = (this.picture ??= make("canvas", ""));
    [picture.width, picture.height] = [columns, rows];
    picture.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = columns > side;
    pen.drawImage(picture, x, y, side, side);
  }

  say() {
    const { stage, selection } = this.scene;
    const { layer, head } = this.pointed ?? selection;
    this.name.textContent = `Layer ${selection.layer}, head ${selection.head}`;
    const note = this.isEmpty ? " Pictures for short texts; “All heads” draws them for any text." : "";
    this.live.textContent = (stage.names?.[layer]?.[head] ?? `Layer ${layer}, head ${head}`) + note;
  }

  end() {
    this.sizes.disconnect();
  }
}
