// A tour in a few stops, each with a task on the page; the server notices when it is done. The browser keeps the last stop,
// so that returning visitors go on from there. Escape ends the tour; so does the link beside the last stop, which leads on. Rests on html,
// renew and remember.

const ROOM = 16; // px between a stop and what it is about
const KEPT = "attnviz.tour"; // number of the last stop; one more than there are once the last was passed
const LEADS_ON = ".st-key-tour_lesson a";
const OPEN = "[data-testid=stPopoverBody], [role=listbox], [role=dialog]"; // what Escape closes first

function invitation(data, go) {
  const { n } = data;
  const last = Number(remembered(KEPT));
  const goesOn = last > 1 && last <= n;
  const text = goesOn ? `Continue the tour: stop ${last} of ${n}` : last > n ? "Take the tour again" : "Start here";
  const start = keyed(makeButton("start", text, () => go(goesOn ? last : 1)), "start");
  start.title = `A tour of this page in ${n} stops, with your sentence. Leave it at any time.`;
  return [start, make("p", "purpose", data.purpose)];
}

function stopParts(data, go) {
  const { n, stops, at } = data;
  const { title, text } = stops[at - 1];
  const isLast = at === n;
  const live = make("div", "live", make("strong", "", `${at} of ${n} · ${title}. `), text);
  live.setAttribute("aria-live", "polite");
  const on = isLast ? makeButton("", "Finish", () => go(0, n + 1)) : makeButton("", "Skip", () => go(at + 1));
  const buttons = make("div", "buttons", keyed(on, "on"));
  if (at > 1) buttons.prepend(keyed(makeButton("", "Back", () => go(at - 1)), "back"));
  if (!isLast) buttons.append(keyed(makeButton("", "Leave", () => go(0, at)), "leave"));
  return [live, buttons];
}

/** Scrolls until what the stop is about is in sight and the stop, which stays at the top, does not lie over it. */
function bring(target, place) {
  if (!target) return;
  const fixed = parseFloat(getComputedStyle(document.querySelector("[data-testid=stLayoutWrapper]:has(> .st-key-lead_of_stage)")).top);
  const above = (fixed || 0) + document.querySelector(".st-key-tour_under_way").offsetHeight + ROOM;
  const fits = above + target.offsetHeight + ROOM <= window.innerHeight;
  Object.assign(target.style, { scrollMarginTop: `${above}px`, scrollMarginBottom: `${ROOM}px` });
  target.scrollIntoView({ block: fits ? "nearest" : "start" });
}

function show(component) {
  const { data, parentElement, setTriggerValue } = component;
  const place = parentElement.querySelector(".tour");
  setColours(place, data.colours);
  place.setAttribute("role", "region");
  place.setAttribute("aria-label", "Tour");
  const hadFocus = place.contains(activeIn(parentElement));
  const go = (number, last = number) => {
    remember(KEPT, last);
    setTriggerValue("go", number);
  };
  renew(place, data.at ? stopParts(data, go) : invitation(data, go));
  if (hadFocus && !place.querySelector("button:focus")) place.querySelector("button").focus();
  if (data.at && place.shownStop !== data.at) {
    remember(KEPT, data.at);
    const { target } = data.stops[data.at - 1];
    bring(document.querySelector(`.st-key-${target}`) ?? document.attnvizStage?.viewer?.part(target), place);
  }
  place.shownStop = data.at;
  const leave = (event) => {
    if (event.key === "Escape" && data.at && !event.defaultPrevented && !document.querySelector(OPEN)) go(0, data.at);
  };
  const end = ({ target }) => data.at && target.closest?.(LEADS_ON) && remember(KEPT, data.n + 1);
  document.addEventListener("keydown", leave);
  document.addEventListener("click", end);
  return () => {
    document.removeEventListener("keydown", leave);
    document.removeEventListener("click", end);
  };
}
