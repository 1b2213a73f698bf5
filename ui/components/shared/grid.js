// A grid of cells, one for each head, as one SVG. A click, Enter or the space bar selects a head; arrow keys move between
// cells; a line below describes the cell under the pointer or with the focus.
// Colours and fonts are attributes, not styles, so that the SVG can be saved unchanged.
//
// Large parts of a grid come in separate messages; `tellGrid` announces each.

const LEFT = 44, TOP = 40, RIGHT = 4; // px around the cells
const PADDING = 2; // px, of .scroller in grid.css
const ARRIVED = "attnviz-grid";

function tellGrid(grid) {
  window.dispatchEvent(new CustomEvent(ARRIVED, { detail: grid }));
}

function isPicked(data, place) {
  return String(place) === String(data.picked);
}

/** The whole SVG. */
function drawSheet(data, { width, height }, ...children) {
  const attributes = {
    ...{ width, height, xmlns: SVG, viewBox: `0 0 ${width} ${height}`, role: "grid", "aria-label": data.name },
    ...{ "font-family": data.font, "font-size": data.fontSize },
  };
  return draw("svg", attributes, ...children);
}

/** Numbers of rows and columns, for cells of this side, with a gap between them and a name's height over each: layers down and
 * heads across, or the other way round. */
function drawAxes({ isAcross, colours }, [nRows, nColumns], { side, gap, name = 0 }) {
  const { text, quiet } = colours;
  const [wide, high] = [side + gap, name + side + gap];
  const [across, down] = [LEFT + (nColumns * wide - gap) / 2, TOP + (nRows * high - gap) / 2];
  const title = { "text-anchor": "middle", fill: quiet };
  const [ofRows, ofColumns] = isAcross ? ["head", "layer"] : ["layer", "head"];
  const titles = [
    draw("text", { x: across, y: 14, ...title }, ofColumns),
    draw("text", { x: 14, y: down, ...title, transform: `rotate(-90 14 ${down})` }, ofRows),
  ];
  for (let column = 0; column < nColumns; column++) {
    const x = LEFT + column * wide + side / 2;
    titles.push(draw("text", { x, y: TOP - 8, "text-anchor": "middle", fill: text }, String(column)));
  }
  for (let row = 0; row < nRows; row++) {
    const y = TOP + row * high + name + side / 2 + 4;
    titles.push(draw("text", { x: LEFT - 8, y, "text-anchor": "end", fill: text }, String(row)));
  }
  return draw("g", { "aria-hidden": true }, ...titles);
}

/** What a cell is called: what it says in words, and what is written in it (WCAG 2.2, success criterion 2.5.3). */
function nameOfCell(text, parts) {
  const written = parts.map(({ textContent }) => textContent).join("");
  return text.split(/[\s,:;]+/).includes(written) ? text : `${text}, ${written}`;
}

/** A cell with what is in it and an edge around it. */
function drawCell(data, at, { place, text }, { x, y, side }, ...parts) {
  const { picked, edge } = data.colours;
  const [layer, head] = place;
  const isMarked = isPicked(data, place);
  return draw(
    "g",
    {
      ...{ role: "gridcell", "aria-selected": isMarked, "aria-label": nameOfCell(text, parts), tabindex: -1 },
      ...{ "data-at": at, "data-layer": layer, "data-head": head },
    },
    ...parts,
    draw("rect", {
      ...{ class: "edge", fill: "none", x: x - 0.5, y: y - 0.5, width: side + 1, height: side + 1 },
      ...{ stroke: isMarked ? picked : edge, "stroke-width": isMarked ? 3 : 1 },
    })
  );
}

/** Shows a grid and listens to it. `cells`, row by row, have a place and a text, or are null where a layer has no such head;
 * `drawIn` draws them in what scrolls; `preview` is called with the place of the cell under the pointer or the focus, or null.
 * Streamlit calls a component again with every message, so what listened before ends here. */
function showGrid({ data, parentElement, setTriggerValue }, root, { columns, cells, preview = null }, drawIn) {
  root.stopListening?.();
  if (!root.querySelector(".scroller")) {
    root.replaceChildren(make("div", "scroller"), make("div", "sideways", "Scroll sideways for more heads."), makeLive());
  }
  const [scroller, sideways, live] = root.children;
  setColours(root, data.colours);

  const pickedAt = Math.max(0, cells.findIndex((cell) => cell && isPicked(data, cell.place)));
  const cellAt = (at) => scroller.querySelector(`[data-at="${at}"]`);
  const atOf = (node) => {
    const cell = node.closest("[role=gridcell]");
    return cell ? Number(cell.dataset.at) : null;
  };
  const focused = () => {
    const active = activeIn(parentElement);
    return scroller.contains(active) ? atOf(active) : null;
  };
  const say = (at) => {
    live.textContent = cells[at ?? pickedAt]?.text ?? "";
  };

  const inRow = (at) => [...cells.keys()].slice(at - (at % columns), at - (at % columns) + columns).filter((index) => cells[index]);
  const nearest = (at) => inRow(at).reduce((best, index) => (Math.abs(index - at) < Math.abs(best - at) ? index : best));

  // Only one cell is reached with the Tab key; the arrow keys change which.
  const stop = (at) => {
    scroller.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
    cellAt(at)?.setAttribute("tabindex", 0);
  };
  const redraw = () => {
    const before = focused();
    drawIn(scroller);
    sideways.hidden = scroller.scrollWidth <= scroller.clientWidth;
    stop(cells[before ?? pickedAt] ? (before ?? pickedAt) : pickedAt);
    if (before !== null && focused() === null) cellAt(before)?.focus({ preventScroll: true });
    say(before);
  };

  const click = (event) => {
    const at = atOf(event.target);
    if (at !== null) setTriggerValue("pick", cells[at].place);
  };
  const press = (event) => {
    let at = atOf(event.target);
    if (at === null) return;
    const row = inRow(at);
    if (event.key === "Enter" || event.key === " ") setTriggerValue("pick", cells[at].place);
    else if (event.key === "ArrowUp") at -= at >= columns ? columns : 0;
    else if (event.key === "ArrowDown") at += at + columns < cells.length ? columns : 0;
    else if (event.key === "ArrowLeft") at = row.findLast((index) => index < at) ?? at;
    else if (event.key === "ArrowRight") at = row.find((index) => index > at) ?? at;
    else if (event.key === "Home") at = row[0];
    else if (event.key === "End") at = row.at(-1);
    else return;
    event.preventDefault();
    at = nearest(at); // from a longer row into a shorter one
    stop(at);
    cellAt(at).focus();
  };
  const tell = (at) => {
    say(at);
    preview?.(cells[at]?.place ?? null);
  };
  let pointed = null; // what comes to lie under a pointer at rest was not pointed at: only a pointer that moves tells of it
  const move = (event) => {
    const at = atOf(event.target);
    if (at !== pointed) tell((pointed = at));
  };
  const enter = (event) => tell(atOf(event.target));
  const leave = () => {
    pointed = null;
    tell(focused());
  };
  const arrived = (event) => {
    if (event.detail === data.grid) redraw();
  };

  const heard = { click, keydown: press, mousemove: move, focusin: enter, mouseleave: leave, focusout: leave };
  for (const [name, listener] of Object.entries(heard)) scroller.addEventListener(name, listener);
  window.addEventListener(ARRIVED, arrived);
  redraw();
  root.getRootNode().host.dataset.drawn = ""; // the style of the page keeps room until then
  let width = scroller.clientWidth;
  const resized = new ResizeObserver(() => {
    if (scroller.clientWidth === width) return;
    width = scroller.clientWidth;
    redraw();
  });
  resized.observe(scroller);
  root.stopListening = () => {
    for (const [name, listener] of Object.entries(heard)) scroller.removeEventListener(name, listener);
    window.removeEventListener(ARRIVED, arrived);
    resized.disconnect();
  };
  return root.stopListening;
}
