// Pieces of HTML. Their texts are text nodes, so a token can never become markup.

export function make(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function makeButton(className, text, click = null) {
  const button = make("button", className, text);
  button.type = "button";
  button.onclick = click;
  return button;
}

/** A line that says what is hovered over, or what came of a click; it is read out when it changes. */
export function makeLive() {
  const live = make("div", "live");
  live.setAttribute("aria-live", "polite");
  return live;
}

/** Gives the style sheet these colours by name. */
export function setColours(root, colours) {
  for (const [name, value] of Object.entries(colours)) root.style.setProperty(`--${name}`, value);
}

/** What has the focus inside a component; its root is not the document's. */
export function activeIn(parentElement) {
  return parentElement.activeElement ?? document.activeElement;
}
