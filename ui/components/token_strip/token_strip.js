// Tokens as a strip of chips. Clicking one, or pressing Enter on it, picks it as the query.
// Texts are set as text nodes only, so a token can never become markup.

function maskButton(token, mask, apply) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "mask";
  button.textContent = token.was ? "unmask" : "mask";
  button.title = token.was
    ? `Bring “${token.was}” back.`
    : `Put ${mask} in the place of “${token.label}” and compute everything anew.`;
  button.setAttribute("aria-label", button.title);
  button.dataset.masks = token.position;
  button.addEventListener("click", () => apply(token.position));
  return button;
}

function chip(token, pick) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "chip";
  button.classList.toggle("special", token.special);
  button.classList.toggle("joined", token.joined);
  button.classList.toggle("query", token.query);
  button.classList.toggle("key", token.key);
  button.setAttribute("aria-pressed", String(token.query));
  button.setAttribute("aria-label", `token ${token.position}: ${token.label}, ${token.share} of the query's attention`);
  button.title = `${token.label}: ${token.share} of the picked query's attention. Click to pick it as the query.`;
  if (token.was) button.title += ` It stands for “${token.was}”.`;
  button.dataset.position = token.position;

  const index = document.createElement("span");
  index.className = "index";
  index.textContent = token.position;
  const label = document.createElement("bdi");
  label.className = "label";
  label.textContent = token.label;
  const weight = document.createElement("span");
  weight.className = "weight";
  weight.style.width = `${100 * token.weight}%`;

  if (token.was) {
    const was = document.createElement("s");
    was.className = "was";
    was.textContent = token.was;
    label.append(" ", was);
  }
  button.append(index, label, weight);
  button.addEventListener("click", () => pick(token.position));
  return button;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const strip = parentElement.querySelector(".token_strip");
  strip.setAttribute("role", "group");
  strip.setAttribute("aria-label", data.name);
  for (const [name, value] of Object.entries(data.colours)) {
    strip.style.setProperty(`--${name}`, value);
  }
  const active = parentElement.activeElement ?? document.activeElement;
  const { position: focused, masks } = strip.contains(active) ? active.dataset : {};
  const parts = [];
  for (const token of data.tokens) {
    parts.push(chip(token, (position) => setTriggerValue("pick", position)));
    if (token.maskable && token.query) {
      parts.push(maskButton(token, data.mask, (position) => setTriggerValue("mask", position)));
    }
    if (token.cut) {
      const mark = document.createElement("span");
      mark.className = "cut";
      mark.textContent = token.cut;
      parts.push(mark);
    }
  }
  strip.replaceChildren(...parts);
  const picked = strip.querySelector(".query");
  if (focused) strip.querySelector(`[data-position="${focused}"]`)?.focus();
  if (masks) strip.querySelector(`[data-masks="${masks}"]`)?.focus();
  if (picked) {
    // Scroll the strip alone, never the page.
    const top = picked.offsetTop - strip.offsetTop;
    if (top < strip.scrollTop || top + picked.offsetHeight > strip.scrollTop + strip.clientHeight) {
      strip.scrollTop = top - strip.clientHeight / 2;
    }
  }
}
