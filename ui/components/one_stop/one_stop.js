// Makes each group of links and buttons one stop of the Tab key, the current one if there is one. Streamlit draws them one at a time, and a
// link with a help text twice, for wide and for narrow windows. Rests on rove.

function show({ data }) {
  const itemsOf = (group) => [...group.querySelectorAll("a[href], button")].filter((item) => item.checkVisibility());
  const groupOf = (target) => target.closest?.(data.groups.join());
  const set = () => {
    for (const group of document.querySelectorAll(data.groups.join())) {
      const items = itemsOf(group);
      const focused = items.includes(document.activeElement) ? document.activeElement : null;
      const isNew = items.every((item) => item.getAttribute("tabindex") !== "0");
      setStop(items, focused ?? (isNew ? items.find((item) => item.hasAttribute("aria-current")) : null));
    }
  };
  let waiting = 0;
  const later = () => {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      set();
    });
  };
  const walk = (event) => {
    const group = groupOf(event.target);
    if (group) walkAmong(itemsOf(group), event);
  };
  const enter = ({ target }) => {
    const group = groupOf(target);
    if (group) setStop(itemsOf(group), target);
  };
  // Streamlit makes the page a stop of its own, to be scrolled; what has the focus within scrolls it too.
  document.querySelector("[data-testid=stMain]")?.setAttribute("tabindex", "-1");
  set();
  const watcher = new MutationObserver(later);
  watcher.observe(document.querySelector(".stApp"), { childList: true, subtree: true });
  document.addEventListener("keydown", walk);
  document.addEventListener("focusin", enter);
  window.addEventListener("resize", later);
  return () => {
    cancelAnimationFrame(waiting);
    watcher.disconnect();
    document.removeEventListener("keydown", walk);
    document.removeEventListener("focusin", enter);
    window.removeEventListener("resize", later);
  };
}
