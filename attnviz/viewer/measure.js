// The widths of texts, and labels shortened to fit, measured in the font that was set last.

const ruler = document.createElement("canvas").getContext("2d");

export function measureIn(font) {
  ruler.font = font;
}

export function widthOf(label) {
  return ruler.measureText(label).width;
}

export function shortened(label, room) {
  if (widthOf(label) <= room) return label;
  const letters = Array.from(label);
  while (letters.length > 1 && widthOf(`${letters.join("")}…`) > room) letters.pop();
  return `${letters.join("")}…`;
}
