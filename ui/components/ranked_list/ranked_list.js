// A ranked list of buttons, each with a bar. Clicking one, or pressing Enter on it, selects it.
// Rests on html and renew.

function row(data, number, isRanked, pick) {
  const button = makeButton("", "", () => pick(number));
  button.setAttribute("aria-pressed", String(data.picked));
  const tokens = data.key ? `${data.text} → ${data.key}` : data.text;
  button.title = `${tokens}: ${data.amount}. Click to select it.`;

  const what = make("span", data.key ? "what pair" : "what");
  if (data.key) what.append(make("bdi", "query", data.text), " → ", make("bdi", "key", data.key));
  else what.append(data.text);
  const bar = make("span", data.length < 0 ? "bar falls" : "bar");
  bar.style.setProperty("--share", Math.abs(data.length));
  button.append(make("span", "rank", isRanked ? number + 1 : ""), " ", what, " ", make("span", "amount", data.amount), bar);
  return make("li", "", button);
}

function show(component) {
  const { data, parentElement, setTriggerValue } = component;
  const place = parentElement.querySelector(".ranked_list");
  setColours(place, data.colours);
  place.classList.toggle("scrolls", data.scrolls);
  place.classList.toggle("ranked", data.isRanked);
  const rows = data.rows.map((item, number) => row(item, number, data.isRanked, (picked) => setTriggerValue("pick", picked)));
  const list = make("ol", "", ...rows);
  list.setAttribute("aria-label", data.name);
  renew(place, [list]);
}
