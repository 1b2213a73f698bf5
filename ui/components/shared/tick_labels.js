// Clicks on the labels of rows and columns, for which Plotly has no event. Rests on chart_insides.

/** The row ("y") or column ("x") whose label is at this place of the window, and its number; null beside all labels.
 * With whole rows, the row at this height, wherever in the chart. */
function labelAt(chart, { clientX, clientY }, wholeRows) {
  const area = plotArea(chart);
  if (!area) return null;
  const isBeside = (kind) => {
    const boxes = [...chart.querySelectorAll(`.${kind}tick`)].map((tick) => tick.getBoundingClientRect());
    const edge = (side, most) => most(...boxes.map((box) => box[side]));
    const isAcross = edge("left", Math.min) <= clientX && clientX <= edge("right", Math.max);
    return isAcross && edge("top", Math.min) <= clientY && clientY <= edge("bottom", Math.max);
  };
  const numberAt = (pixels, pixel) => Math.round((pixel - pixels(0)) / (pixels(1) - pixels(0)));
  const frame = chart.getBoundingClientRect();
  const enlarged = frame.width / chart.offsetWidth; // other than 1 where a figure is presented
  const [x, y] = [(clientX - frame.left) / enlarged - area.left, (clientY - frame.top) / enlarged - area.top];
  if (wholeRows || isBeside("y")) return ["y", numberAt(area.y, y)];
  if (!isBeside("x")) return null;
  const lean = Math.tan((-chart.layout.xaxis.tickangle * Math.PI) / 180); // labels begin at their column, and lean
  return ["x", numberAt(area.x, x + y / lean)];
}

/** Calls `act` with "x" or "y" and a number when a label is clicked; returns what ends that. */
function listenToLabels(chart, act, { wholeRows = false } = {}) {
  let pressed = null; // a drag that ends on a label is no click on it
  const press = (event) => {
    pressed = labelAt(chart, event, wholeRows);
  };
  const click = (event) => {
    // One press causes several clicks: Plotly adds some, and those from touches lack a position.
    const label = labelAt(chart, event, wholeRows);
    if (!label || String(label) !== String(pressed)) return;
    pressed = null;
    act(...label);
  };
  const move = (event) => {
    chart.style.cursor = labelAt(chart, event, wholeRows) ? "pointer" : "";
  };
  const heard = { pointerdown: press, click, pointermove: move };
  for (const [event, listener] of Object.entries(heard)) chart.addEventListener(event, listener, true);
  return () => {
    for (const [event, listener] of Object.entries(heard)) chart.removeEventListener(event, listener, true);
  };
}
