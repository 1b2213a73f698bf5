// Charts that st.plotly_chart draws, for components that listen to them. Streamlit may draw one later, or anew.

/** Every chart of this key that is drawn so far; while a new one is made, the old one is still there. */
function chartsOf(key, drawn = "") {
  return document.querySelectorAll(`.st-key-${key} .js-plotly-plot${drawn && `:has(${drawn})`}`);
}

/** Listens to events of a chart; returns what ends that. */
function listen(chart, heard) {
  for (const [event, listener] of Object.entries(heard)) chart.on(event, listener);
  return () => {
    // A chart that Streamlit has taken away knows this command no more.
    for (const [event, listener] of Object.entries(heard)) chart.removeListener?.(event, listener);
  };
}

/** Acts when something in the page has changed, at most once a frame; returns what ends that. */
function watchPage(root, act) {
  let frame = 0;
  const watcher = new MutationObserver(() => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      act();
    });
  });
  const page = root.getRootNode().host.closest(".stMain") ?? document.body;
  watcher.observe(page, { childList: true, subtree: true, attributeFilter: ["class", "style"] });
  return () => {
    watcher.disconnect();
    cancelAnimationFrame(frame);
  };
}

/** Attaches to the chart that `find` finds, and to each one that takes its place; `attach` returns what ends that.
 * Streamlit calls a component again with every message, so what listened before ends here. */
function followChart(root, find, attach) {
  root.stopListening?.();
  let chart = null;
  let detach = null;
  const look = () => {
    const found = find();
    if (found === chart || !found?.on) return;
    detach?.();
    chart = found;
    detach = attach(chart);
  };
  look();
  const endWatch = watchPage(root, look);
  root.stopListening = () => {
    endWatch();
    detach?.();
  };
  return root.stopListening;
}
