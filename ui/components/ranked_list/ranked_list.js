// A ranked list of buttons, each with a bar. Clicking one, or pressing Enter on it, picks it.
// Texts are set as text nodes only, so a token can never become markup.

function piece(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

function row(data, number, pick) {
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.row = number;
  button.setAttribute("aria-pressed", String(data.picked));
  const said = data.key ? `${data.text} to ${data.key}` : data.text;
  button.setAttribute("aria-label", `${number + 1}: ${said}, ${data.amount}`);
  button.title = `${said}: ${data.amount}. Click to pick it.`;

  const what = piece("span", data.key ? "what pair" : "what");
  if (data.key) what.append(piece("bdi", "query", data.text), " → ", piece("bdi", "key", data.key));
  else what.textContent = data.text;
  const bar = piece("span", "bar");
  bar.style.width = `calc(${data.length} * (100% - 1.5em - 20px))`;
  button.append(piece("span", "rank", number + 1), what, piece("span", "amount", data.amount), bar);
  button.addEventListener("click", () => pick(number));

  const item = document.createElement("li");
  item.append(button);
  return item;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const place = parentElement.querySelector(".ranked_list");
  for (const [name, value] of Object.entries(data.colours)) {
    place.style.setProperty(`--${name}`, value);
  }
  const focused = place.contains(parentElement.activeElement ?? document.activeElement)
    ? (parentElement.activeElement ?? document.activeElement).dataset.row
    : undefined;
  const list = document.createElement("ol");
  list.setAttribute("aria-label", data.name);
  list.append(...data.rows.map((one, number) => row(one, number, (picked) => setTriggerValue("pick", picked))));
  place.replaceChildren(list);
  if (focused !== undefined) place.querySelector(`[data-row="${focused}"]`)?.focus();
}
