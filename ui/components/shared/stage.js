// What the parts of the stage share: the weights of all heads of the text, the head and query that are selected, and what the
// pointer previews in their place. Parts come in any order, and each draws itself again when another has told something.

const STAGED = "attnviz-stage";

function stage() {
  return (document.stage ??= { heads: null, own: null, preview: {} });
}

/** Tells all parts: `heads`, the weights of all heads; `own`, what is selected; `preview`, a query or a place under the pointer. */
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
  const before = heads.counts.slice(0, layer).reduce((sum, one) => sum + one, 0);
  return heads.cells.subarray((before + head) * size, (before + head + 1) * size);
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
    : Float32Array.from(cells.subarray(query * own.nKey, (query + 1) * own.nKey), (one) => one / 255);
  return { place, query, row, isOwn };
}
