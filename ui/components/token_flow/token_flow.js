// Two columns of tokens, queries left and keys right, joined by lines; one inline SVG. Hovering over a token, or moving the
// focus to it, shows only its lines, with their numbers; a click or Enter keeps it, Escape clears it. All of this happens
// here: the server is told only which token is kept.
// The style is in attributes, so that the SVG can be saved unchanged. Rests on svg, html, numbers, measure, renew and
// flow_legend.

const TEXT = 13; // px, as are all sizes
const LEAST_GAP = 15; // between the lines of two labels that can both be read
const [ONE_LOOK, LONGEST] = [560, 960]; // height of rows that are all seen at once; before labels are left out
const [THINNEST_ROW, USUAL_ROW, TALLEST_ROW] = [4, 32, 52];
const BESIDE = 400; // what a page has above and below its rows
const ROW_HEAD = 24;
const PAD = 8;
const NUMBER = 42; // least width of a number
const MOST_SAID = 6;

class Flow {
  constructor(root) {
    this.root = root;
    this.live = makeLive();
    this.svg = draw("svg", { role: "group", tabindex: -1 }); // Chromium would stop at it, since it listens to the focus
    this.scroll = make("div", "scroll", this.svg);
    const group = (key) => keyed(draw("g", { "pointer-events": "none" }), key);
    [this.all, this.alone, this.frames] = ["all", "alone", "frames"].map(group);
    this.frames.setAttribute("class", "frames"); // a saved picture leaves them out
    root.replaceChildren(this.live, this.scroll);
    this.hidden = new Set(); // matrices switched off in the legend
    this.hovered = this.focused = this.kept = this.sent = null; // tokens are [side, position]
    this.svg.addEventListener("pointerover", (event) => this.hover(event));
    this.svg.addEventListener("pointerleave", () => this.point(null));
    this.svg.addEventListener("focusin", (event) => this.focus(event));
    this.svg.addEventListener("focusout", () => this.drawing || this.show({ focused: null }));
    this.svg.addEventListener("click", (event) => this.click(event.target));
    this.svg.addEventListener("keydown", (event) => this.press(event));
  }

  update({ data, setTriggerValue }) {
    this.data = data;
    this.tell = (kept) => setTriggerValue("keep", kept ?? ["", 0]);
    // The server's state counts, unless it does not yet include the last click.
    if (this.sent === null) this.kept = data.kept;
    else if (String(this.sent) === String(data.kept ?? "")) this.sent = null;
    this.sides = { query: data.queries, key: data.keys };
    this.partners = { query: data.queries.labels.map(() => []), key: data.keys.labels.map(() => []) };
    data.lines.weight.forEach((weight, index) => {
      const line = { weight };
      for (const name of ["matrix", "query", "key", "drawn"]) line[name] = data.lines[name][index];
      this.partners.query[line.query].push(line);
      this.partners.key[line.key].push(line);
    });
    this.svg.setAttribute("aria-label", data.name);
    this.root.style.setProperty("--picked", data.colours.picked);
    this.live.style.color = data.colours.text;
    this.build();
  }

  // Height that ui/components/present leaves where the figure is presented; 0 elsewhere.
  roomPresented() {
    return parseFloat(this.scroll.style.getPropertyValue("--room")) || 0;
  }

  // The row of a token, by the token's position, which stays the same when heads and thresholds change.
  row(token) {
    const row = token ? this.sides[token[0]].positions.indexOf(token[1]) : -1;
    return row < 0 ? null : { side: token[0], row };
  }

  get active() {
    return this.row(this.hovered) ?? this.row(this.focused) ?? this.row(this.kept);
  }

  linesOf({ side, row }) {
    const shown = this.partners[side][row].filter((line) => !this.hidden.has(this.data.matrices[line.matrix].name));
    return shown.sort((line, other) => other.weight - line.weight);
  }

  // A token's numbers in words.
  describe({ side, row }) {
    const { data } = this;
    const [other, arrow] = side === "query" ? ["key", "→"] : ["query", "←"];
    const lines = this.linesOf({ side, row });
    const parts = data.matrices.flatMap((matrix, index) => {
      const own = lines.filter((line) => line.matrix === index);
      if (!own.length) return [];
      const strongest = own.slice(0, MOST_SAID).map((line) => `${this.sides[other].names[line[other]]} ${numberText(line.weight)}`);
      if (own.length > MOST_SAID) strongest.push(`${own.length - MOST_SAID} weaker`);
      return [(data.matrices.length > 1 ? `${matrix.name}: ` : "") + strongest.join(", ")];
    });
    return `${side} ${this.sides[side].names[row]} ${parts.length ? `${arrow} ${parts.join("; ")}` : "has no line that is drawn"}`;
  }

  build() {
    const { data, sides, data: { colours } } = this;
    const active = () => this.svg.contains(this.svg.getRootNode().activeElement);
    const hadFocus = active();
    this.drawing = true;
    measureIn(`${TEXT}px ${data.font}`);
    this.width = Math.max(240, this.root.clientWidth);
    const count = Math.max(sides.query.labels.length, sides.key.labels.length);
    const written = ["query", "key", ...sides.query.labels, ...sides.key.labels];
    const widest = Math.max(...written.map(widthOf));
    this.room = Math.min(widest + 2 * PAD, 0.34 * this.width);
    this.ends = { query: this.room + 2, key: this.width - this.room - 2 };

    const legend = drawFlowLegend(data, this.hidden, this.width);
    this.top = legend.height + ROW_HEAD;
    const usual = Math.min(USUAL_ROW, Math.max(ONE_LOOK / count, Math.min(LEAST_GAP, LONGEST / count), THINNEST_ROW));
    this.presented = this.roomPresented();
    const [least, room] = this.presented ? [Math.min(usual, LEAST_GAP), this.presented - this.top - PAD] : [usual, window.innerHeight - BESIDE];
    this.pitch = Math.max(least, Math.min(TALLEST_ROW, room / count)); // a short text fills the window
    const height = this.top + count * this.pitch + PAD;
    put(this.svg, { width: this.width, height, viewBox: `0 0 ${this.width} ${height}`, "font-family": data.font, "font-size": TEXT });
    this.all.replaceChildren();
    this.frames.setAttribute("stroke", colours.picked);
    const tokens = [];
    const parts = [legend.group];
    for (const side of ["query", "key"]) {
      const x = side === "query" ? this.room - PAD : this.width - this.room + PAD;
      const anchor = side === "query" ? "end" : "start";
      parts.push(draw("text", { x, y: legend.height + 15, "text-anchor": anchor, fill: colours[side], "font-weight": 600 }, side));
      const border = sides[side].border;
      if (border !== null) {
        const y = this.top + border * this.pitch;
        const [x1, x2] = side === "query" ? [0, this.room + 24] : [this.width - this.room - 24, this.width];
        parts.push(draw("line", { class: "border", x1, x2, y1: y, y2: y, stroke: colours.quiet, "stroke-dasharray": "2 3" }));
      }
      sides[side].labels.forEach((label, row) => tokens.push(this.token(side, row, label, x, anchor)));
    }
    const drawn = renew(this.svg, [...parts, this.all, this.alone, this.frames, ...tokens]);
    const of = (side) => drawn.filter((element) => element.dataset.side === side);
    this.tokens = { query: of("query"), key: of("key") };
    this.rove(this.row(this.current) ?? this.row(this.kept) ?? { side: "query", row: Math.max(0, sides.query.picked ?? 0) });
    if (hadFocus && !active()) this.svg.querySelector("[data-side][tabindex='0']").focus();
    this.drawing = false;
    this.redraw();
    this.reveal();
  }

  // Scrolls a kept token into view: only the picture, never the page.
  reveal() {
    const kept = this.row(this.kept);
    if (!kept || String(this.kept) === this.revealed) return;
    this.revealed = String(this.kept);
    const [y, top, height] = [this.middle(kept.row), this.scroll.scrollTop, this.scroll.clientHeight];
    if (y < top || y > top + height) this.scroll.scrollTop = y - height / 2;
  }

  token(side, row, label, x, anchor) {
    const position = this.sides[side].positions[row];
    const [top, width] = [this.top + row * this.pitch, this.room - 2];
    const made = draw(
      "g",
      { role: "button", tabindex: -1, "data-side": side, "data-row": row, "data-position": position, "aria-label": this.describe({ side, row }) },
      draw("rect", { class: "place", x: side === "query" ? 1 : this.width - width - 1, y: top, width, height: this.pitch, fill: "none", "pointer-events": "all" }),
      draw("text", { x, y: top + this.pitch / 2 + 0.35 * TEXT, "text-anchor": anchor, "pointer-events": "none" }, shortened(label, this.room - PAD)),
    );
    return keyed(made, `${side} ${position}`);
  }

  middle(row) {
    return this.top + (row + 0.5) * this.pitch;
  }

  path(line, alone) {
    const { ends, data } = this;
    const beside = (line.matrix - (data.matrices.length - 1) / 2) * Math.min(5, 0.16 * this.pitch); // lines of several heads
    const [y1, y2, half] = [this.middle(line.query) + beside, this.middle(line.key) + beside, (ends.query + ends.key) / 2];
    const strength = Math.min(1, line.weight / data.largest);
    const [thinnest, widest] = alone ? [1.5, 8] : [0.75, Math.min(8, Math.max(2.5, 0.6 * this.pitch))];
    const faintest = alone ? 0.35 : 0.15;
    return draw("path", {
      class: "line",
      d: `M${ends.query} ${y1}C${half} ${y1} ${half} ${y2} ${ends.key} ${y2}`,
      fill: "none",
      stroke: data.matrices[line.matrix].colour,
      "stroke-width": Math.max(thinnest, widest * strength).toFixed(2),
      "stroke-opacity": (faintest + (0.95 - faintest) * Math.sqrt(strength)).toFixed(3),
      "stroke-dasharray": DASHES[line.matrix],
    });
  }

  // Redraws everything that depends on the hovered or kept token.
  redraw() {
    const { data, active } = this;
    const lines = active ? this.linesOf(active) : [];
    if (active === null && !this.all.childNodes.length) {
      const isShown = (line) => line.drawn && !this.hidden.has(data.matrices[line.matrix].name);
      const shown = this.partners.query.flat().filter(isShown);
      this.all.append(...shown.sort((line, other) => line.weight - other.weight).map((line) => this.path(line, false)));
    }
    this.all.setAttribute("display", active ? "none" : "inline");
    this.alone.replaceChildren(...lines.map((line) => this.path(line, true)).reverse());
    this.frames.replaceChildren();
    const other = active?.side === "query" ? "key" : "query";
    for (const side of ["query", "key"]) {
      const first = !active ? [] : side === active.side ? [active.row] : lines.map((line) => line[other]);
      this.labels(side, first, active);
    }
    if (active) this.numbers(lines, other);
    this.live.textContent = active ? this.describe(active) : matchMedia("(hover: none)").matches ? data.touchHint : data.hint;
  }

  // The labels of a side that fit: first these rows, then the selected one, then evenly spaced ones.
  labels(side, first, active) {
    const { colours } = this.data;
    const { labels, picked, special } = this.sides[side];
    const step = Math.ceil(LEAST_GAP / this.pitch);
    const taken = new Array(labels.length).fill(false);
    const visible = new Set();
    const place = (row) => {
      if (taken[row]) return;
      visible.add(row);
      taken.fill(true, Math.max(0, row - step + 1), row + step);
    };
    first.forEach(place);
    if (picked !== null) place(picked);
    for (let row = 0; row < labels.length; row += step) place(row);
    this.visible = { ...this.visible, [side]: visible };
    const kept = this.row(this.kept);
    const own = new Set(first);
    this.tokens[side].forEach((token, row) => {
      const text = token.lastChild;
      const isKept = kept?.side === side && kept.row === row;
      const isActive = active?.side === side && active.row === row;
      token.setAttribute("aria-pressed", isKept);
      text.setAttribute("display", visible.has(row) ? "inline" : "none");
      text.setAttribute("font-weight", isActive ? 700 : 400);
      text.setAttribute("fill", isActive ? colours[side] : (active ? own.has(row) : !special[row]) ? colours.text : colours.quiet);
      if (isKept || row === picked) this.frame(side, row, isKept ? 2 : 1);
    });
  }

  frame(side, row, width) {
    const height = Math.max(this.pitch, LEAST_GAP + 2) - 2;
    const x = side === "query" ? 2 : this.width - this.room + 2;
    this.frames.append(draw("rect", { x, y: this.middle(row) - height / 2, width: this.room - 4, height, rx: 5, fill: "none", "stroke-width": width }));
  }

  // A number at the far end of each line whose label is shown, a column for each matrix.
  numbers(lines, side) {
    const { data } = this;
    const shown = data.matrices.filter((matrix) => !this.hidden.has(matrix.name));
    const wide = Math.max(NUMBER, ...lines.map((line) => widthOf(numberText(line.weight)) + 8));
    for (const line of lines) {
      if (!this.visible[side].has(line[side])) continue;
      const place = 22 + shown.indexOf(data.matrices[line.matrix]) * wide;
      const x = side === "key" ? this.ends.key - place : this.ends.query + place;
      const text = numberText(line.weight);
      const [y, width] = [this.middle(line[side]), widthOf(text) + 6];
      const matrix = data.matrices[line.matrix];
      this.alone.append(
        draw("rect", { x: side === "key" ? x - width + 3 : x - 3, y: y - 8, width, height: 16, fill: data.colours.background }),
        draw("text", { class: "number", x, y: y + 0.35 * TEXT, "text-anchor": side === "key" ? "end" : "start", fill: matrix.colour, "data-of": matrix.name, "data-at": this.sides[side].positions[line[side]] }, text),
      );
    }
  }

  show(changes) {
    Object.assign(this, changes);
    this.redraw();
  }

  point(token) {
    if (String(token) !== String(this.hovered)) this.show({ hovered: token });
  }

  tokenAt(target) {
    const token = target.closest?.("[data-side]");
    return token ? [token.dataset.side, Number(token.dataset.position)] : null;
  }

  hover(event) {
    if (event.pointerType === "mouse") this.point(this.tokenAt(event.target));
  }

  focus(event) {
    if (this.drawing) return;
    const token = this.tokenAt(event.target);
    if (token === null) return;
    this.rove(this.row(token));
    if (event.target.matches(":focus-visible")) this.show({ focused: token });
  }

  // Sets the only token that Tab reaches; arrow keys lead to the others.
  rove(place) {
    this.svg.querySelector("[data-side][tabindex='0']")?.setAttribute("tabindex", -1);
    this.tokens[place.side][place.row].setAttribute("tabindex", 0);
    this.current = [place.side, this.sides[place.side].positions[place.row]];
  }

  click(target) {
    const token = this.tokenAt(target);
    const matrix = target.closest?.("[data-matrix]")?.dataset.matrix;
    if (token) this.keep(String(token) === String(this.kept) ? null : token);
    else if (matrix) {
      if (!this.hidden.delete(matrix)) this.hidden.add(matrix);
      this.build();
    }
  }

  keep(token) {
    if (String(token) === String(this.kept)) return;
    this.sent = token ?? "";
    this.show({ kept: token });
    this.tell(token);
  }

  press(event) {
    const token = this.tokenAt(event.target);
    if (event.key === "Enter" || event.key === " ") this.click(event.target);
    else if (event.key === "Escape") {
      this.show({ hovered: null, focused: null });
      this.keep(null);
    } else if (token) {
      const { side, row } = this.row(token);
      const last = this.tokens[side].length - 1;
      const other = side === "query" ? "key" : "query";
      const next = {
        ArrowDown: [side, Math.min(row + 1, last)],
        ArrowUp: [side, Math.max(row - 1, 0)],
        Home: [side, 0],
        End: [side, last],
        ArrowLeft: ["query", Math.min(row, this.tokens.query.length - 1)],
        ArrowRight: ["key", Math.min(row, this.tokens.key.length - 1)],
      }[event.key];
      if (!next) return;
      this.tokens[next[0]][next[1]].focus();
    } else return;
    event.preventDefault();
  }
}

function show(component) {
  const root = component.parentElement.querySelector(".token_flow");
  const flow = (root.flow ??= new Flow(root)); // Streamlit calls this again with all new data
  flow.watch?.disconnect();
  flow.update(component);
  flow.watch = new ResizeObserver(() => {
    if (root.clientWidth > 0 && (root.clientWidth !== flow.width || flow.roomPresented() !== flow.presented)) flow.build();
  });
  for (const part of [root, flow.scroll]) flow.watch.observe(part);
  return () => flow.watch.disconnect();
}
