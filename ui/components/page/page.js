// Listens on the whole page: each concern is a function of a file beside this one. Rests on rove.

const CONCERNS = {
  listen: () => [endTyping, enterRuns, takeFiles, followTheme, markPressed, addSelection, showTerms, keepLinks, watchConnection],
  count: () => [tellDrawn],
  scroll: () => [scrollToHeading],
};

function show({ data, parentElement, setTriggerValue }) {
  const over = new AbortController();
  const onEnd = (act) => over.signal.addEventListener("abort", act);
  const page = {
    data,
    app: document.querySelector(".stApp"),
    line: parentElement.querySelector(".page"), // what can be said to the reader
    askForRun: () => setTriggerValue("asked", true),
    onEnd,
    hear: (acts, { capture = false, target = document } = {}) => {
      for (const [event, act] of Object.entries(acts)) target.addEventListener(event, act, { capture, signal: over.signal });
    },
    watch: (element, options, act) => {
      const watcher = new MutationObserver(act);
      watcher.observe(element, options);
      onEnd(() => watcher.disconnect());
    },
  };
  for (const concern of CONCERNS[data.does]()) concern(page);
  return () => over.abort();
}
