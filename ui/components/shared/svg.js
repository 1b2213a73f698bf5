const SVG = "http://www.w3.org/2000/svg";

function put(drawn, attributes, ...children) {
  for (const [attribute, value] of Object.entries(attributes)) drawn.setAttribute(attribute, value);
  drawn.append(...children);
  return drawn;
}

function draw(name, attributes, ...children) {
  return put(document.createElementNS(SVG, name), attributes, ...children);
}

/** A drawing that can be saved as it is: its fonts are attributes, and it says its size. */
function drawSheet(data, size, ...children) {
  return draw(
    "svg",
    {
      ...size,
      ...{ xmlns: SVG, viewBox: `0 0 ${size.width} ${size.height}`, role: "grid", "aria-label": data.name },
      ...{ "font-family": data.font, "font-size": data.fontSize },
    },
    ...children
  );
}
