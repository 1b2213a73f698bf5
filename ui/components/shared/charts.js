/**
 * Calls `attach` with the chart of this key once Plotly has drawn it, and again whenever Streamlit has made it anew;
 * `detach` with the one before. Returns what ends both.
 *
 * drawn: a selector that only a drawn chart has inside.
 */
function watchChart(key, drawn, attach, detach) {
  let chart = null;
  const look = () => {
    const found = [...document.querySelectorAll(`.st-key-${key} .js-plotly-plot`)].filter(
      (one) => one.on && one.querySelector(drawn)
    );
    const newest = found.at(-1); // the one before may still be there
    if (!newest || newest === chart) return;
    if (chart) detach(chart);
    chart = newest;
    attach(chart);
  };
  const watcher = new MutationObserver(look);
  watcher.observe(document.querySelector("[data-testid=stApp]") ?? document.body, { childList: true, subtree: true });
  look();
  return () => {
    watcher.disconnect();
    if (chart) detach(chart);
    chart = null;
  };
}

/** Hears of a chart's events, by name; `unhear` with the same listeners ends it. */
function hear(chart, listeners) {
  for (const [name, listener] of Object.entries(listeners)) chart.on(name, listener);
}

function unhear(chart, listeners) {
  for (const [name, listener] of Object.entries(listeners)) chart.removeListener?.(name, listener);
}

/** Where a chart's x and y axis are, in px from the corner of an element within, and what they show: Plotly writes their ranges into its layout. */
function axesOf(chart, within = chart) {
  const plot = chart.querySelector(".nsewdrag")?.getBoundingClientRect();
  const { xaxis, yaxis } = chart.layout;
  if (!plot || !xaxis?.range || !yaxis?.range) return null;
  const frame = within.getBoundingClientRect();
  const [left, top] = [plot.left - frame.left, plot.top - frame.top];
  const share = ([first, last], value) => (value - first) / (last - first);
  return {
    ...{ left, top, width: plot.width, height: plot.height },
    x: (value) => plot.width * share(xaxis.range, value),
    y: (value) => plot.height * (1 - share(yaxis.range, value)),
  };
}
