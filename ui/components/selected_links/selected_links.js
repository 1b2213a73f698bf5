// A link to one of our pages without a head leads there with what is selected: the address's parameters are added to it when it is used, in
// this tab or another, but for those that it names itself. A link that named the selection would be sent again whenever that changed.
// Streamlit 1.67 follows such a link to the bare address, and adds the parameters at the end of the page's run, in an entry of
// its own in the browser's history; so Back would need two presses. All this is set up once and stays: on the way to another
// page Streamlit may remove the components of the last one before it changes the address.

const LINK = '.stApp :is([data-testid="stPageLink-NavLink"], a[href^="glossary"])';

function show({ data }) {
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
