/** The part of a grid that scrolls, and the line below it that says what a cell holds; made when first asked for. */
function partsOf(root) {
  if (!root.querySelector(".scroller")) {
    const scroller = document.createElement("div");
    scroller.className = "scroller";
    const said = document.createElement("div");
    said.className = "said";
    said.setAttribute("aria-live", "polite");
    root.replaceChildren(scroller, said);
  }
  return { scroller: root.querySelector(".scroller"), said: root.querySelector(".said") };
}

/**
 * Lets cells be picked by pointer and key, and says below what the cell under the pointer or the focus holds. One cell is
 * in the order of the Tab key; the arrow keys move that place. `data-at` of a cell is its number, row by row.
 *
 * texts: of each cell; places: what is reported of each; drawInto: draws all cells; news: the event after which they are
 * drawn again. Returns what ends it.
 */
function runGrid(component, root, { columns, pickedAt, texts, places, drawInto, news, followsPicked }) {
  const { data, parentElement, setTriggerValue } = component;
  const { scroller, said } = partsOf(root);
  const count = texts.length;
  for (const [name, value] of Object.entries(data.colours)) root.style.setProperty(`--${name}`, value);

  const cellAt = (at) => scroller.querySelector(`[data-at="${at}"]`);
  const atOf = (node) => {
    const cell = node?.closest?.("[role=gridcell]");
    return cell ? Number(cell.dataset.at) : null;
  };
  const active = () => parentElement.activeElement ?? document.activeElement;
  const focused = () => (scroller.contains(active()) ? atOf(active()) : null);
  const say = (at) => {
    said.textContent = texts[at ?? pickedAt] ?? "";
  };
  const stop = (at) => {
    scroller.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
    cellAt(at)?.setAttribute("tabindex", 0);
  };
  const redraw = () => {
    const before = focused();
    const left = scroller.scrollLeft;
    drawInto(scroller);
    scroller.scrollLeft = left;
    stop(Math.min(before ?? pickedAt, count - 1));
    if (before !== null && focused() === null) cellAt(before)?.focus({ preventScroll: true });
    say(before);
  };

  const click = (event) => {
    const at = atOf(event.target);
    if (at !== null) setTriggerValue("pick", places[at]);
  };
  const press = (event) => {
    let at = atOf(event.target);
    if (at === null) return;
    const first = at - (at % columns);
    const last = Math.min(first + columns, count) - 1;
    if (event.key === "Enter" || event.key === " ") setTriggerValue("pick", places[at]);
    else if (event.key === "ArrowUp") at -= at >= columns ? columns : 0;
    else if (event.key === "ArrowDown") at += at + columns < count ? columns : 0;
    else if (event.key === "ArrowLeft") at = Math.max(first, at - 1);
    else if (event.key === "ArrowRight") at = Math.min(last, at + 1);
    else if (event.key === "Home") at = first;
    else if (event.key === "End") at = last;
    else return;
    event.preventDefault();
    stop(at);
    cellAt(at).focus();
  };
  const enter = (event) => say(atOf(event.target));
  const leave = () => say(focused());
  const arrived = (event) => {
    if (event.detail === data.grid) redraw();
  };

  const heard = { click, keydown: press, mouseover: enter, focusin: enter, mouseleave: leave, focusout: leave };
  for (const [name, listener] of Object.entries(heard)) scroller.addEventListener(name, listener);
  window.addEventListener(news, arrived);
  let width = 0;
  const resized = new ResizeObserver(() => {
    if (scroller.clientWidth !== width) {
      width = scroller.clientWidth;
      redraw();
    }
  });
  redraw();
  width = scroller.clientWidth;
  if (followsPicked) {
    const picked = cellAt(pickedAt)?.getBoundingClientRect();
    const shown = scroller.getBoundingClientRect();
    if (picked && (picked.right > shown.right || picked.left < shown.left)) {
      scroller.scrollLeft += picked.left - shown.left - width / 2; // the grid alone scrolls, never the page
    }
  }
  resized.observe(scroller);
  return () => {
    for (const [name, listener] of Object.entries(heard)) scroller.removeEventListener(name, listener);
    window.removeEventListener(news, arrived);
    resized.disconnect();
  };
}
