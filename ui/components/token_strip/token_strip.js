// Tokens as a strip of chips. Clicking one, or pressing Enter on it, picks it as the query.
// Texts are set as text nodes only, so a token can never become markup.

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
  const focused = strip.contains(parentElement.activeElement ?? document.activeElement)
    ? (parentElement.activeElement ?? document.activeElement).dataset.position
    : null;
  const parts = [];
  for (const token of data.tokens) {
    parts.push(chip(token, (position) => setTriggerValue("pick", position)));
    if (token.cut) {
      const mark = document.createElement("span");
      mark.className = "cut";
      mark.textContent = token.cut;
      parts.push(mark);
    }
  }
  strip.replaceChildren(...parts);
  const picked = strip.querySelector(".query");
  if (focused !== null) strip.querySelector(`[data-position="${focused}"]`)?.focus();
  if (picked) {
    // Scroll the strip alone, never the page.
    const top = picked.offsetTop - strip.offsetTop;
    if (top < strip.scrollTop || top + picked.offsetHeight > strip.scrollTop + strip.clientHeight) {
      strip.scrollTop = top - strip.clientHeight / 2;
    }
  }
}
