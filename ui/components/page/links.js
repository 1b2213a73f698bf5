// The links to our pages: which are the current ones, where they lead, and how the Tab key goes through them.

const LINK = '.stApp :is([data-testid="stPageLink-NavLink"], a[href^="glossary"])';
const ONE_STOP = "[data-testid=stSidebarUserContent], .st-key-parts, .st-key-examples, .st-key-slot_links";

/**
 * Sets aria-current on the current links of the row of parts and of the menu, and makes the menu and each row of links and buttons one stop of
 * the Tab key, the current link if there is one: a newcomer reaches the page with few presses. Streamlit draws them one at a time, and a link
 * with a help text twice, for wide and for narrow windows.
 */
function keepLinks({ data, app, hear, watch, onEnd }) {
  const itemsOf = (group) => [...group.querySelectorAll("a[href], button")].filter((item) => item.checkVisibility());
  const groupOf = (target) => target.closest?.(ONE_STOP);
  const mark = (key, current) => {
    for (const link of document.querySelectorAll(`.st-key-${key} :is(a, button)`)) {
      if (link.querySelector("p")?.textContent === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  };
  const set = () => {
    mark("parts", data.part);
    mark("menu", data.room);
    for (const group of document.querySelectorAll(ONE_STOP)) {
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
  const keydown = (event) => {
    const group = groupOf(event.target);
    if (group) walkAmong(itemsOf(group), event);
  };
  const focusin = ({ target }) => {
    const group = groupOf(target);
    if (group) setStop(itemsOf(group), target);
  };
  // Streamlit makes the page a stop of its own, to be scrolled; what has the focus within scrolls it too.
  document.querySelector("[data-testid=stMain]")?.setAttribute("tabindex", "-1");
  set();
  watch(app, { childList: true, subtree: true }, later);
  hear({ keydown, focusin });
  hear({ resize: later }, { target: window });
  onEnd(() => cancelAnimationFrame(waiting));
}

/**
 * A link to one of our pages without a head leads there with what is selected: the address's parameters are added to it when it is used, in
 * this tab or another, but for those that it names itself. A link that named the selection would be sent again whenever that changed.
 * Streamlit 1.67 follows such a link to the bare address, and adds the parameters at the end of the page's run, in an entry of
 * its own in the browser's history; so Back would need two presses. All this is set up once and stays: on the way to another
 * page Streamlit may remove the components of the last one before it changes the address.
 */
function addSelection({ data }) {
  if (document.addsSelection) return;
  document.addsSelection = true;

  const parameters = () => {
    const presents = new RegExp(`(?<=[?&])${data.parameter}=[^&]*&?`); // of the window, not of the selection
    return location.search.replace(presents, "").replace(/[?&]$/, "");
  };

  const merged = (own) => {
    const all = new URLSearchParams(parameters());
    for (const [name, value] of own) all.set(name, value);
    return all;
  };

  const use = ({ target }) => {
    const link = target.closest?.(LINK);
    if (!link) return;
    const [, path, named, anchor] = link.getAttribute("href").match(/^([^?#]*)(\?[^#]*)?(.*)$/s);
    if (named && named !== link.dataset.added) link.dataset.own = named;
    const own = new URLSearchParams(link.dataset.own ?? "");
    if (!own.has("layer")) link.dataset.added = own.size ? `?${merged(own)}` : parameters();
    // Streamlit gives its first page no path, and in another tab such an address leads to the page that it is on.
    const first = location.pathname.replace(/[^/]*$/, "");
    link.setAttribute("href", (path || first) + (own.has("layer") ? named : link.dataset.added) + anchor);
  };
  for (const event of ["pointerover", "pointerdown", "focusin"]) document.addEventListener(event, use, true);

  const pushState = history.pushState;
  history.pushState = function (state, unused, address) {
    const url = new URL(address, location.href);
    if (!url.search && url.pathname !== location.pathname) url.search = parameters();
    pushState.call(this, state, unused, url);
  };
}
