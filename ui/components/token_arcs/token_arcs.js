// The tokens of a text in one line, and below them an arc from the selected query to each key, as wide as its weight.
// Hovering over a token previews it on the whole stage; a click or Enter selects it as the query. The line is one stop of
// the Tab key; arrow keys, Home and End move in it. On the first visit the arcs are animated.
// Rests on svg, html, mask, renew, remember, stage, chart, chart_insides and previews.

const ROOM = 74; // px for the arcs
const DEEPEST = ROOM - 12, FLATTEST = 20, STEEP = 0.3; // px that arcs go down, and how much more the wider they are
const LEAST = 0.02; // weights under it have no arc
const WIDEST = 10; // px, for a weight of 1
const MOST_SAID = 3;
const DREW = "attnviz.arcs"; // kept once arcs have drawn themselves in this browser
const SIZES = [[13, 18], [20, 16], [Infinity, 14]]; // px of a token's letters, by how many there are at most

function chip(data, token, side, pick) {
  const button = makeButton("token", "", side === "query" ? () => pick(token.position) : null);
  for (const kind of ["special", "joined"]) button.classList.toggle(kind, Boolean(token[kind]));
  button.dataset.position = token.position;
  button.dataset.side = side;
  button.disabled = side === "key";
  const label = make("bdi", "label", token.label);
  if (token.was) label.append(" ", make("s", "was", token.was));
  button.append(make("span", "index", token.position), " ", label, " ", make("span", "share", ""));
  return keyed(button, `${side} ${token.position}`);
}

/** "48%": a weight of the selected head; without "about" it is exact to the digits that stand there. */
function shareText(share, isOwn) {
  if (share > 0 && share < 0.005) return "<1%";
  return `${isOwn ? "" : "≈"}${Math.round(100 * share)}%`;
}

/** Whether arcs draw themselves now: once for a browser that keeps that they did, and whose visitor does not mind what moves. */
function drawsItself() {
  if (remembered(DREW) || matchMedia("(prefers-reduced-motion: reduce)").matches) return false;
  remember(DREW, 1);
  return remembered(DREW) !== null;
}

class Arcs {
  constructor(root) {
    this.root = root;
    this.scroller = make("div", "scroller");
    this.line = make("div", "line");
    this.svg = draw("svg", { "aria-hidden": true, height: ROOM });
    this.others = make("div", "line others");
    this.scroller.append(this.line, this.svg, this.others);
    this.live = makeLive();
    root.replaceChildren(this.scroller, this.live);
    this.line.setAttribute("role", "group");
    this.line.onkeydown = (event) => this.press(event);
    const point = (target) => {
      const button = target.closest?.(".token[data-side=query]");
      tellStage({ preview: button ? { query: Number(button.dataset.position) } : {} });
    };
    // Only a moving pointer counts: a token that appears under a resting pointer was not hovered over on purpose.
    this.line.onmousemove = ({ target }) => target !== this.pointed && point((this.pointed = target));
    this.line.onmouseleave = () => {
      this.pointed = null;
      tellStage({ preview: {} });
    };
    this.line.addEventListener("focusin", ({ target }) => {
      this.rove(target);
      if (target.matches(":focus-visible")) point(target);
    });
    this.line.addEventListener("focusout", () => tellStage({ preview: {} }));
  }

  update({ data, attached, setTriggerValue }) {
    this.data = data;
    setColours(this.root, data.colours);
    this.line.setAttribute("aria-label", data.name);
    const pick = (position) => setTriggerValue("pick", position);
    const parts = data.tokens.flatMap((token) => {
      const made = [chip(data, token, "query", pick)];
      if (token.maskable && token.query) made.push(maskButton(token, data.mask, (at) => setTriggerValue("mask", at)));
      if (token.cut) made.push(make("span", "cut", token.cut));
      return made;
    });
    renew(this.line, parts);
    renew(this.others, (data.keys ?? []).map((token) => chip(data, token, "key", null)));
    this.root.classList.toggle("crossing", Boolean(data.keys));
    this.fit();
    const weights = new Float32Array(attached.slice().buffer);
    tellStage({ own: { ...data.own, weights, nKey: weights.length / data.tokens.length } });
    this.rove(this.buttons().find((button) => Number(button.dataset.position) === data.own.query));
  }

  /** The largest letters with which the line needs no scrolling; those for its number of tokens where none are small enough. */
  fit() {
    const room = this.scroller.clientWidth - 4; // its padding
    const sizes = SIZES.filter(([most]) => this.data.tokens.length <= most).map(([, size]) => size);
    const set = (size) => this.root.style.setProperty("--size", `${size}px`);
    const fits = sizes.some((size) => (set(size), Math.max(this.line.offsetWidth, this.others.offsetWidth) <= room));
    if (!fits) set(sizes[0]);
  }

  buttons() {
    return [...this.line.querySelectorAll(".token")];
  }

  /** Makes one button the line's stop of the Tab key. */
  rove(stop) {
    for (const button of this.line.querySelectorAll("button")) button.tabIndex = button === stop ? 0 : -1;
  }

  press(event) {
    const buttons = [...this.line.querySelectorAll("button")], at = buttons.indexOf(event.target);
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || !buttons[next]) return;
    event.preventDefault();
    buttons[next].focus();
  }

  react() {
    const shown = shownRow();
    const { data } = this;
    if (!shown || stage().own.text !== data.own.text) return;
    const { place, query, row, isOwn } = shown;
    const keys = data.keys ?? data.tokens;
    const keyButtons = [...(data.keys ? this.others : this.line).querySelectorAll(".token")];
    for (const button of this.buttons()) {
      const isQuery = Number(button.dataset.position) === query;
      button.classList.toggle("query", isQuery);
      button.setAttribute("aria-pressed", String(Number(button.dataset.position) === data.own.query));
    }
    for (const [at, button] of keyButtons.entries()) {
      const share = row[at];
      button.style.setProperty("--weight", Math.min(1, share));
      button.querySelector(".share").textContent = share >= 0.005 ? shareText(share, isOwn) : "";
      const name = `token ${keys[at].position}: ${keys[at].label}, ${shareText(share, isOwn)} of the query's attention`;
      button.setAttribute("aria-label", name);
    }
    this.drawArcs(query, row, keyButtons);
    this.drawItself(`${place} ${query}`);
    const isPreview = query !== data.own.query || !isOwn;
    this.live.textContent = isPreview ? this.words(place, query, row, isOwn, keys) : "";
  }

  /** The first arcs of the first visit; others, and the same once more, are there at once. */
  drawItself(shown) {
    this.drawing ??= drawsItself() ? shown : "";
    if (this.drawing !== shown) this.drawing = "";
    this.svg.classList.toggle("draws", Boolean(this.drawing));
  }

  drawArcs(query, row, keyButtons) {
    const { data } = this;
    const from = this.line.querySelector(`.token[data-position="${query}"]`);
    const middle = (button) => button.offsetLeft + button.offsetWidth / 2;
    const width = Math.max(this.line.scrollWidth, this.others.scrollWidth);
    put(this.svg, { width, viewBox: `0 0 ${width} ${ROOM}` });
    if (!from) return this.svg.replaceChildren();
    const start = middle(from);
    const arcs = keyButtons.map((button, at) => ({ at, end: middle(button), weight: row[at] })).filter(({ weight }) => weight >= LEAST);
    arcs.sort((arc, other) => arc.weight - other.weight);
    renew(
      this.svg,
      arcs.map(({ at, end, weight }) => {
        const key = (data.keys ?? data.tokens)[at].position;
        const deep = (4 / 3) * Math.min(DEEPEST, FLATTEST + STEEP * Math.abs(end - start));
        const d = data.keys
          ? `M${start} 0C${start} ${ROOM / 2} ${end} ${ROOM / 2} ${end} ${ROOM}`
          : end === start
            ? `M${start - 6} 0C${start - 18} ${deep} ${start + 18} ${deep} ${start + 6} 0`
            : `M${start} 0C${start} ${deep} ${end} ${deep} ${end} 0`;
        const arc = draw("path", {
          ...{ d, pathLength: 1, fill: "none", stroke: data.colours.key, "stroke-linecap": "round" },
          ...{ "stroke-width": (1 + (WIDEST - 1) * weight).toFixed(2), "stroke-opacity": (0.25 + 0.65 * Math.sqrt(weight)).toFixed(2) },
          ...{ "data-key": key, "data-weight": weight.toFixed(4) },
        });
        return keyed(arc, key); // one that is drawing itself goes on when it is drawn again
      })
    );
  }

  words([layer, head], query, row, isOwn, keys) {
    const token = this.data.tokens.find(({ position }) => position === query);
    const first = [...row.keys()].sort((key, other) => row[other] - row[key]).slice(0, MOST_SAID);
    const most = first.filter((at) => row[at] >= 0.005).map((at) => `“${keys[at].label}” ${shareText(row[at], isOwn)}`);
    return `Layer ${layer}, head ${head}: “${token.label}” → ${most.join(", ") || "no key"}`;
  }
}

function show(component) {
  const root = component.parentElement.querySelector(".token_arcs");
  const arcs = (root.arcs ??= new Arcs(root)); // Streamlit calls this again with all new data
  arcs.update(component);
  const host = root.getRootNode().host.closest(".st-key-stage");
  if (host) host.dataset.attnviz = "stage"; // whoever measures the page finds it by this
  const stop = followStage(() => arcs.react());
  const endPreviews = showPreviews(root, component.data.own, component.data.marks, component.data.colours);
  const size = new ResizeObserver(() => {
    arcs.fit();
    arcs.react();
  });
  size.observe(root);
  const picked = arcs.line.querySelector(".query");
  const { scroller } = arcs;
  if (picked && (picked.offsetLeft < scroller.scrollLeft || picked.offsetLeft + picked.offsetWidth > scroller.scrollLeft + scroller.clientWidth)) {
    scroller.scrollLeft = picked.offsetLeft - scroller.clientWidth / 2; // the line alone, never the page
  }
  return () => {
    stop();
    endPreviews();
    size.disconnect();
    delete host?.dataset.attnviz;
  };
}
