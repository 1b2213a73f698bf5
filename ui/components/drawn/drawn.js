// Sets data-drawn on the page to the number of the script run that is completely drawn; removed while a run is under way.
// Streamlit marks on the page whether the script runs; `document.due` holds what components still have to draw.

const PATIENCE_MS = 5000; // where something moves all the time, the browser is never idle

function show({ data }) {
  const app = document.querySelector(".stApp");
  const rests = () => app.dataset.testScriptState === "notRunning";
  const idle = () => new Promise((done) => requestIdleCallback(done, { timeout: PATIENCE_MS }));
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
  const watcher = new MutationObserver(wait);
  watcher.observe(app, { attributeFilter: ["data-test-script-state"] });
  wait();
  return () => {
    rounds += 1;
    watcher.disconnect();
  };
}
