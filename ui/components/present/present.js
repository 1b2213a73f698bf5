// Fills the window with the page's main figure, or with the one under the pointer. The style is in ui/shell/present.css.
// Rests on html.

const STAGE = ".st-key-stage"; // figures that are one main figure: its viewer, which is none by itself, and its map
const VIEWER = ".st-key-viewer";
const BESIDE = [".st-key-finding", ".st-key-lesson_text"]; // what is read with a figure
const DRAWN = ".plotly_figure, .head_grid, .map_grid, .head_film, .token_flow, .stage"; // what components draw figures in
const SIZED = ".plotly_figure, .token_flow .scroll, .viewer .sheet, .viewer .flow .scroll"; // as high as it has room
const KEYS = { ArrowLeft: "back", PageUp: "back", ArrowRight: "next", PageDown: "next" }; // the latter are those of a clicker
const TYPED = "textarea, select, [contenteditable=true], input:not([type=range], [type=radio], [type=checkbox])";
const LAID_OUT_PX = 960; // in half of a projector's 1920, letters of 12 px become 24
const ROOM = ["--room", "--room-here"]; // of charts, and of the viewer's pictures
const [LEAST_ROOM, BELOW] = [280, 12]; // px, of a chart and below it

/** Where the figures of the page stand. */
function figures() {
  const mounts = [...document.querySelectorAll(".stMain [data-testid^=stBidiComponent]")];
  const draws = (mount) => (mount.shadowRoot ?? mount).querySelector(DRAWN)?.childElementCount; // some only hand on what another draws
  return mounts.filter(draws).map((mount) => mount.closest(mount.closest(VIEWER) ? STAGE : ".stElementContainer"));
}

/** Lets each picture end within the window, with the line below it; where nothing is presented, all as they were. */
function fit(figure, enlarged) {
  for (const mount of document.querySelectorAll(".stMain [data-testid^=stBidiComponent]")) {
    for (const drawn of (mount.shadowRoot ?? mount).querySelectorAll(SIZED)) {
      if (!figure?.contains(mount) || !drawn.checkVisibility()) {
        for (const name of ROOM) drawn.style.removeProperty(name);
        continue;
      }
      const [box, around] = [drawn, mount].map((element) => element.getBoundingClientRect());
      const others = box.top - figure.closest(".stMainBlockContainer").getBoundingClientRect().top + around.bottom - box.bottom;
      const room = `${Math.max(LEAST_ROOM, (window.innerHeight - others) / enlarged - BELOW)}px`;
      for (const name of ROOM) drawn.style.setProperty(name, room);
    }
  }
}

/** What holds it on the page. */
function ancestors(element) {
  const parents = [];
  for (let parent = element.parentElement; parent && !parent.matches(".stMainBlockContainer"); parent = parent.parentElement) parents.push(parent);
  return parents;
}

function keyOf(figure) {
  return [...figure.classList].find((name) => name.startsWith("st-key-"));
}

/** Whether the focus is in what is presented, so that arrow keys walk there. */
function walksInside() {
  let element = document.activeElement;
  if (!element?.closest("[data-presented]")) return false; // a button that was clicked, or the page
  while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element.matches(":focus-visible");
}

function show({ data, parentElement }) {
  const root = document.documentElement;
  const app = document.querySelector(".stApp");
  const inLink = () => new URL(location.href).searchParams.has(data.parameter);
  // State kept from page to page; `key` is the class of the figure, null for the main one.
  const state = (document.presenting ??= { on: inLink(), key: null });

  const main = document.querySelector(".stMain");
  const button = makeButton("", "", () => turn(!state.on));
  parentElement.querySelector(".present").replaceChildren(button);

  const link = () => {
    const url = new URL(location.href);
    if (url.searchParams.has(data.parameter) === state.on) return;
    if (state.on) url.searchParams.set(data.parameter, "1");
    else url.searchParams.delete(data.parameter);
    history.replaceState(history.state, "", url);
  };
  const apply = () => {
    const all = figures();
    const first = document.querySelector(STAGE) ?? all[0];
    const figure = state.on ? ((state.key && document.querySelector(`.${state.key}`)) ?? first) : null;
    button.hidden = !first;
    const shown = figure ? [figure, ...BESIDE.map((selector) => document.querySelector(selector)).filter(Boolean)] : [];
    for (const presented of document.querySelectorAll("[data-presented]")) if (!shown.includes(presented)) delete presented.dataset.presented;
    for (const presented of shown) presented.dataset.presented = "";
    const around = new Set(shown.flatMap(ancestors));
    for (const ancestor of document.querySelectorAll("[data-around]")) if (!around.has(ancestor)) delete ancestor.dataset.around;
    for (const ancestor of around) ancestor.dataset.around = "";
    root.toggleAttribute("data-presents", Boolean(figure));
    button.textContent = figure ? "close" : "slideshow";
    button.ariaLabel = figure ? "Leave" : "Present";
    button.title = figure ? "Leaves (Escape)" : "Fills the window with this page’s figure (P: the one under the pointer). Escape leaves.";
    const enlarged = Math.max(1, window.innerWidth / LAID_OUT_PX);
    root.style.setProperty("--enlarged", enlarged);
    fit(figure, enlarged);
    if (app?.dataset.drawn) link();
  };
  const turn = (on, key = null) => {
    if (on) state.scrolled = main.scrollTop;
    Object.assign(state, { on, key });
    if (on) root.requestFullscreen?.().catch(() => {}); // not where the page is part of another
    else if (document.fullscreenElement) document.exitFullscreen();
    apply();
    window.dispatchEvent(new Event("resize")); // figures take their new room
    main.scrollTop = on ? 0 : state.scrolled;
  };

  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.composedPath()[0].matches?.(TYPED)) return;
    const step = KEYS[event.key] && document.querySelector(`.st-key-lesson_${KEYS[event.key]} a`);
    const pointed = figures().findLast((figure) => figure.matches(":hover")); // the map is within the stage
    if (event.key.toLowerCase() === "p") turn(!state.on, pointed && keyOf(pointed));
    else if (!state.on) return;
    else if (event.key === "Escape") turn(false);
    else if (step && !(event.key.startsWith("Arrow") && walksInside())) {
      state.key = null; // the next step has a main figure of its own
      step.click();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const leftFullscreen = () => {
    if (!document.fullscreenElement && state.on) turn(false); // there Escape reaches the browser alone
  };
  const followLink = () => {
    if (state.on !== inLink()) turn(!state.on);
  };
  apply();
  const runs = new MutationObserver(apply);
  runs.observe(app, { attributeFilter: ["data-drawn"] });
  const changes = new MutationObserver(() => state.on && apply()); // figures come and go while a page is drawn
  changes.observe(main, { childList: true, subtree: true });
  document.addEventListener("keydown", press, { capture: true });
  document.addEventListener("fullscreenchange", leftFullscreen);
  window.addEventListener("popstate", followLink);
  window.addEventListener("resize", apply);
  return () => {
    runs.disconnect();
    changes.disconnect();
    document.removeEventListener("keydown", press, { capture: true });
    document.removeEventListener("fullscreenchange", leftFullscreen);
    window.removeEventListener("popstate", followLink);
    window.removeEventListener("resize", apply);
  };
}
