// Part of plotly_figure, for a heatmap: a click on a cell selects query and key, a click on a row's or column's
// label only that token; a line below describes the cell under the pointer, or else the selected cell. Streamlit itself
// reports no clicks on heatmap cells. A matrix of small cells also gets zoom buttons.
// Rests on html, numbers, readout, chart, chart_insides, tick_labels and walk.

const FEWEST_CELLS = 8; // of a side, as far as the buttons zoom in

function describeCell(data, row, column, shown) {
  const place = `query ${data.queries[row]} → key ${data.keys[column]}`;
  const normaliser = data.normalisers[row];
  if (normaliser === null) return `${place}: ${data.number} ${numberText(shown)}`;
  // softmax: weight = exp(score - row's normaliser), so each number gives the other.
  const weight = data.number === "score" ? Math.exp(shown - normaliser) : shown;
  const score = data.number === "score" ? shown : Math.log(shown) + normaliser;
  return `${place}: weight ${numberText(weight)}, score ${numberText(score)}`;
}

/** What is shown of a matrix: its rows and its columns, each from one place to another. */
function shownPart(chart) {
  const { xaxis, yaxis } = chart.layout; // Plotly writes the ranges it has chosen into it
  return [yaxis, xaxis].map(({ range }) => [...range].sort((end, other) => end - other));
}

function middleOf([first, last]) {
  return (first + last) / 2;
}

/** What the part of a matrix that is shown belongs to: its columns, and how many rows there are. */
function tokensShown({ data: [cells] }) {
  return JSON.stringify([cells.y.length, cells.x]);
}

/** Lets a chart be zoomed with these buttons; returns what ends that. `line` keeps the part of the matrix that is
 * shown, since each figure is drawn as a whole. */
function zoomable(chart, data, line, [nearer, farther, all, hint]) {
  const sizes = [data.queries.length, data.keys.length];
  const byTouch = matchMedia("(pointer: coarse)").matches;

  const show = (middle, span) => {
    const isAll = span >= Math.max(...sizes);
    const [rows, columns] = sizes.map((size, side) => {
      const length = Math.min(span, size);
      const first = Math.min(Math.max(middle[side] - length / 2, -0.5), size - 0.5 - length);
      return [first, first + length];
    });
    line.kept = { tokens: tokensShown(chart), part: [rows, columns] };
    Plotly.relayout(chart, {
      "xaxis.range": columns,
      "yaxis.range": [...rows].reverse(),
      dragmode: !byTouch ? "zoom" : isAll ? false : "pan", // a finger scrolls the page while all is shown
    });
  };
  /** Shows more or less, around the selected cell if it is in sight or has to be. */
  const step = (part, factor, hasToBe) => {
    const { pickedCell } = data;
    const isInSight = pickedCell?.every((at, side) => part[side][0] <= at && at <= part[side][1]);
    const span = Math.max(...part.map(([first, last]) => last - first));
    const isMoved = isInSight ? factor < 1 : pickedCell && hasToBe;
    show(isMoved ? pickedCell : part.map(middleOf), Math.max(span * factor, FEWEST_CELLS));
  };
  const update = () => {
    const part = shownPart(chart);
    const isAll = part.every(([first, last], side) => last - first > sizes[side] - 0.01);
    farther.disabled = all.disabled = isAll;
    const moved = byTouch ? "Drag to move." : "Drag with Shift to move.";
    hint.textContent = isAll ? (byTouch ? "" : "Or drag over cells.") : moved;
    // An overview image covers the cells while they are smaller than a pixel.
    const { images } = chart.layout;
    const { x } = plotArea(chart);
    const isOverview = Math.abs(x(1) - x(0)) < 1;
    if (images?.length && (images[0].visible ?? true) !== isOverview) {
      Plotly.relayout(chart, { "images[0].visible": isOverview, "annotations[0].visible": isOverview });
    }
  };

  const keep = (change) => {
    update();
    const isOwn = "dragmode" in change; // of `show`, and told when another figure may be drawn already
    if (isOwn || !Object.keys(change).some((name) => /^[xy]axis/.test(name))) return;
    line.kept = { tokens: tokensShown(chart), part: shownPart(chart) };
  };
  nearer.onclick = () => step(shownPart(chart), 1 / 2);
  farther.onclick = () => step(shownPart(chart), 2);
  all.onclick = () => show(sizes, Infinity);
  const restore = () => {
    if (line.kept?.tokens === tokensShown(chart)) step(line.kept.part, 1, true);
    else if (byTouch) Plotly.relayout(chart, { dragmode: false });
    update();
  };
  /** Another figure is drawn. */
  const react = () => {
    if (JSON.stringify(shownPart(chart)) !== JSON.stringify(line.kept?.part)) restore();
  };
  restore();
  return listen(chart, { plotly_react: react, plotly_afterplot: update, plotly_relayout: keep });
}

function zoomBar(line) {
  const buttons = ["Zoom in", "Zoom out", "All cells"].map((text) => makeButton("", text));
  const bar = make("div", "zoom", ...buttons, make("span"));
  line.before(bar);
  return bar;
}

/** Sends the query and key of a clicked cell of the chart with this key, or the token of a clicked label; returns what ends that. */
function listenToCells(line, data, key, send) {
  line.style.color = data.colour;
  showAsReadout(line);
  line.textContent = data.picked;
  const bar = line.parentElement.querySelector(".zoom") ?? zoomBar(line);
  bar.hidden = !data.zooms;

  const hover = (event) => {
    const point = event.points[0];
    const [row, column] = point.pointNumber;
    line.textContent = describeCell(data, row, column, point.z);
  };
  const unhover = () => {
    line.textContent = data.picked;
  };
  const click = ({ pointNumber: [row, column] }) => {
    send([data.queryPositions[row], data.keyPositions[column]]);
  };
  const clickLabel = (axis, number) => {
    const [side, positions] = axis === "y" ? ["query", data.queryPositions] : ["key", data.keyPositions];
    if (number in positions) send([side, positions[number]]);
  };
  return followChart(line, key, (chart) => {
    const cursor = make("div", "cell_cursor");
    Object.assign(cursor.style, { position: "absolute", outline: "2px solid light-dark(#000, #fff)", pointerEvents: "none" });
    const visit = ([row, column]) => {
      const { left, top, x, y } = plotArea(chart);
      const [from, to] = [x, y].map((place, side) => [place([column, row][side] - 0.5), place([column, row][side] + 0.5)]);
      const box = { left: left + from[0], top: top + to[0], width: from[1] - from[0], height: to[1] - to[0] };
      for (const [side, size] of Object.entries(box)) cursor.style[side] = `${size}px`;
      chart.querySelector(".svg-container").append(cursor);
      // the same event as from a pointer, for all listeners: Plotly.Fx.hover emits none
      chart.emit("plotly_hover", { points: [{ curveNumber: 0, pointNumber: [row, column], z: tracesOf(chart)[0].z[row][column] }] });
    };
    const steps = {
      lengths: () => data.queries.map(() => data.keys.length),
      visit,
      take: (pointNumber) => click({ pointNumber }),
      leave: () => {
        cursor.remove();
        chart.emit("plotly_unhover", { points: [] });
      },
    };
    line.from = data.pickedCell ?? [0, 0];
    const redrawn = () => {
      if (document.activeElement === chart && line.at) visit(line.at);
    };
    const ends = [listen(chart, { plotly_hover: hover, plotly_unhover: unhover, plotly_react: redrawn }), listenToClicks(chart, click)];
    ends.push(walkable(chart, "Attention matrix; arrow keys walk through the cells, Enter selects query and key", steps, line));
    ends.push(listenToLabels(chart, clickLabel));
    if (data.zooms) ends.push(zoomable(chart, data, line, bar.children));
    ends.push(() => cursor.remove());
    return () => ends.forEach((end) => end());
  });
}
