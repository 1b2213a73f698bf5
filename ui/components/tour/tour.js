// A tour in a few stops. The last one is kept in the browser, so that who comes back goes on from there.
// Rests on html and renew.

const ROOM = 16; // px between a stop and what it is about
const KEPT = "attnviz.tour"; // number of the last stop; one more than there are once the last was passed

function kept() {
  try {
    return Number(localStorage.getItem(KEPT)) || 0;
  } catch {
    return 0; // a browser that keeps nothing
  }
}

function keep(number) {
  try {
    localStorage.setItem(KEPT, number);
  } catch {
    // the same
  }
}

function invitation(data, go) {
  const n = data.stops.length;
  const last = kept();
  const goesOn = last > 1 && last <= n;
  const text = goesOn ? `Continue the tour: stop ${last} of ${n}` : last > n ? "Take the tour again" : "Start here";
  const start = keyed(makeButton("start", text, () => go(goesOn ? last : 1)), "start");
  start.title = `A tour of this page in ${n} stops, with your sentence. Leave it at any time.`;
  return [make("p", "purpose", data.purpose), start];
}

function stopParts(data, go) {
  const { stops, at } = data;
  const { title, text } = stops[at - 1];
  const isLast = at === stops.length;
  const said = make("div", "said", make("strong", "", `${at} of ${stops.length} · ${title}. `), text);
  said.setAttribute("aria-live", "polite");
  const back = keyed(makeButton("", "Back", () => go(at - 1)), "back");
  back.disabled = at === 1;
  const leave = () => go(0, at);
  const finish = () => go(0, stops.length + 1);
  const on = keyed(makeButton("start", isLast ? "Finish" : "Next stop", isLast ? finish : () => go(at + 1)), "on");
  const buttons = make("div", "buttons", back, on);
  if (!isLast) buttons.append(keyed(makeButton("", "Leave", leave), "leave"));
  return [said, buttons];
}

/** Scrolls until the control or picture is in sight and the stop, which stays at the top, does not lie over it. */
function bring(target, place) {
  if (!target) return;
  const fixed = parseFloat(getComputedStyle(document.querySelector("[data-testid=stLayoutWrapper]:has(> .st-key-lead)")).top);
  const above = (fixed || 0) + place.offsetHeight + ROOM;
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
  place.classList.toggle("under-way", data.at > 0);
  const hadFocus = place.contains(activeIn(parentElement));
  const go = (number, last = number) => {
    keep(last);
    setTriggerValue("go", number);
  };
  renew(place, data.at ? stopParts(data, go) : invitation(data, go));
  if (hadFocus && !place.querySelector("button:enabled:focus")) place.querySelector(".start").focus();
  if (data.at && place.shownStop !== data.at) {
    bring(document.querySelector(`.st-key-${data.stops[data.at - 1].target}`), place);
  }
  place.shownStop = data.at;
}
