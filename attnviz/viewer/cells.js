// The numbers of heads, from the codes of docs/viewer.md to patterns with the rows and columns that are selected. A pattern has the
// numbers of attnviz.records.AttentionPattern: sums are made in full and rounded to float32 once.

const MASKED_CODE = 65535;
const OF_LAYER = new Set(["rollout", "alti", "value_zeroing"]); // measures of all heads of a layer together, OF_LAYER of attnviz/records

/** Whether a measure has one matrix for each layer. */
export function isOfLayer(measure) {
  return OF_LAYER.has(measure);
}

/** Whether a measure's numbers are shares of a row. */
export function holdsShares(measure) {
  return measure !== "scores" && measure !== "norms";
}

/** The number of each code, rounded to float32; NaN where the query may not see the key. As `_table` of codes.py. */
export function numbersOfCodes({ lowest, highest, zero, power, root, low, ratio }) {
  const size = Math.max(-lowest, highest);
  const most = Math.max(zero, MASKED_CODE - 1 - zero);
  const sizes = new Float64Array(most + 1);
  for (let at = low; at <= most; at++) {
    const share = root + (1 - root) * ((at - low) / (most - low));
    let raised = share;
    for (let n = 1; n < power; n++) raised *= share;
    sizes[at] = size * raised;
  }
  for (let at = low - 1; at > 0; at--) sizes[at] = sizes[at + 1] * ratio;
  return Float64Array.from({ length: MASKED_CODE + 1 }, (_, code) => {
    if (code === MASKED_CODE) return NaN;
    return Math.fround(code < zero ? -sizes[zero - code] : sizes[code - zero]);
  });
}

/** The document with the numbers that have come, and the patterns made of them. */
export class Stage {
  constructor(document, bytes) {
    this.document = document;
    this.queries = sideOf(document.queries);
    this.keys = document.keys ? sideOf(document.keys) : this.queries;
    this.blocks = [];
    this.wholes = new Map();
    this.chosen = new WeakMap(); // of each whole pattern the one that was last arranged of it
    this.add(document.cells, bytes);
  }

  /** Takes what `ask` brought: cells as in the document, and their bytes. */
  add(cells, bytes) {
    const own = ArrayBuffer.isView(bytes) ? bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) : bytes;
    this.blocks.unshift({ cells, codes: new Uint16Array(own), numbers: null });
  }

  /** Whether the numbers of a head, {layer, head}, have come. */
  has(place, measure) {
    return this.blocks.some((block) => block.cells.measure === measure && this.#numberIn(block.cells, place) >= 0);
  }

  /** The pattern of a head on all single tokens; null where its numbers have not come. */
  whole({ layer, head }, measure) {
    const name = `${measure} ${layer} ${isOfLayer(measure) ? "" : head}`;
    if (!this.wholes.has(name)) {
      const weights = this.#weights({ layer, head }, measure);
      if (!weights) return null;
      this.wholes.set(name, this.#pattern({ layer, head }, measure, weights));
    }
    return this.wholes.get(name);
  }

  /** A pattern of `whole` with rows and columns as selected; null for scores of words, which have none. */
  arranged(whole, selection) {
    const { unit, special, withoutFirst, sentences } = selection;
    const as = JSON.stringify([unit, special, withoutFirst, sentences]);
    const last = this.chosen.get(whole);
    if (last?.as === as) return last.pattern;
    const { queries, keys, isRenormalised } = this.#axes(selection);
    const pattern = whole.measure === "scores" ? scoresOf(whole, queries, keys) : arrangedOf(whole, queries, keys, isRenormalised);
    this.chosen.set(whole, { as, pattern });
    return pattern;
  }

  /** What is drawn of a head: its cells as selected, its weights in place of scores that words have not; null until they have come. */
  drawn(place, selection) {
    const whole = this.whole(place, selection.measure);
    return (whole && this.arranged(whole, selection)) ?? (whole && this.told(place, selection));
  }

  /** What sentences are about: the same, but weights in place of scores. */
  told(place, selection) {
    const whole = this.whole(place, selection.measure === "scores" ? "weights" : selection.measure);
    return whole && this.arranged(whole, selection);
  }

  /** Whether special tokens are left out, and the first token: neither if nothing would remain. */
  hides(selection) {
    const { special, first } = this.#axes(selection);
    return { special, first };
  }

  /** Where the colours of a pattern end, so that resting places do not flatten them; null for its largest cell. */
  colourEnd(pattern, selection) {
    const isClipped = selection.clip && selection.colour === "linear" && pattern.measure !== "scores";
    return isClipped ? ordinaryEnd(pattern) : null;
  }

  #axes({ unit, special, withoutFirst, sentences }) {
    const sides = this.keys === this.queries ? [this.queries] : [this.queries, this.keys];
    const isHidden = special !== "shown" && !sides.some((side) => side.tokens.special.every(Boolean));
    let axes = sides.map((side) => (unit === "words" ? side.words : side.tokens));
    if (isHidden) axes = axes.map((entries) => kept(entries, (at) => !entries.special[at]));
    const hasMore = (entries) => entries.positions.some((position) => position > 0);
    const isFirstHidden = Boolean(withoutFirst) && axes.every(hasMore);
    if (isFirstHidden) axes = axes.map((entries) => kept(entries, (at) => entries.positions[at] > 0));
    let [queries, keys = queries] = axes;
    if (sentences && sentences !== "all" && sides.some((side) => side.tokens.segment.includes(1))) {
      const [ofQuery, ofKey] = sentences.split(" → ").map((side) => "AB".indexOf(side));
      [queries, keys] = [kept(queries, (at) => queries.segment[at] === ofQuery), kept(keys, (at) => keys.segment[at] === ofKey)];
    }
    const isRenormalised = special === "renormalised" && (isHidden || isFirstHidden);
    return { queries, keys, isRenormalised, special: isHidden, first: isFirstHidden };
  }

  #numberIn({ heads, perLayer }, { layer, head }) {
    const { counts } = this.document;
    if (heads !== "all") return heads.findIndex((place) => place[0] === layer && (perLayer || place[1] === head));
    if (!(layer >= 0 && layer < counts.length && (perLayer || (head >= 0 && head < counts[layer])))) return -1;
    return perLayer ? layer : counts.slice(0, layer).reduce((sum, count) => sum + count, head);
  }

  #weights(place, measure) {
    for (const block of this.blocks) {
      const number = block.cells.measure === measure ? this.#numberIn(block.cells, place) : -1;
      if (number < 0) continue;
      const nCell = this.queries.tokens.labels.length * this.keys.tokens.labels.length;
      block.numbers ??= numbersOfCodes(block.cells);
      return Float64Array.from(block.codes.subarray(number * nCell, (number + 1) * nCell), (code) => block.numbers[code]);
    }
    return null;
  }

  #pattern({ layer, head }, measure, weights) {
    const [queries, keys] = [this.queries.tokens, this.keys.tokens];
    return {
      ...{ measure, kind: this.document.kind, layer, head: isOfLayer(measure) ? null : head },
      ...{ queries, keys, weights, hidden: new Float64Array(queries.labels.length), isRenormalised: false },
    };
  }
}

/** The entry that a token belongs to; −1 where it is not shown. */
export function entryOf(entries, position) {
  const [first, stop] = entries.spans[position] ?? [];
  if (first === position && stop === position + 1) return position; // at once where every token is an entry
  return entries.spans.findIndex(([first, stop]) => first <= position && position < stop);
}

/** A side's tokens and its words, each as Entries. */
export function sideOf(side) {
  const [special, resting] = [new Set(side.special), new Set(side.resting)];
  const entriesOf = (spans, labels) => {
    const positions = spans.map(([first]) => first);
    return {
      ...{ labels, positions, spans, special: positions.map((at) => special.has(at)), resting: positions.map((at) => resting.has(at)) },
      ...{ segment: positions.map((at) => side.segment[at]), isWhole: true, side },
    };
  };
  const tokens = entriesOf(side.labels.map((_, at) => [at, at + 1]), side.labels);
  const words = side.words ? entriesOf(side.words.map(([first, stop]) => [first, stop]), side.words.map(([, , label]) => label)) : tokens;
  return { tokens, words };
}

// The entries for which `isKept(number)`.
function kept(entries, isKept) {
  const some = (list) => list.filter((_, at) => isKept(at));
  const spans = some(entries.spans);
  const nToken = spans.reduce((sum, [first, stop]) => sum + stop - first, 0);
  return {
    ...{ labels: some(entries.labels), positions: some(entries.positions), spans, special: some(entries.special) },
    ...{ resting: some(entries.resting), segment: some(entries.segment), isWhole: nToken === entries.side.labels.length, side: entries.side },
  };
}

function isSame(entries, wanted) {
  return entries.spans.length === wanted.spans.length && wanted.isWhole;
}

// Columns summed, rows averaged, what is hidden summed; as AttentionPattern.arranged.
function arrangedOf(whole, queries, keys, isRenormalised) {
  if (!isRenormalised && isSame(whole.queries, queries) && isSame(whole.keys, keys)) return whole;
  const nToken = whole.keys.labels.length;
  const [nRow, nColumn] = [queries.labels.length, keys.labels.length];
  const weights = new Float64Array(nRow * nColumn).fill(NaN);
  const hidden = new Float64Array(nRow);
  const isHidden = new Array(nToken).fill(true);
  for (const [first, stop] of keys.spans) isHidden.fill(false, first, stop);
  for (let row = 0; row < nRow; row++) {
    const [from, to] = queries.spans[row];
    const [averaged, isSeen, lost] = averagedRow(whole.weights, nToken, from, to, isHidden);
    const sums = keys.spans.map(([first, stop]) => sumBetween(averaged, first, stop));
    const remains = isRenormalised ? sumBetween(sums, 0, nColumn) : 1;
    for (let column = 0; column < nColumn; column++) {
      const [first, stop] = keys.spans[column];
      if (!isSeen.slice(first, stop).includes(true)) continue;
      weights[row * nColumn + column] = Math.fround(remains === 0 ? 0 : sums[column] / remains);
    }
    hidden[row] = Math.fround(lost);
  }
  return { ...whole, queries, keys, weights, hidden, isRenormalised };
}

// The mean of the rows of some tokens, which keys any of them may see, and the mean of what they give to hidden keys.
function averagedRow(weights, nToken, from, to, isHidden) {
  const sums = new Float64Array(nToken);
  const isSeen = new Array(nToken).fill(false);
  let lost = 0;
  for (let row = from; row < to; row++) {
    let lostHere = 0;
    for (let key = 0; key < nToken; key++) {
      const weight = weights[row * nToken + key];
      if (Number.isNaN(weight)) continue;
      isSeen[key] = true;
      sums[key] += weight;
      if (isHidden[key]) lostHere += weight;
    }
    lost += lostHere;
  }
  for (let key = 0; key < nToken; key++) sums[key] /= to - from;
  return [sums, isSeen, lost / (to - from)];
}

function sumBetween(numbers, first, stop) {
  let sum = 0;
  for (let at = first; at < stop; at++) sum += numbers[at];
  return sum;
}

// Scores as they are, of the tokens that are shown.
function scoresOf(whole, queries, keys) {
  if ([queries, keys].some(({ spans }) => spans.some(([first, stop]) => stop > first + 1))) return null;
  const nToken = whole.keys.labels.length;
  const cells = queries.positions.flatMap((row) => keys.positions.map((key) => whole.weights[row * nToken + key]));
  return { ...whole, queries, keys, weights: Float64Array.from(cells), hidden: new Float64Array(queries.labels.length) };
}

// The largest cell beside resting places, or the mean of all if that is larger; as `colour_end` of attnviz/heads/facts.py.
function ordinaryEnd({ weights, queries, keys }) {
  let [sum, largest, ordinary] = [0, 0, -Infinity];
  const nColumn = keys.labels.length;
  weights.forEach((weight, at) => {
    const number = Number.isNaN(weight) ? 0 : weight;
    sum += number;
    largest = Math.max(largest, number);
    if (!queries.special[Math.floor(at / nColumn)] && !keys.resting[at % nColumn]) ordinary = Math.max(ordinary, number);
  });
  const end = Math.max(ordinary, Math.fround(sum / weights.length));
  return ordinary > -Infinity && end < largest ? end : null;
}
