// What is due once a page is drawn.

const IDLE_MS = 5000; // where something moves all the time, the browser is never idle
const HEADING_MS = 15000;
const HANDS = ["wheel", "touchstart", "pointerdown", "keydown"];

/**
 * Sets data-drawn on the page to the number of the script run that is completely drawn; removed while a run is under way.
 * Streamlit marks on the page whether the script runs; `document.due` holds what components still have to draw.
 */
function tellDrawn({ data, app, watch, onEnd }) {
  const rests = () => app.dataset.testScriptState === "notRunning";
  const idle = () => new Promise((done) => requestIdleCallback(done, { timeout: IDLE_MS }));
  let rounds = 0;
  const wait = async () => {
    const mine = ++rounds;
    const isNewest = () => mine === rounds && rests();
    delete app.dataset.drawn;
    await idle(); // components are called after the page has come to rest
    while (isNewest() && document.due?.size) await Promise.all(document.due);
    await idle();
    if (isNewest()) app.dataset.drawn = data.run;
  };
  watch(app, { attributeFilter: ["data-test-script-state"] }, wait);
  onEnd(() => (rounds += 1));
  wait();
}

/**
 * Scrolls to the heading that the address names, and keeps it in view while the content above it is still being drawn:
 * Streamlit scrolls only once, before formulas have their height.
 */
function scrollToHeading({ line, hear, onEnd }) {
  if (line.hasScrolled) return;
  line.hasScrolled = true; // what is drawn anew later stays where the reader is
  const heading = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!heading) return;
  const show = () => heading.scrollIntoView();
  const watcher = new ResizeObserver(show);
  watcher.observe(heading.closest(".stMainBlockContainer"));
  const stop = () => {
    watcher.disconnect();
    clearTimeout(patience);
  };
  const patience = setTimeout(stop, HEADING_MS);
  hear(Object.fromEntries(HANDS.map((hand) => [hand, stop])), { capture: true, target: window });
  onEnd(stop);
  show();
}
