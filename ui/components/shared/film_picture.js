// What the film of one head shows at any moment, as one SVG: numbers and colours come from the server, and are placed,
// moved and faded here. Numbers are swapped and never counted up, so that every visible number is the model's.
// The style is in attributes, so that the SVG can be saved unchanged.

const [TEXT, SMALL] = [13, 12]; // px, as are all sizes
const [ROW, STRIP, CAPTION, GAP] = [26, 16, 24, 14];
const SPACES = "\u00a0\u00a0"; // between two numbers; SVG makes one of two that are not these
const LAST = 6; // stage
const REST = 0.25; // share of the way between two stages, at either end, on which nothing moves

const ease = (share) => share * share * (3 - 2 * share);

/** What a list of seven says between two stages; `sharp` for texts, of which one goes before the next one comes. */
function between(values, at, sharp = false) {
  const from = Math.min(Math.floor(at), LAST - 1);
  const share = at - from;
  if (sharp && values[from] !== values[from + 1]) return share < 0.5 ? values[from] * (1 - 2 * share) : values[from + 1] * (2 * share - 1);
  return values[from] + (values[from + 1] - values[from]) * share;
}

/** A picture in this SVG. */
function filmIn(svg) {
  return new Picture(svg);
}

/** Everything that is ever seen, and how opaque it is and where in each stage. */
class Picture {
  constructor(svg) {
    this.svg = svg;
  }

  build(data, width) {
    Object.assign(this, { data, width, items: [], bars: [], strips: [], flying: [] });
    this.svg.replaceChildren();
    const { query, rows, output, colours } = data;
    measureIn(`${TEXT}px ${data.tokenFont}`);
    const labels = [query.label, "output", ...rows.map((row) => row.label)];
    this.room = Math.min(Math.max(...labels.map(widthOf)) + 8, Math.max(76, 0.24 * width));
    this.digitLook = { "text-anchor": "end", "font-family": data.tokenFont };
    this.left = this.room + 22;
    this.slot = (width - this.left - GAP) / 2 - 3; // beside the frame of the selected key
    this.right = this.left + this.slot + GAP;
    this.head = ROW + 4 + CAPTION;
    this.foot = this.head + rows.length * ROW + 6;
    const height = this.foot + ROW + 4;
    put(this.svg, { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": data.font, "font-size": TEXT });

    this.label(query.label, 2, colours.query, 700);
    for (const [letter, shown, colour] of [["x", [1, 0, 0, 0, 0, 0, 0], colours.text], ["q", [0, 1, 1, 1, 1, 1, 1], colours.query]]) {
      if (!query[letter]) continue;
      this.write(letter, this.left - 14, 2, shown, { fill: colour, "font-weight": 700 });
      this.strip(query[letter], this.left, 2, shown);
      this.numbers(query[letter], 2, shown, colour);
    }
    this.captions();
    this.scaleOf(rows);
    rows.forEach((row, at) => this.row(row, this.head + at * ROW));
    this.sum(output);
    this.flights(rows);
  }

  add(node, opacity, { x = null, y = null, sharp = false } = {}) {
    this.items.push({ node, opacity, x, y, sharp });
    this.svg.append(node);
    return node;
  }

  write(text, x, top, opacity, attributes = {}) {
    const isShort = attributes["text-anchor"] === "end";
    const at = { x, y: top + ROW / 2 + 0.35 * TEXT, fill: this.data.colours.text, "font-size": isShort ? SMALL : TEXT };
    return this.add(draw("text", { ...at, ...attributes }, text), opacity, { sharp: true });
  }

  label(text, top, fill, weight = 400) {
    measureIn(`${weight} ${TEXT}px ${this.data.tokenFont}`);
    const style = { fill, "font-weight": weight, "font-family": this.data.tokenFont };
    this.write(shortened(text, this.room - 4), 4, top, new Array(LAST + 1).fill(1), style);
  }

  strip(vector, x, top, opacity, places = {}) {
    const { data, slot } = this;
    const wide = slot / vector.tones.length;
    const edge = { x: data.colours.quiet, q: data.colours.query, k: data.colours.key, v: data.colours.value }[vector.role];
    const cells = draw("g", { id: `film-strip-${this.strips.length}` });
    vector.tones.forEach((tone, at) =>
      cells.append(draw("rect", { x: (at * wide).toFixed(2), y: 0, width: (wide + 0.2).toFixed(2), height: STRIP, fill: data.scale[tone], "data-cell": at }))
    );
    cells.append(draw("rect", { x: 0, y: 0, width: slot, height: STRIP, fill: "none", stroke: edge, "stroke-width": 1.5, "pointer-events": "none" }));
    const y = top + (ROW - STRIP) / 2;
    const node = draw("g", { "data-strip": this.strips.length }, cells);
    this.strips.push({ cells, vector });
    this.add(node, opacity, { x: places.x ?? new Array(LAST + 1).fill(x), y: new Array(LAST + 1).fill(y) });
  }

  // The first numbers of a vector, as many as fit.
  numbers(vector, top, opacity, fill) {
    measureIn(`${SMALL}px ${this.data.tokenFont}`);
    let text = "";
    for (const number of vector.first) {
      const longer = text ? `${text}${SPACES}${number}` : number;
      if (widthOf(`${longer} …`) > this.slot) break;
      text = longer;
    }
    if (text && vector.size > text.split(SPACES).length) text += " …";
    this.write(text, this.right, top, opacity, { fill, "font-size": SMALL, "font-family": this.data.tokenFont });
  }

  captions() {
    const { data: { colours, score }, left, right } = this;
    const captions = [
      ["x", "the first numbers of x", colours.text, colours.text],
      ["k, the keys", "v, the values", colours.key, colours.value],
      ["k, the keys", "q · k", colours.key, colours.text],
      ["k, the keys", score, colours.key, colours.text],
      ["e^(score − largest)", "weight", colours.text, colours.text],
      ["weight × v", "weight", colours.value, colours.text],
      ["weight × v", "weight", colours.value, colours.text],
    ];
    for (const [side, x] of [left, right].entries()) {
      let first = 0;
      while (first <= LAST) { // one text for as long as it stays
        let last = first;
        while (last < LAST && captions[last + 1][side] === captions[first][side]) last++;
        const opacity = captions.map((_, at) => (at >= first && at <= last ? 1 : 0));
        this.write(captions[first][side], x, ROW + 4, opacity, { fill: captions[first][2 + side], "font-size": SMALL });
        first = last + 1;
      }
    }
  }

  // Scales: one for products and scores, so that the division is visible; weights from 0 to 1.
  scaleOf(rows) {
    const written = rows.flatMap((row) => [row.product, row.score, row.weight, row.exponential]).filter(Boolean);
    measureIn(`${SMALL}px ${this.data.tokenFont}`);
    this.digits = Math.max(...written.map(({ text }) => widthOf(text)), widthOf("masked")) + 2;
    const start = this.right + this.digits + 8;
    const room = Math.max(0, this.right + this.slot - start - 2); // none in a window too narrow for the numbers
    const numbers = rows.flatMap((row) => [row.product?.number ?? 0, row.score?.number ?? 0]);
    const [low, high] = [Math.min(0, ...numbers), Math.max(0, ...numbers)];
    const zero = start + (room * -low) / (high - low || 1);
    this.zeros = [zero, zero, zero, zero, start, start, start];
    const most = Math.max(1, ...rows.map((row) => row.exponential?.number ?? 0)); // of many keys together it is more than 1
    this.long = { score: room / (high - low || 1), weight: room, exponential: room / most };
  }

  row(row, top) {
    const { data: { colours }, left, right } = this;
    if (row.picked) {
      const frame = draw("rect", { x: 1, y: top + 1, width: this.width - 2, height: ROW - 2, rx: 4, fill: "none", stroke: colours.picked });
      this.add(frame, new Array(LAST + 1).fill(1));
    }
    this.label(row.label, top, row.special ? colours.quiet : colours.text, row.picked ? 700 : 400);
    if (row.x) {
      this.strip(row.x, left, top, [1, 0, 0, 0, 0, 0, 0]);
      this.numbers(row.x, top, [1, 0, 0, 0, 0, 0, 0], colours.text);
    }
    if (row.k) this.strip(row.k, left, top, [0, 1, 1, 1, 0, 0, 0]);
    const own = [0, row.k ? 1 : 0, 0, 0, 0, row.opacity, row.opacity];
    this.strip(row.v, left, top, own, { x: [right, right, right, left, left, left, left] });
    if (row.exponential) {
      const length = row.exponential.number * this.long.exponential;
      this.write(row.exponential.text, left + this.digits, top, [0, 0, 0, 0, 1, 0, 0], this.digitLook);
      const bar = draw("rect", { x: left + this.digits + 8, y: top + 7, width: length, height: ROW - 14, fill: colours.quiet, "pointer-events": "none" });
      this.add(bar, [0, 0, 0, 0, 1, 0, 0]);
    }
    for (const [number, opacity] of [[row.product, [0, 0, 1, 0, 0, 0, 0]], [row.score, [0, 0, 0, 1, 0, 0, 0]], [row.weight, [0, 0, 0, 0, 1, 1, 1]]]) {
      if (!number) continue;
      const fill = number.number === null ? colours.quiet : colours.text;
      this.write(number.text, right + this.digits, top, opacity, { ...this.digitLook, fill });
    }
    const [product, score] = [row.product, row.score].map((cell) => (cell?.number ?? 0) * this.long.score);
    const weight = row.weight.number * this.long.weight;
    const bar = draw("rect", { y: top + 7, height: ROW - 14, "pointer-events": "none" });
    const line = draw("line", { y1: top + 3, y2: top + ROW - 3, stroke: colours.edge });
    this.bars.push({ bar, line, lengths: [0, 0, product, score, weight, weight, weight] });
    const shown = [0, 0, 1, 1, 1, 1, 1];
    this.add(bar, shown);
    this.add(line, shown);
  }

  // Sums of the rows, below a line: the weights add up to 1, the weighted values to the output.
  sum(output) {
    const { data: { colours, total }, foot, width } = this;
    this.add(draw("line", { x1: 0, x2: width, y1: foot - 3, y2: foot - 3, stroke: colours.quiet }), [0, 0, 0, 0, 1, 1, 1]);
    this.write("sum", 4, foot, [0, 0, 0, 0, 1, 1, 0]);
    this.write(total, this.right + this.digits, foot, [0, 0, 0, 0, 1, 1, 0], this.digitLook);
    this.write(this.data.exponentials, this.left + this.digits, foot, [0, 0, 0, 0, 1, 0, 0], this.digitLook);
    this.write("output", 4, foot, [0, 0, 0, 0, 0, 0, 1], { fill: colours.value, "font-weight": 700 });
    this.strip(output, this.left, foot, [0, 0, 0, 0, 0, 0, 1]);
    this.numbers(output, foot, [0, 0, 0, 0, 0, 0, 1], colours.value);
  }

  // What moves between two stages: the query to every key, every value to the sum.
  flights(rows) {
    const beside = (ROW - STRIP) / 2;
    rows.forEach((row, at) => {
      const top = this.head + at * ROW + beside;
      if (row.k) this.fly(this.data.query.q, 1, 2 + beside, top, 0.7);
      this.fly(row.v, LAST - 1, top, this.foot + beside, row.opacity);
    });
  }

  fly(vector, stage, from, to, most) {
    const { id } = this.strips.find((strip) => strip.vector === vector).cells;
    const node = draw("use", { href: `#${id}`, "pointer-events": "none" });
    this.flying.push({ node, stage, from, to, most });
    this.svg.append(node);
  }

  /** Shows a moment, from 0, the first stage, to 6. */
  show(moment) {
    const stage = Math.min(Math.floor(moment), LAST - 1);
    const at = stage + ease(Math.min(1, Math.max(0, (moment - stage - REST) / (1 - 2 * REST))));
    for (const { node, opacity, x, y, sharp } of this.items) {
      const shown = between(opacity, at, sharp);
      put(node, { opacity: shown.toFixed(3), visibility: shown > 0 ? "visible" : "hidden" });
      if (x) node.setAttribute("transform", `translate(${between(x, at).toFixed(2)} ${between(y, at).toFixed(2)})`);
    }
    for (const { node, stage: start, from, to, most } of this.flying) {
      const share = Math.min(1, Math.max(0, at - start));
      const shown = most * Math.min(1, 5 * share, 5 * (1 - share));
      put(node, { opacity: shown.toFixed(3), visibility: shown > 0 ? "visible" : "hidden" });
      node.setAttribute("transform", `translate(${this.left.toFixed(2)} ${(from + (to - from) * share).toFixed(2)})`);
    }
    const { strong, grows, falls } = this.data.colours;
    for (const { bar, line, lengths } of this.bars) {
      const [zero, length] = [between(this.zeros, at), between(lengths, at)];
      const fill = at > 3.5 ? strong : length < 0 ? falls : grows;
      put(bar, { x: (zero + Math.min(0, length)).toFixed(2), width: Math.abs(length).toFixed(2), fill });
      put(line, { x1: zero.toFixed(2), x2: zero.toFixed(2) });
    }
  }
}
