// Sets aria-current on the current link, in the row of parts and in the menu. Streamlit fills both one link at a time.

function show({ data }) {
  const watchers = [
    ["parts", data.row],
    ["menu", data.menu],
  ].flatMap(([key, current]) => {
    const place = document.querySelector(`.st-key-${key}`);
    if (!place) return [];
    const mark = () => {
      const elements = [...place.querySelectorAll(".stElementContainer:has(.stPageLink, .stButton, .stSkeleton)")];
      elements.forEach((element, at) => {
        // A link with a help text exists twice, for wide and for narrow windows.
        for (const link of element.querySelectorAll("a, button")) {
          if (at === current) link.setAttribute("aria-current", "page");
          else link.removeAttribute("aria-current");
        }
      });
    };
    mark();
    const watcher = new MutationObserver(mark);
    watcher.observe(place, { childList: true, subtree: true });
    return [watcher];
  });
  return () => watchers.forEach((watcher) => watcher.disconnect());
}
