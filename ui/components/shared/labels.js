// Numbers as text, and labels that fit their room, measured in the font that was named last.

function numberText(weight) {
  if (weight >= 0.9995) return weight.toPrecision(3);
  return weight < 0.0005 ? "<.001" : weight.toFixed(3).slice(1);
}

const canvas = document.createElement("canvas").getContext("2d");

function measureIn(font) {
  canvas.font = font;
}

function widthOf(label) {
  return canvas.measureText(label).width;
}

function shortened(label, room) {
  if (widthOf(label) <= room) return label;
  const letters = Array.from(label);
  while (letters.length > 1 && widthOf(`${letters.join("")}…`) > room) letters.pop();
  return `${letters.join("")}…`;
}
