// The legend of a token flow with lines of several heads. Rests on svg and measure.

const DASHES = ["none", "12 5", "3 4", "14 4 3 4"]; // of each head's lines

/** The heads with their colours, each a button that switches its lines off; nothing where there is one. */
function drawFlowLegend({ matrices, colours }, hidden, width) {
  const group = draw("g", {});
  if (matrices.length < 2) return { group, height: 0 };
  let [x, y] = [0, 0];
  matrices.forEach(({ name, label, colour }, index) => {
    const wide = 56 + widthOf(label);
    if (x > 0 && x + wide > width) [x, y] = [0, y + 34];
    const shown = !hidden.has(name);
    const item = draw("g", { role: "button", tabindex: 0, "aria-pressed": shown, "aria-label": `lines of ${label}`, "data-matrix": name });
    item.append(
      draw("rect", { class: "place", x: x + 1, y: y + 1, width: wide - 6, height: 30, rx: 6, fill: "none", stroke: shown ? colours.edge : "none", "pointer-events": "all" }),
      draw("line", { x1: x + 10, x2: x + 36, y1: y + 16, y2: y + 16, stroke: shown ? colour : colours.quiet, "stroke-width": shown ? 4 : 1, "stroke-dasharray": DASHES[index] }),
      draw("text", { x: x + 42, y: y + 20, fill: shown ? colours.text : colours.quiet, "text-decoration": shown ? "none" : "line-through" }, label),
    );
    group.append(item);
    x += wide;
  });
  return { group, height: y + 40 };
}
