// What a pattern says of a query, in words: the rules of attnviz/heads/facts.py and the sentences of ui/words, word for word. A query and
// a key are given by their positions.

import { numberText, shareText } from "./numbers.js";
import { entryOf, holdsShares } from "./cells.js";

const NOTABLE = 2; // what a headline names has at least this multiple of the mean of the other keys
const MOST_NAMED = 3;
export const MIXED = { alti: "by ALTI", value_zeroing: "by value zeroing" };
const ALMOST = 1e-9; // sums and means that differ by less are equal: the order of a sum decides nothing

/** The key of a query that says most about the text; the first key if the query is not shown. */
export function strongestKey(pattern, query) {
  const { queries, keys, kind } = pattern;
  const row = entryOf(queries, query);
  if (row < 0) return keys.positions[0];
  const weights = rowOf(pattern, row);
  let [best, least, most] = [0, Infinity, -Infinity];
  weights.forEach((weight, column) => {
    const isItself = kind !== "cross" && keys.positions[column] === queries.positions[row];
    const isRest = keys.resting[column] && !keys.special[column];
    const aside = 16 * Number.isNaN(weight) + 4 * keys.special[column] + 2 * isItself + isRest;
    const number = Number.isNaN(weight) ? 0 : weight;
    if (aside > least || (aside === least && !(number > most))) return;
    [best, least, most] = [column, aside, number];
  });
  return keys.positions[best];
}

/** The keys that a query may see, the strongest first: {column, position, label, weight}. */
export function rankedKeys(pattern, query) {
  const row = entryOf(pattern.queries, query);
  if (row < 0) return [];
  const { labels, positions } = pattern.keys;
  const all = Array.from(rowOf(pattern, row), (weight, column) => ({ column, position: positions[column], label: labels[column], weight }));
  return all.filter(({ weight }) => !Number.isNaN(weight)).sort((one, other) => other.weight - one.weight);
}

/** The layer and head of a pattern: "Layer 3, head 1". */
export function placeWords({ measure, layer, head }) {
  if (measure === "rollout") return layer ? `Layers 0 to ${layer}, all heads` : "Layer 0, all heads";
  return `Layer ${layer}, ${head === null ? "all heads" : `head ${head}`}`;
}

/** Where a query mostly attends, or that it spreads its attention; then the selected key, if that is another. */
export function headlineWords(pattern, query, key) {
  const { queries, keys } = pattern;
  const [row, column] = [entryOf(queries, query), entryOf(keys, key)];
  if (pattern.measure !== "weights" || row < 0 || column < 0) return findingWords(pattern, query, key);
  const facts = headlineOf(pattern, row);
  const selected = givenOf(pattern, row, column, shareText);
  const named = facts.named.length ? facts.named : selected.strongest;
  const sentence = facts.named.length ? looksWords(pattern, query, row, facts) : spreadsWords(pattern, query, facts, selected);
  const amount = shareText(selected.amount);
  let rest = `; ${nameOf(keys, key)} gets ${amount}`;
  if (isItself(pattern, query, key)) {
    rest = comesNext(pattern, row, column, facts) ? ` and at itself (${amount})` : `; it gives itself ${amount}`;
  }
  const isSaid = !named.length || named.includes(keys.positions[column]);
  return `${selected.ofShown ? "among the shown keys, " : ""}${sentence}${isSaid ? "" : rest}${hiddenWords(selected)}.`;
}

/** The weight of a query on a key, and the query's largest weight if that is another. */
export function findingWords(pattern, query, key) {
  const { queries, keys, measure } = pattern;
  const [row, column] = [entryOf(queries, query), entryOf(keys, key)];
  if (row < 0 || column < 0) return `${row < 0 ? nameOf(queries, query) : nameOf(keys, key)} is not shown.`;
  const written = (number) => amountText(pattern, number);
  const facts = givenOf(pattern, row, column, written);
  const [here, there, number] = [nameOf(queries, query), keyName(pattern, query, key), written(facts.amount)];
  const several = facts.strongest.length > 1;
  const each = `${written(facts.largest)}${several ? " each" : ""}`;
  const strongest = together(facts.strongest.map((one) => namedAgain(pattern, query, one)));
  const among = facts.ofShown ? "among the shown keys, " : "";
  const ofShown = facts.hidesKeys && !facts.ofShown ? "of the shown keys, " : "";
  const shares = `${ofShown}the largest share${several ? "s" : ""}, ${each},`;
  let [sentence, rest, hidden] = ["", "", ""];
  if (measure === "norms") {
    sentence = facts.ofShown
      ? `${among}${nameOf(keys, key)} has ${number} of the norm-based weights of ${here}`
      : `the norm-based weight from ${here} to ${there} is ${number}`;
    rest = `; ${ofShown}the largest, ${each}, ${several ? "are" : "is"} to ${strongest}`;
  } else if (measure in MIXED) {
    sentence = `${among}${MIXED[measure]}, ${number} of what this layer mixes into ${here} is from ${there}`;
    rest = `; ${shares} ${several ? "are" : "is"} from ${strongest}`;
    hidden = facts.hidden > 0 ? `; ${shareText(facts.hidden)} ${facts.ofShown ? "of all " : ""}from hidden tokens` : "";
  } else if (measure === "rollout") {
    sentence = `${among}rollout attributes ${number} of ${here} to ${there}`;
    rest = `; ${shares} to ${strongest}`;
    hidden = facts.hidden > 0 ? `; ${shareText(facts.hidden)} ${facts.ofShown ? "of all " : ""}to hidden tokens` : "";
  } else {
    sentence = `${among}${here} gives ${number} of its attention to ${there}`;
    rest = `; ${shares} ${several ? "go" : "goes"} to ${strongest}`;
    hidden = hiddenWords(facts);
  }
  const goesElsewhere = facts.strongest.length > 0 && !facts.isStrongest;
  return `${sentence}${goesElsewhere ? rest : ""}${hidden}.`;
}

/** Where the colours of a pattern end; empty if at its largest cell. */
export function clippedWords(pattern, end) {
  if (end === null) return "";
  const { queries, keys, weights, measure } = pattern;
  const nColumn = keys.labels.length;
  const isSpecial = weights.some((weight, at) => weight > end && (queries.special[Math.floor(at / nColumn)] || keys.special[at % nColumn]));
  return `Colours end at ${measureText(end, measure)}: cells of ${isSpecial ? "special tokens" : "the first token"} hold more.`;
}

/** A cell's number in words: a share of attention as "47.5%", a norm-based weight or a score as "1.47". */
export function measureText(number, measure) {
  return holdsShares(measure) ? shareText(number) : numberText(number);
}

/** The same for a row that may be divided by its sum and then holds shares, whatever the measure. */
export function amountText({ isRenormalised, measure }, number) {
  return isRenormalised ? shareText(number) : measureText(number, measure);
}

/** The entry of a token in quotation marks, with its position if its label occurs twice. */
export function nameOf(entries, position) {
  const entry = entryOf(entries, position);
  const labels = entry < 0 ? entries.side.labels : entries.labels;
  const label = labels[entry < 0 ? position : entry];
  const isTwice = labels.indexOf(label) !== labels.lastIndexOf(label);
  return `“${isolated(label)}”${isTwice ? ` (token ${entry < 0 ? position : entries.positions[entry]})` : ""}`;
}

/** A label in isolates if it runs from right to left, so that it does not change the order of the text around it. */
export function isolated(label) {
  return RUNS_LEFT.test(label) ? `\u2068${label}\u2069` : label;
}

// Characters of the bidirectional classes R, AL and AN: Unicode Standard 14.
const RUNS_LEFT = /[\u05be\u05c0\u05c3\u05c6\u05d0-\u0605\u0608\u060b\u060d\u061b-\u064a\u0660-\u0669\u066b-\u066f\u0671-\u06d5\u06dd\u06e5-\u06e6\u06ee-\u06ef\u06fa-\u0710\u0712-\u072f\u074d-\u07a5\u07b1-\u07ea\u07f4-\u07f5\u07fa\u07fe-\u0815\u081a\u0824\u0828\u0830-\u0858\u085e-\u0891\u08a0-\u08c9\u08e2\u200f\ufb1d\ufb1f-\ufb28\ufb2a-\ufd3d\ufd50-\ufdc7\ufdf0-\ufdfc\ufe70-\ufefc\u{10800}-\u{1091b}\u{10920}-\u{10a00}\u{10a10}-\u{10a35}\u{10a40}-\u{10ae4}\u{10aeb}-\u{10b35}\u{10b40}-\u{10d23}\u{10d30}-\u{10ea9}\u{10ead}-\u{10f45}\u{10f51}-\u{10f81}\u{10f86}-\u{10ff6}\u{1e800}-\u{1e8cf}\u{1e900}-\u{1e943}\u{1e94b}-\u{1eebb}]/u;

// The weight of a query on a key, and the keys with the largest of its row; numbers that are written alike are equal.
function givenOf(pattern, row, column, written) {
  const { keys } = pattern;
  const weights = rowOf(pattern, row).map(orZero);
  const largest = weights.reduce((most, weight) => Math.max(most, weight), -Infinity);
  const asWritten = written(largest);
  const strongest = largest === 0 ? [] : keys.positions.filter((_, at) => written(weights[at]) === asWritten);
  return {
    ...{ amount: weights[column], largest, strongest, hidden: pattern.hidden[row], ofShown: pattern.isRenormalised },
    ...{ isStrongest: !strongest.length || strongest.includes(keys.positions[column]), hidesKeys: !keys.isWhole },
  };
}

// The fewest keys that hold more than half of a row, hidden keys included; of equal keys all or none.
function headlineOf(pattern, row) {
  const { positions } = pattern.keys;
  const all = Array.from(rowOf(pattern, row), (weight, column) => ({ weight, column }));
  const order = all.filter(({ weight }) => !Number.isNaN(weight)).sort((one, other) => other.weight - one.weight);
  const sum = order.reduce((sofar, { weight }) => sofar + weight, 0);
  const half = (sum + (pattern.isRenormalised ? 0 : pattern.hidden[row])) / 2 + ALMOST;
  const facts = { named: [], nSeen: order.length, equal: order.length ? Math.fround(sum / order.length) : 0 };
  let reached = 0;
  const last = order.find(({ weight }) => (reached += weight) > half);
  if (!last) return facts;
  const asWritten = shareText(last.weight);
  const isNamed = ({ weight }) => weight >= last.weight || shareText(weight) === asWritten;
  const others = order.filter((one) => !isNamed(one));
  const named = order.slice(0, order.length - others.length);
  const mean = others.reduce((sofar, { weight }) => sofar + weight, 0) / others.length;
  const isNotable = others.length ? named.at(-1).weight >= NOTABLE * mean * (1 - ALMOST) : order.length === 1;
  return named.length <= MOST_NAMED && isNotable ? { ...facts, named: named.map(({ column }) => positions[column]) } : facts;
}

// The few keys, each with its weight.
function looksWords(pattern, query, row, { named, nSeen }) {
  const weights = rowOf(pattern, row);
  const each = named.map((key) => `${keyName(pattern, query, key)} (${shareText(weights[pattern.keys.positions.indexOf(key)])})`);
  const isAll = each.length === nSeen && !pattern.hidden[row];
  const listed = each.length > 1 ? `${each.slice(0, -1).join(", ")} and ${each.at(-1)}` : each[0];
  return `${nameOf(pattern.queries, query)} looks ${isAll ? "only" : "mostly"} at ${listed}`;
}

// The strongest key's weight, compared with an equal share.
function spreadsWords(pattern, query, facts, { hidesKeys, ofShown, strongest, largest }) {
  const here = nameOf(pattern.queries, query);
  const isPart = hidesKeys && !ofShown;
  const shown = isPart ? "shown " : "";
  const most = shareText(largest);
  if (!strongest.length) return `${here} gives no ${shown}key anything`;
  if (facts.nSeen === 1) return `${here} gives ${most} of its attention to ${keyName(pattern, query, strongest[0])}`;
  const keys = `${facts.nSeen.toLocaleString("en")} ${shown}keys`;
  if (strongest.length === facts.nSeen) return `${here} gives each of ${keys} ${most} of its attention`;
  const several = strongest.length > 1;
  const shares = `the largest share${several ? "s" : ""}, ${most}${several ? " each" : ""},`;
  const to = together(strongest.map((key) => namedAgain(pattern, query, key)));
  const equal = shareText(facts.equal);
  if (isPart) return `of ${keys}, ${here} gives ${shares} to ${to}; an equal share is ${equal}`;
  return `${here} spreads its attention over ${keys}; ${shares} ${several ? "go" : "goes"} to ${to}; an equal share is ${equal}`;
}

// Whether no shown key that is not named has more than this one, after keys that are.
function comesNext(pattern, row, column, { named }) {
  const weights = rowOf(pattern, row).map(orZero);
  return named.length > 0 && weights.every((weight, at) => named.includes(pattern.keys.positions[at]) || weights[column] >= weight);
}

function hiddenWords({ hidden, ofShown }) {
  return hidden > 0 ? `; ${shareText(hidden)} of ${ofShown ? "all " : ""}its attention goes to hidden keys` : "";
}

function keyName(pattern, query, key) {
  return isItself(pattern, query, key) ? "itself" : nameOf(pattern.keys, key);
}

function namedAgain(pattern, query, key) {
  return `${nameOf(pattern.keys, key)}${isItself(pattern, query, key) ? " itself" : ""}`;
}

// Whether a query and a key are the same token or word; those of cross-attention are of two texts.
function isItself({ kind, queries, keys }, query, key) {
  const [row, column] = [entryOf(queries, query), entryOf(keys, key)];
  if (kind === "cross" || row < 0 || column < 0) return false;
  return queries.spans[row].every((end, at) => end === keys.spans[column][at]);
}

function together(names) {
  return names.length > 2 ? `${names[0]} and ${names.length - 1} others` : names.join(" and ");
}

// The numbers of a row; of a long text only the selected one is here.
function rowOf({ weights, keys, row: only }, row) {
  if (only !== undefined) return weights;
  return weights.subarray(row * keys.labels.length, (row + 1) * keys.labels.length);
}

function orZero(weight) {
  return Number.isNaN(weight) ? 0 : weight;
}
