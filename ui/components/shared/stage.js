// What the parts of the stage share: the weights of all heads, the selected head and query, and what a preview on hover
// shows instead. Parts arrive in any order, and each redraws itself when another reports a change.

const STAGED = "attnviz-stage";

function stage() {
  return (document.stage ??= { heads: null, own: null, preview: {} });
}

/** Tells all parts: `heads`, the weights of all heads; `scale`, the colours of weights, and whether it `clips`; `own`, what is selected; `preview`, a query
 * or a place under the pointer. */
function tellStage(changes) {
  Object.assign(stage(), changes);
  document.dispatchEvent(new Event(STAGED));
}

/** Calls a part now and whenever something is told; returns what ends that. */
function followStage(react) {
  react();
  document.addEventListener(STAGED, react);
  return () => document.removeEventListener(STAGED, react);
}

/** The weights of a head as shares of 255 [query, key]; null where the text's have not come. */
function weightsOf([layer, head]) {
  const { heads, own } = stage();
  if (!heads || heads.text !== own?.text || !(head < heads.counts[layer])) return null;
  const size = heads.nQuery * heads.nKey;
  const before = heads.counts.slice(0, layer).reduce((sum, count) => sum + count, 0);
  return heads.cells.subarray((before + head) * size, (before + head + 1) * size);
}

/** Where the colours of these cells end, as `attnviz.heads.facts.colour_end` has it; at their largest where nothing is clipped. */
function colourEnd(shown, rows, columns) {
  const { clips, heads } = stage();
  const largest = Math.max(1, ...shown);
  const [rowsAside, columnsAside] = [new Set(heads.aside.queries), new Set(heads.aside.keys)];
  const isOrdinary = (_, at) => !rowsAside.has(rows[Math.floor(at / columns.length)]) && !columnsAside.has(columns[at % columns.length]);
  const ordinary = clips ? shown.filter(isOrdinary) : [];
  if (!ordinary.length) return largest;
  const mean = shown.reduce((sum, weight) => sum + weight, 0) / shown.length;
  return Math.min(largest, Math.max(mean, ...ordinary));
}

/** A picture of weights, a pixel for each cell of these rows and columns, from 0 to where their colours end. */
function pictureOf(cells, nKey, rows, columns) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns.length, rows.length];
  const context = canvas.getContext("2d"), picture = context.createImageData(canvas.width, canvas.height);
  const shown = rows.flatMap((row) => columns.map((column) => cells[row * nKey + column]));
  const end = colourEnd(shown, rows, columns), { scale } = stage();
  shown.forEach((weight, at) => {
    const tone = 3 * Math.round(255 * Math.min(1, weight / end));
    picture.data.set([scale[tone], scale[tone + 1], scale[tone + 2], 255], 4 * at);
  });
  context.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}

/** What is shown: the place and query under the pointer, or else what is selected; and what that query gives to each key. */
function shownRow() {
  const { own, preview } = stage();
  if (!own) return null;
  const cells = preview.place ? weightsOf(preview.place) : null;
  const query = preview.query ?? own.query;
  const place = cells ? preview.place : own.place;
  const isOwn = String(place) === String(own.place);
  const row = isOwn
    ? own.weights.subarray(query * own.nKey, (query + 1) * own.nKey)
    : Float32Array.from(cells.subarray(query * own.nKey, (query + 1) * own.nKey), (cell) => cell / 255);
  return { place, query, row, isOwn };
}
