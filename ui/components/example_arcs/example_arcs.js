// Tokens in one line, and arcs from one of them to what it attends to; a long text scrolls sideways.
// Rests on svg and html.

const CHARACTER = 7.3; // px, of the token font at 12 px
const GAP = 14; // px between tokens
const TALLEST = 54; // px of an arc
const TALL = 38; // px where a text has a single arc, whose weight is written below it
const NEAR = 70; // px from a token to the weight of its arc, so that a phone shows both
const ROOM = 8; // px above the arcs
const WIDEST = 6; // px of a weight of 1
const FEWEST = 0.02; // a smaller weight has no arc
const LONGEST = 16; // characters of a label

function short(label) {
  return label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label;
}

/** How tall an arc over this distance is. */
function height(distance, tallest) {
  return Math.min(tallest, 12 + 0.3 * distance);
}

/** The arc of a weight, from the middle of one token to that of another, or around itself. */
function arc(from, to, weight, tallest) {
  const floor = tallest + ROOM;
  const half = Math.abs(to - from) / 2;
  const path = half
    ? `M${from} ${floor}A${half} ${height(2 * half, tallest)} 0 0 ${Number(to > from)} ${to} ${floor}`
    : `M${from - 6} ${floor}a6 8 0 1 1 12 0`;
  const width = Math.max(0.8, WIDEST * weight);
  return draw("path", { d: path, class: "arc", "stroke-width": width, "stroke-opacity": 0.25 + 0.65 * weight });
}

/** The weight of a single arc, below it and near where it begins; above the loop of a token that attends to itself. */
function share(from, to, weight) {
  const floor = TALL + ROOM;
  const half = Math.abs(to - from) / 2;
  const along = Math.min(half, NEAR);
  const rise = half ? Math.sqrt(1 - ((half - along) / half) ** 2) * height(2 * half, TALL) : 35;
  const x = from + Math.sign(to - from) * along;
  return draw("text", { x, y: floor - rise + 15, class: "key", "text-anchor": "middle" }, `${Math.round(100 * weight)}%`);
}

function show({ data, parentElement }) {
  const place = parentElement.querySelector(".example_arcs");
  setColours(place, data.colours);
  const apart = data.query === null;
  const tallest = data.marksKey ? TALL : TALLEST;
  const floor = tallest + ROOM;
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
    .map((weight, key) => (weight < FEWEST ? null : arc(tokens[at].middle, tokens[key].middle, weight, tallest)))
    .filter(Boolean);
  const strongest = weights.indexOf(Math.max(...weights));
  const marked = data.marksKey ? strongest : -1;
  const texts = tokens.map((token, number) =>
    draw(
      "text",
      { x: token.left, y: floor + 13, class: number === at ? "query" : number === marked ? "key" : "" },
      token.written,
    ),
  );
  if (data.marksKey) texts.push(share(tokens[at].middle, tokens[strongest].middle, weights[strongest]));
  const sentence = `${data.queryLabel} attends to ${labels[strongest]} with ${Math.round(100 * weights[strongest])}%`;
  const picture = draw("svg", { width: left, height: floor + 20, role: "img", "aria-label": sentence }, ...arcs, ...texts);
  const box = make("div", "box", picture);
  box.tabIndex = 0; // so that a long text can be pushed by key
  place.replaceChildren(box);
  box.scrollLeft = tokens[at].middle - box.clientWidth / 2; // the query in the middle of a narrow window
}
