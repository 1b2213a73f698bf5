// Tokens in one line, and arcs from one of them to what it attends to; a longer text is pushed sideways.
// Rests on svg and html.

const CHARACTER = 7.3; // px, of the token font at 12 px
const GAP = 14; // px between tokens
const TALLEST = 54; // px of an arc
const FLOOR = TALLEST + 8;
const WIDEST = 6; // px of a weight of 1
const FEWEST = 0.02; // a smaller weight has no arc
const LONGEST = 16; // characters of a label

function short(label) {
  return label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label;
}

/** The arc of a weight, from the middle of one token to that of another, or around itself. */
function arc(from, to, weight) {
  const half = Math.abs(to - from) / 2;
  const tall = Math.min(TALLEST, 12 + 0.6 * half);
  const path = half
    ? `M${from} ${FLOOR}A${half} ${tall} 0 0 ${Number(to > from)} ${to} ${FLOOR}`
    : `M${from - 6} ${FLOOR}a6 8 0 1 1 12 0`;
  const width = Math.max(0.8, WIDEST * weight);
  return draw("path", { d: path, class: "arc", "stroke-width": width, "stroke-opacity": 0.25 + 0.65 * weight });
}

function show({ data, parentElement }) {
  const place = parentElement.querySelector(".example_arcs");
  setColours(place, data.colours);
  const apart = data.query === null;
  const labels = apart ? [data.queryLabel, ...data.labels] : data.labels;
  const weights = apart ? [0, ...data.weights] : data.weights;
  const at = apart ? 0 : data.query;
  let left = GAP / 2;
  const tokens = labels.map((label) => {
    const written = short(label);
    const width = written.length * CHARACTER;
    const token = { written, left, middle: left + width / 2 };
    left += width + GAP;
    return token;
  });
  const arcs = weights
    .map((weight, key) => (weight < FEWEST ? null : arc(tokens[at].middle, tokens[key].middle, weight)))
    .filter(Boolean);
  const texts = tokens.map((token, number) =>
    draw("text", { x: token.left, y: FLOOR + 13, class: number === at ? "query" : "" }, token.written),
  );
  const strongest = weights.indexOf(Math.max(...weights));
  const said = `${data.queryLabel} attends to ${labels[strongest]} with ${Math.round(100 * weights[strongest])}%`;
  const picture = draw("svg", { width: left, height: FLOOR + 20, role: "img", "aria-label": said }, ...arcs, ...texts);
  const box = make("div", "box", picture);
  box.tabIndex = 0; // so that a long text can be pushed by key
  place.replaceChildren(box);
  box.scrollLeft = tokens[at].middle - box.clientWidth / 2; // the query in the middle of a narrow window
}
