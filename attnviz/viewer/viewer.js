// The stage: a document, its bytes and a selection in; a selection out. All that can be shown of a text is drawn here, and anew with
// every change; the host is told of changes, and asked only for what the bytes do not hold.

import { make, makeButton, setColours } from "./html.js";
import { Stage } from "./cells.js";
import { MIXED, findingWords, headlineWords, placeWords, strongestKey } from "./words.js";
import { Band } from "./band.js";
import { Flow } from "./flow.js";
import { Heads } from "./heads.js";
import { Matrix } from "./matrix.js";
import { CHOICES } from "./choices.js";
import { Options } from "./options.js";
import { Pair } from "./pair.js";
import { FarLinks } from "./far.js";
import { Passage } from "./passage.js";
import { Ranking } from "./ranking.js";
import { setStop, walkAmong } from "./rove.js";
import { TiledStage } from "./tiles.js";

const REST_MS = 300; // without a change, after which the host is told where the visitor has settled
const ASK_MS = 120; // on a head whose numbers are not here, before they are asked for

export class Viewer {
  /** @param host `select`, `settle`, `mask`, `ask` and `theme` as docs/viewer.md has them, and `slots`, the names of what the host shows
   * among the pictures. */
  constructor(root, host) {
    this.host = host;
    this.root = root;
    this.theme = host.theme;
    this.selection = {};
    this.preview = null;
    const calls = {
      pick: (changes) => this.change(changes),
      preview: (preview) => this.look(preview),
      open: (pair) => this.open(pair),
      mask: host.mask,
      cellsOf: (layer, head) => this.stage?.whole({ layer, head }, "weights"),
      want: (tiled, level, at) => this.want(tiled, level, at),
      seen: (seen) => this.moved(seen),
      go: (pair) => this.go(pair),
      follow: (pair) => this.parts.matrix.follow(pair),
    };
    this.parts = {
      band: new Band(calls),
      passage: new Passage(calls),
      matrix: new Matrix(calls),
      token_flow: new Flow(calls),
      heads: new Heads(calls),
      ranking: new Ranking(calls),
      far: new FarLinks(calls),
    };
    this.options = new Options(calls);
    this.slots = Object.fromEntries((host.slots ?? []).map((name) => [name, make("div", `slot slot-${name}`)]));
    this.build();
  }

  build() {
    const { band, passage, matrix, token_flow: flow, heads, ranking, far } = this.parts;
    this.headline = make("p", "headline");
    this.fills = make("div", "fills");
    this.fills.setAttribute("role", "group");
    this.fills.setAttribute("aria-label", CHOICES.fill.title);
    for (const [fill, name] of Object.entries(CHOICES.fill.names)) {
      if (fill === "map" && !this.slots.map) continue;
      if (fill === "all" && !this.slots.map) continue;
      const button = makeButton("", name, () => this.change({ fill }));
      button.dataset.fill = fill;
      this.fills.append(button);
    }
    this.fills.onkeydown = (event) => walkAmong([...this.fills.children], event);
    this.notes = make("p", "notes");
    const bar = make("div", "bar", this.fills, ...this.placed("links"), this.options.button);
    this.pictures = make("div", "pictures", passage.root, matrix.root, flow.root, ...this.placed("map"));
    const main = make("div", "main", band.root, this.headline, bar, this.pictures, this.notes, far.root);
    const side = make("div", "side", ...this.placed("model"), heads.root, ranking.root);
    for (const [name, { root }] of Object.entries(this.parts)) root.setAttribute("part", name);
    this.fills.setAttribute("part", "fills");
    this.root.classList.add("viewer");
    this.root.classList.toggle("alone", !this.slots.map);
    this.root.replaceChildren(make("div", "stage-parts", main, side), this.options.root);
    this.root.addEventListener("keydown", (event) => this.press(event));
  }

  placed(name) {
    return this.slots[name] ? [this.slots[name]] : [];
  }

  /** Another text, model or kind of attention, with its selection: what was kept of the last one goes. */
  load(document, bytes, selection) {
    if (this.isTiled && document.tiling && document.text === this.stage.document.text) this.stage.document = document; // more layers are there
    else {
      const stage = document.tiling ? new TiledStage(document, this.host.ask, (error) => stage === this.stage && this.arrived(error)) : new Stage(document, bytes);
      this.stage = stage;
    }
    this.root.classList.toggle("tiled", this.isTiled);
    this.root.classList.toggle("of-two", this.isTiled && Boolean(document.keys));
    this.preview = null;
    this.asked = null;
    this.pair?.end();
    this.pair = null;
    this.selection = { ...selection };
    this.draw();
  }

  /** The host changes the selection, which it need not be told. */
  put(changes) {
    Object.assign(this.selection, changes);
    this.draw();
  }

  /** What the host says of the selection in words, exact and in full: `headline` and `notes`. */
  say(said) {
    this.asked = null; // what was not there before may be by now
    this.said = { ...said, of: JSON.stringify(this.selection) };
    this.draw();
  }

  dress(theme) {
    this.theme = theme;
    this.draw();
  }

  /** The visitor changes the selection. A query that is picked alone looks at its strongest key. */
  change(changes) {
    if (!this.stage) return;
    if ("query" in changes && !("key" in changes)) changes = { ...changes, key: null };
    this.preview = null;
    this.pair?.end();
    this.pair = null;
    this.put(changes);
    this.host.select?.({ ...this.selection });
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.host.settle?.({ ...this.selection }), REST_MS);
  }

  /** Whether the matrices of this text come in tiles. */
  get isTiled() {
    return Boolean(this.stage?.document.tiling);
  }

  /** What was asked for has come, or will not. */
  arrived(error) {
    this.draw();
    if (error) this.fail(error);
  }

  /** Asks for tiles, once the visitor stays. */
  want(tiled, level, at) {
    const { stage } = this;
    clearTimeout(this.wanting);
    this.wanting = setTimeout(() => stage === this.stage && stage.fetchTiles(tiled, level, at), ASK_MS);
  }

  /** The visitor has moved what is in sight of the matrix; nothing else changes. */
  moved(seen) {
    if (!this.isTiled || this.selection.seen === seen) return;
    this.selection.seen = seen;
    this.parts.passage.draw(this.scene());
    this.host.select?.({ ...this.selection });
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.host.settle?.({ ...this.selection }), REST_MS);
  }

  /** Selects a cell and brings it in sight. */
  go(pair) {
    this.change(pair);
    this.parts.matrix.goTo(pair);
    this.parts.matrix.root.scrollIntoView({ block: "nearest" }); // the links stand below it
  }

  /** Nothing of what the visitor changed last is told any more. */
  stay() {
    clearTimeout(this.resting);
  }

  look(preview) {
    if (JSON.stringify(preview) === JSON.stringify(this.preview)) return;
    if (this.isTiled && preview && !preview.place) return; // the rows of other queries are not here
    this.preview = preview;
    this.draw();
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input, select")) return;
    const by = { "[": -1, "]": 1 }[event.key];
    if (!by || !this.stage) return;
    event.preventDefault();
    this.parts.heads.step(by);
  }

  scene() {
    const { stage, selection } = this;
    const previewed = this.preview?.place;
    const isElsewhere = Boolean(previewed && stage.has(previewed, selection.measure) && stage.drawn(previewed, selection)); // what cannot be previewed changes nothing
    const place = isElsewhere ? previewed : selection;
    const [pattern, told] = [stage.drawn(place, selection), stage.told(place, selection)];
    const profiles = this.isTiled ? stage.profiles(place, selection) : null;
    if (!pattern || (profiles && !(profiles.row && profiles.column))) this.fetch();
    const query = this.preview?.query ?? selection.query;
    const isPreview = isElsewhere || query !== selection.query;
    const key = (isPreview ? null : selection.key) ?? (told && strongestKey(told, query));
    const look = { ...stage.document.looks[this.theme], font: stage.document.font, tokenFont: stage.document.tokenFont };
    return {
      ...{ stage: stage.document, selection, look, isPreview, pattern, told },
      ...{ shown: { ...selection, layer: place.layer, head: place.head, query, key } },
      ...(profiles && { profiles, cells: pattern?.tiled.cells }),
      ...{ whole: stage.whole(place, "weights"), end: pattern && stage.colourEnd(pattern, selection) },
    };
  }

  draw() {
    if (!this.stage) return;
    const scene = this.scene();
    const { look, shown, told } = scene;
    setColours(this.root, { ...look.colours, font: look.font, "token-font": look.tokenFont });
    this.root.dataset.fill = this.isTiled ? "matrix" : this.selection.fill;
    this.root.dataset.text = scene.stage.text;
    this.root.dataset.place = `${shown.layer}.${shown.head}`;
    for (const button of this.fills.children) button.setAttribute("aria-pressed", String(this.isShown(button.dataset.fill)));
    setStop([...this.fills.children], this.root.getRootNode().activeElement?.closest(".fills button") ?? this.fills.querySelector("[aria-pressed=true]"));
    for (const [name, part] of Object.entries(this.parts)) {
      if (!this.hides(name)) part.draw(scene);
    }
    if (this.pair && this.dressed !== this.theme) this.pair.dress(look);
    this.dressed = this.theme;
    this.options.draw(scene);
    const isSaid = !scene.isPreview && this.said?.of === JSON.stringify(this.selection);
    const words = told && ((isSaid && this.said.headline) || headlineWords(told, shown.query, shown.key));
    if (!words && this.toldOf !== scene.stage.text) this.headline.textContent = ""; // of another text nothing stays
    if (words) this.toldOf = scene.stage.text;
    if (words) this.headline.textContent = `${placeWords(told)}: ${words}`;
    this.root.classList.toggle("waits", !told);
    if (isSaid) this.notes.textContent = this.said.notes;
    this.notes.classList.toggle("old", !isSaid); // unseen, but with its room: what is below it stays under the pointer
  }

  /** Whether a part does not stand on the stage as it is filled. */
  hides(name) {
    if (name === "passage") return !this.isTiled || Boolean(this.stage.document.keys); // of two texts neither stands for both
    if (name === "far") return !this.isTiled;
    if (this.isTiled) return name === "band" || name === "token_flow";
    const { fill } = this.selection;
    if (name === "matrix") return fill === "token_flow" || fill === "map";
    return name === "token_flow" && fill !== "token_flow";
  }

  isShown(fill) {
    const here = this.selection.fill;
    return fill === here || (!this.slots.map && fill === "matrix" && here !== "token_flow");
  }

  /** Asks the host for numbers that the bytes do not hold, once the visitor stays. */
  fetch() {
    if (!this.host.ask) return;
    const { layer, head, measure } = this.selection;
    const { stage } = this;
    if (this.isTiled) {
      clearTimeout(this.asking);
      this.asking = setTimeout(() => stage === this.stage && stage.fetch(this.selection), ASK_MS);
      return;
    }
    const isWhole = stage.document.cells.heads === "all" && !(measure in MIXED); // which are made a layer at a time
    const asked = isWhole ? { measure } : { layer, head, measure };
    if (JSON.stringify(asked) === this.asked) return;
    this.asked = JSON.stringify(asked);
    clearTimeout(this.asking);
    this.asking = setTimeout(async () => {
      try {
        const { cells, bytes } = await this.host.ask(isWhole ? "measure" : "head", asked);
        if (stage !== this.stage) return;
        stage.add(cells, bytes);
        this.asked = null;
        this.draw();
      } catch (error) {
        if (stage === this.stage) this.fail(error);
      }
    }, ASK_MS);
  }

  /** Opens one cell where it stands: how its number comes about. */
  async open({ query, key }) {
    const { stage, host } = this;
    if (!host.ask) return;
    const { layer, head } = this.selection;
    if (query !== this.selection.query || key !== this.selection.key) this.change({ query, key });
    try {
      const { pair } = await host.ask("pair", { layer, head, query, key });
      const { selection } = this;
      if (stage !== this.stage || layer !== selection.layer || head !== selection.head) return;
      this.pair?.end();
      this.pair = new Pair({ close: () => (this.pair = null) });
      this.root.append(this.pair.root);
      this.pair.show(pair, this.scene().look, this.placeOf({ query, key }));
    } catch (error) {
      this.fail(error);
    }
  }

  /** Says why what was asked for has not come. */
  fail(error) {
    this.notes.textContent = error.message;
    this.notes.classList.remove("old");
  }

  /** Where a cell is, px from the corner of the stage. */
  placeOf(pair) {
    const place = this.hides("matrix") ? null : this.parts.matrix.placeOf(pair);
    return place ?? { x: this.root.clientWidth / 2, y: 80 };
  }

  /** The element of a part, such as a picture to save; null where it is not shown. */
  part(name) {
    return name in this.parts && this.hides(name) ? null : this.root.querySelector(`[part=${CSS.escape(name)}]`);
  }

  /** What is selected, in words, for the text alternative of a saved picture. */
  finding() {
    const { told, shown } = this.scene();
    return told ? findingWords(told, shown.query, shown.key) : "";
  }

  end() {
    clearTimeout(this.resting);
    clearTimeout(this.asking);
    clearTimeout(this.wanting);
    for (const part of Object.values(this.parts)) part.end();
    this.pair?.end();
    this.root.replaceChildren();
  }
}
