// The picture of a chart stays where it is until the next one is drawn.

const DRAWN = ".js-plotly-plot .cartesianlayer";

const copies = new Map(); // by key, of what was drawn last
const keyOf = (block) => [...block.classList].find((name) => name.startsWith("st-key-"));

/** What a chart looks like, and no chart; none of one in three axes, whose picture is no SVG. */
function copyOf(block) {
  if (block.querySelector("canvas")) return null;
  const copy = block.querySelector(".svg-container").cloneNode(true);
  copy.querySelector(".cartesianlayer").classList.remove("cartesianlayer");
  copy.classList.add("picture-before");
  return copy;
}

/** Lays a copy of the chart before over a block that is still empty, and keeps one of what is drawn there next: the
 * chart before may go at any moment, even in the one in which this one comes. */
function hold(block, gone) {
  const key = keyOf(block);
  const before = [...document.getElementsByClassName(key)].find((one) => one !== block && one.querySelector(DRAWN));
  const wasHere = gone.some((node) => node.classList?.contains(key) || node.querySelector?.(`.${key}`));
  const picture = before ? copyOf(before) : wasHere && copies.get(key);
  if (picture) block.append(picture);
  const watcher = new MutationObserver(() => {
    const isDrawn = block.querySelector(DRAWN);
    if (block.isConnected && !isDrawn) return;
    watcher.disconnect();
    if (picture) picture.remove();
    if (isDrawn) requestIdleCallback(() => block.querySelector(DRAWN) && copies.set(key, copyOf(block)));
  });
  watcher.observe(document.querySelector(".stMain"), { childList: true, subtree: true });
}

function show() {
  const watcher = new MutationObserver((records) => {
    const gone = records.flatMap(({ removedNodes }) => [...removedNodes]);
    for (const node of records.flatMap(({ addedNodes }) => [...addedNodes])) {
      const block = node.querySelector?.(".stPlotlyChart")?.closest("[class*='st-key-']");
      if (block && !block.querySelector(DRAWN)) hold(block, gone);
    }
  });
  watcher.observe(document.querySelector(".stMain"), { childList: true, subtree: true });
  return () => watcher.disconnect();
}
