// Buttons and links that are one stop of the Tab key; arrow keys, Home and End move among them.

const WAY = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

/** Makes one of them the stop: what is proposed, what was, or the first. */
export function setStop(items, proposed = null) {
  const was = items.find((item) => item.getAttribute("tabindex") === "0");
  const stop = items.includes(proposed) ? proposed : (was ?? items[0]);
  for (const item of items) {
    const index = item === stop ? "0" : "-1";
    if (item.getAttribute("tabindex") !== index) item.setAttribute("tabindex", index); // a watcher of the page hears of every change
  }
}

/** Moves the focus where a key leads. */
export function walkAmong(items, event) {
  const at = items.indexOf(event.target.closest("a, button"));
  if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  const next = { Home: items[0], End: items.at(-1) }[event.key] ?? items[at + WAY[event.key]];
  if (!next) return;
  event.preventDefault();
  setStop(items, next);
  next.focus();
}
