// Pieces of SVG. Their texts are text nodes, so a token can never become markup.

export const SVG = "http://www.w3.org/2000/svg";

export function put(drawn, attributes, ...children) {
  for (const [attribute, value] of Object.entries(attributes)) drawn.setAttribute(attribute, value);
  drawn.append(...children);
  return drawn;
}

export function draw(name, attributes, ...children) {
  return put(document.createElementNS(SVG, name), attributes, ...children);
}
