// Tokens as a strip of chips. Clicking one, or pressing Enter on it, selects it as the query. The strip is one stop of
// the Tab key; arrow keys, Home and End move in it.
// Rests on html, mask and renew.

function chip(token, pick) {
  const button = makeButton("chip", "", () => pick(token.position));
  for (const kind of ["special", "joined", "query", "key"]) button.classList.toggle(kind, token[kind]);
  button.setAttribute("aria-pressed", String(token.query));
  button.setAttribute("aria-label", `token ${token.position}: ${token.label}, ${token.share} of the query's attention`);
  button.title = `${token.label}: ${token.share} of the selected query's attention. Click to select it as the query.`;
  if (token.was) button.title += ` It stands for “${token.was}”.`;
  button.dataset.position = token.position;

  const label = make("bdi", "label", token.label);
  if (token.was) label.append(" ", make("s", "was", token.was));
  const weight = make("span", "weight");
  weight.style.width = `${100 * token.weight}%`;
  button.append(make("span", "index", token.position), " ", label, weight); // the space parts them when read aloud
  return keyed(button, `chip ${token.position}`);
}

/** Where a key leads from one of the buttons: to its neighbour, an end, or the closest one of the next line. */
function neighbour(buttons, from, key) {
  const at = buttons.indexOf(from);
  if (key === "Home") return buttons[0];
  if (key === "End") return buttons.at(-1);
  if (key === "ArrowLeft" || key === "ArrowRight") return buttons[at + (key === "ArrowRight" ? 1 : -1)];
  const before = key === "ArrowUp";
  if (!before && key !== "ArrowDown") return undefined;
  const others = before ? buttons.slice(0, at).reverse() : buttons.slice(at + 1);
  const next = others.find(({ offsetTop }) => offsetTop !== from.offsetTop)?.offsetTop;
  const inLine = others.filter(({ offsetTop }) => offsetTop === next);
  const away = ({ offsetLeft }) => Math.abs(offsetLeft - from.offsetLeft);
  return inLine.sort((button, other) => away(button) - away(other))[0];
}

/** Makes one button the strip's stop of the Tab key. */
function rove(buttons, stop) {
  for (const button of buttons) button.tabIndex = button === stop ? 0 : -1;
}

/** How many tokens are out of sight above and below, in words; nothing where all are in sight. */
function beyond(strip) {
  const tops = [...strip.querySelectorAll(".chip")].map(({ offsetTop }) => offsetTop - strip.offsetTop - strip.scrollTop);
  const above = tops.filter((top) => top < 0).length;
  const below = tops.filter((top) => top >= strip.clientHeight).length;
  const hidden = [above && `${above} above`, below && `${below} below`].filter(Boolean);
  return hidden.length ? `More tokens: ${hidden.join(", ")}. Scroll.` : "";
}

function noteBelow(strip) {
  const note = make("div", "beyond");
  strip.after(note);
  return note;
}

function show(component) {
  const { data, parentElement, setTriggerValue } = component;
  const strip = parentElement.querySelector(".token_strip");
  strip.setAttribute("role", "group");
  strip.setAttribute("aria-label", data.name);
  setColours(strip, data.colours);
  const parts = [];
  for (const token of data.tokens) {
    parts.push(chip(token, (position) => setTriggerValue("pick", position)));
    if (token.maskable && token.query) {
      parts.push(maskButton(token, data.mask, (position) => setTriggerValue("mask", position)));
    }
    if (token.cut) parts.push(make("span", "cut", token.cut));
  }
  renew(strip, parts);
  const picked = strip.querySelector(".query");
  const buttons = [...strip.querySelectorAll("button")];
  const active = activeIn(parentElement);
  rove(buttons, buttons.includes(active) ? active : (picked ?? buttons[0]));
  for (const button of buttons) button.onfocus = () => rove(buttons, button);
  strip.onkeydown = (event) => {
    const next = neighbour(buttons, event.target, event.key);
    if (next) {
      event.preventDefault();
      next.focus();
    }
  };
  if (picked) {
    // Scroll only the strip, never the page.
    const top = picked.offsetTop - strip.offsetTop;
    if (top < strip.scrollTop || top + picked.offsetHeight > strip.scrollTop + strip.clientHeight) {
      strip.scrollTop = top - strip.clientHeight / 2;
    }
  }
  const note = parentElement.querySelector(".beyond") ?? noteBelow(strip);
  setColours(note, data.colours);
  const update = () => {
    note.textContent = beyond(strip);
  };
  strip.onscroll = update;
  const size = new ResizeObserver(update);
  size.observe(strip);
  return () => size.disconnect();
}
