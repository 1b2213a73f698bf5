// The stage of a long text: matrices that come in tiles, as docs/viewer.md has them, and the row and the column of what is selected in full.

import { numbersOfCodes, sideOf } from "./cells.js";
import { strongestKey } from "./words.js";

const COARSER = 0.15; // of a level: cells have a pixel at least, so that none is lost between two, and nearly one more makes the next level do
const MOST_ASKED = 16; // tiles at once
const MOST_HEADS = 12; // whose tiles are kept
const NOTHING = new Uint16Array(0); // a tile without a cell that a query may see

/** Bytes without their deflation, which has no header. */
async function inflated(bytes) {
  const made = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint16Array(await new Response(made).arrayBuffer());
}

/** The numbers of one head and measure, as far as they have come. */
class TiledHead {
  constructor({ side, levels }, nRow, nColumn) {
    Object.assign(this, { side, levels, nRow, nColumn });
    this.tiles = new Map();
    this.asked = new Set();
    this.lines = new Map();
    this.ends = null;
    this.far = [];
    this.renew();
  }

  /** Another function gives the cells, so that they are painted anew. */
  renew() {
    this.cells = (rows, columns, size) => this.block(rows, columns, size);
  }

  /** Takes an answer to ask("tiles"). */
  async add({ level, at, sizes, codes, ends, far }, bytes) {
    Object.assign(this, { ends, far });
    this.numbers ??= numbersOfCodes(codes);
    let start = 0;
    for (const [number, [row, column]] of at.entries()) {
      const part = bytes.subarray(start, (start += sizes[number]));
      this.tiles.set(`${level}.${row}.${column}`, sizes[number] ? await inflated(part) : NOTHING);
    }
    this.renew();
  }

  /** Takes an answer to ask("lines"): all numbers of a query, and of a key. */
  async addLines({ query, key, codes }, bytes) {
    this.numbers ??= numbersOfCodes(codes);
    const numbers = Float64Array.from(await inflated(bytes), (code) => this.numbers[code]);
    this.lines.set(`query ${query}`, numbers.subarray(0, this.nColumn)).set(`key ${key}`, numbers.subarray(this.nColumn));
  }

  /** The level whose cells have one to two pixels, for so many tokens and pixels. */
  levelFor(nToken, nPixel) {
    return Math.min(this.levels - 1, Math.max(0, Math.ceil(Math.log2(nToken / nPixel) + COARSER)));
  }

  /** The tile that holds a cell, or the nearest coarser one that has come: {tile, level}; null where none has. */
  tileAt(level, row, column) {
    for (let up = level; up < this.levels; up++) {
      const tile = this.tiles.get(`${up}.${row >> (up - level)}.${column >> (up - level)}`);
      if (tile) return { tile, level: up };
    }
    return null;
  }

  /** The cells of some tokens as a block for `Matrix`, and in `missing` the tiles of its level that have not come. */
  block([top, bottom], [left, right], size) {
    const level = Math.max(this.levelFor(bottom - top, size.rows), this.levelFor(right - left, size.columns));
    const { side } = this;
    const [first, stop] = [[top >> level, left >> level], [((bottom - 1) >> level) + 1, ((right - 1) >> level) + 1]];
    const [rows, columns] = [stop[0] - first[0], stop[1] - first[1]];
    const values = new Float64Array(rows * columns).fill(NaN);
    const missing = [];
    let coarsest = level; // of what is here
    for (let tileRow = Math.floor(first[0] / side); tileRow * side < stop[0]; tileRow++) {
      for (let tileColumn = Math.floor(first[1] / side); tileColumn * side < stop[1]; tileColumn++) {
        const found = this.tileAt(level, tileRow, tileColumn);
        if (found?.level !== level) missing.push([tileRow, tileColumn]);
        if (!found || found.tile === NOTHING) continue;
        const up = found.level - level;
        coarsest = Math.max(coarsest, found.level);
        const [fromRow, fromColumn] = [Math.max(first[0], tileRow * side), Math.max(first[1], tileColumn * side)];
        const [toRow, toColumn] = [Math.min(stop[0], (tileRow + 1) * side), Math.min(stop[1], (tileColumn + 1) * side)];
        for (let row = fromRow; row < toRow; row++) {
          const line = ((row >> up) % side) * side;
          for (let column = fromColumn, at = (row - first[0]) * columns + fromColumn - first[1]; column < toColumn; column++, at++) {
            values[at] = this.numbers[found.tile[line + ((column >> up) % side)]];
          }
        }
      }
    }
    const span = [first, stop].map(([row, column]) => [row << level, column << level]);
    return { values, rows, columns, level, missing, pooled: 1 << coarsest, span: { rows: [span[0][0], span[1][0]], columns: [span[0][1], span[1][1]] } };
  }

  /** One cell: its number, and how many tokens a side it stands for. */
  cell(row, column) {
    const ofQuery = this.lines.get(`query ${row}`), ofKey = this.lines.get(`key ${column}`);
    if (ofQuery || ofKey) return { number: ofQuery ? ofQuery[column] : ofKey[row], wide: 1 };
    for (let level = 0; level < this.levels; level++) {
      const [down, across] = [row >> level, column >> level];
      const tile = this.tiles.get(`${level}.${Math.floor(down / this.side)}.${Math.floor(across / this.side)}`);
      if (tile) return { number: tile === NOTHING ? NaN : this.numbers[tile[(down % this.side) * this.side + (across % this.side)]], wide: 1 << level };
    }
    return { number: NaN, wide: 1 };
  }
}

/** As `Stage` of cells.js, for a text whose matrices come in tiles. */
export class TiledStage {
  constructor(document, ask, changed) {
    Object.assign(this, { document, ask, changed });
    this.queries = sideOf(document.queries);
    this.keys = document.keys ? sideOf(document.keys) : this.queries;
    this.heads = new Map();
    this.failed = [];
  }

  #head({ layer, head }, { measure, pool }) {
    const name = `${layer}.${head}.${measure}.${pool}`;
    if (!this.heads.has(name)) {
      if (this.heads.size >= MOST_HEADS) this.heads.delete(this.heads.keys().next().value); // the one that came first
      const tiled = new TiledHead(this.document.tiling, this.queries.tokens.labels.length, this.keys.tokens.labels.length);
      this.heads.set(name, Object.assign(tiled, { query: { layer, head, measure, pool } }));
    }
    return this.heads.get(name);
  }

  /** Whether a head can be drawn, {layer, head}. */
  has(place, measure) {
    return ["max", "mean"].some((pool) => this.heads.get(`${place.layer}.${place.head}.${measure}.${pool}`)?.ends);
  }

  /** What is drawn of a head; null until its first tile has come. */
  drawn(place, selection) {
    const tiled = this.#head(place, selection);
    return tiled.ends && this.#pattern(place, selection, tiled);
  }

  /** The row of the selected query; null until it has come. */
  told(place, selection) {
    const tiled = this.#head(place, selection);
    const row = tiled.lines.get(`query ${selection.query}`);
    return row ? { ...this.#pattern(place, selection, tiled), weights: row, row: selection.query } : null;
  }

  /** The selected row and column in full: of the strongest key where none is selected; null as long as they have not come. */
  profiles(place, selection) {
    const told = this.told(place, selection);
    const key = selection.key ?? (told && strongestKey(told, selection.query));
    return { row: told?.weights ?? null, column: this.#head(place, selection).lines.get(`key ${key}`) ?? null, key };
  }

  /** Asks for what of the selection has not come: its first tile, its row and its column. */
  fetch(selection) {
    const tiled = this.#head(selection, selection);
    const changed = JSON.stringify(selection);
    if (changed !== this.fetchedFor) for (const name of this.failed.splice(0)) tiled.asked.delete(name);
    this.fetchedFor = changed;
    const { row, column, key } = this.profiles(selection, selection);
    if (!tiled.ends) this.fetchTiles(tiled, tiled.levels - 1, [[0, 0]]);
    if (!row || !column) this.fetchLines(tiled, selection.query, key ?? Math.min(selection.query, tiled.nColumn - 1));
  }

  whole() {
    return null;
  }

  hides() {
    return { special: false, first: false };
  }

  colourEnd(pattern, { clip, colour }) {
    return clip && colour === "linear" && pattern.measure !== "scores" ? pattern.ends[2] : null;
  }

  #pattern({ layer, head }, { measure }, tiled) {
    const [queries, keys] = [this.queries.tokens, this.keys.tokens];
    const window = this.document.tiling.windows[layer];
    return { measure, kind: this.document.kind, layer, head, queries, keys, tiled, window, ends: tiled.ends, weights: null, hidden: this.#none(queries), isRenormalised: false };
  }

  #none(queries) {
    return (this.nothing ??= new Float64Array(queries.labels.length));
  }

  /** Asks for tiles that were not asked for yet. */
  fetchTiles(tiled, level, at) {
    const news = at.filter((place) => !tiled.asked.has(`${level}.${place}`)).slice(0, MOST_ASKED);
    if (news.length) this.#ask("tiles", { ...tiled.query, level, at: news }, tiled, news.map((place) => `${level}.${place}`), (answer) => tiled.add(answer.tiles, answer.bytes));
  }

  fetchLines(tiled, query, key) {
    const name = `${query} ${key}`;
    if (!tiled.asked.has(name)) this.#ask("lines", { ...tiled.query, query, key }, tiled, [name], (answer) => tiled.addLines(answer.lines, answer.bytes));
  }

  /** What has failed is not asked for again by itself, but after the next change. */
  async #ask(what, query, tiled, names, take) {
    for (const name of names) tiled.asked.add(name);
    try {
      await take(await this.ask(what, query));
      this.changed(null);
    } catch (error) {
      this.failed.push(...names);
      this.changed(error);
    }
  }
}
