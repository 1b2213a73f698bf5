// Charts that plotly_figure draws, for components that listen to them.

const DRAWN = "chartdrawn";
const ONE_PLACE = 8; // px
const NEXT_LOOK = 60; // ms

/** Whether two events of the pointer were as near as those of a double click. */
function isOnePlace(event, other) {
  return Math.hypot(event.clientX - other.clientX, event.clientY - other.clientY) < ONE_PLACE;
}

/** The charts of the page, by key. */
function charts() {
  return (document.charts ??= new Map());
}

/** Tells all components that a chart is drawn for the first time. */
function tellChart(key, chart) {
  charts().set(key, chart);
  document.dispatchEvent(new Event(DRAWN));
}

/** The chart of this key is no longer there; perhaps that of another page already is. */
function forgetChart(key, chart) {
  if (charts().get(key) === chart) charts().delete(key);
}

/** Listens to events of a chart; returns what ends that. */
function listen(chart, heard) {
  for (const [event, listener] of Object.entries(heard)) chart.on(event, listener);
  return () => {
    // A removed chart no longer has this method.
    for (const [event, listener] of Object.entries(heard)) chart.removeListener?.(event, listener);
  };
}

/** Tells what point is clicked; returns what ends that.
 *
 * Plotly looks at most every 50 ms at what is under the pointer, a look after each drawing included, and takes for the
 * clicked point what it saw last. Where the pointer has come since, the point is known at the next look. */
function listenToClicks(chart, clicked) {
  let seen = null; // where the pointer was at the last look
  const hover = ({ event }) => {
    seen = event;
  };
  const click = ({ event, points: [point] }) => {
    if (seen && isOnePlace(event, seen)) clicked(point);
    else setTimeout(() => pointUnder(chart) && clicked(pointUnder(chart)), NEXT_LOOK);
  };
  return listen(chart, { plotly_hover: hover, plotly_click: click });
}

/** Attaches to the chart of this key as soon as it is drawn, and to one that takes its place; `attach` returns what ends
 * that. Streamlit calls a component again when its message has changed, so what listened before ends here. */
function followChart(root, key, attach) {
  root.stopListening?.();
  let chart = null;
  let detach = null;
  const attachNewest = () => {
    const newest = charts().get(key);
    if (!newest || newest === chart) return;
    detach?.();
    chart = newest;
    detach = attach(chart);
  };
  attachNewest();
  document.addEventListener(DRAWN, attachNewest);
  root.stopListening = () => {
    document.removeEventListener(DRAWN, attachNewest);
    detach?.();
  };
  return root.stopListening;
}
