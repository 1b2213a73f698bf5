// Marks the picked point of a chart that st.plotly_chart draws, with lines to its partners, in an SVG over the chart
// that follows its zoom; and reports the custom data of a point that is clicked. Labels are text nodes only.

const WIDEST = 7; // px, for a weight of 1
const LETTER = 7.4; // px a letter takes at 12 px
const LINE = 15; // px
const FONT = '"Source Code", "Source Code VF", "Source Code Pro", ui-monospace, monospace';

/** The first of eight places around a point where a label covers none of the boxes, or the last. */
function placed([x, y], label, boxes) {
  const [width, reach] = [LETTER * [...label].length, 11];
  const [aside, off] = [width / 2 + reach, LINE / 2 + reach];
  const places = [[0, -off], [0, off], [aside, 0], [-aside, 0], [aside, -off], [-aside, -off], [aside, off], [-aside, off]];
  const covers = ([dx, dy]) =>
    boxes.some((box) => Math.abs(box.x - x - dx) < (box.width + width) / 2 && Math.abs(box.y - y - dy) < LINE);
  const [dx, dy] = places.find((place) => !covers(place)) ?? places.at(-1);
  const box = { x: x + dx, y: y + dy, width };
  boxes.push(box);
  return box;
}

function overlay(chart, { picked, links, colours }) {
  const ground = chart.querySelector(".svg-container");
  const axes = ground && axesOf(chart, ground);
  if (!axes) return;
  ground.querySelector(".links")?.remove();
  if (!picked) return;
  const svg = draw("svg", { class: "links", width: axes.width, height: axes.height, "aria-hidden": "true" });
  svg.style.cssText = `position:absolute;left:${axes.left}px;top:${axes.top}px;overflow:hidden;pointer-events:none`;
  const at = (mark) => [axes.x(mark.x), axes.y(mark.y)];
  const [fromX, fromY] = at(picked);
  for (const one of links) {
    const [x2, y2] = at(one);
    const width = Math.max(1.5, WIDEST * one.weight);
    const stroke = { stroke: colours.picked, "stroke-width": width, "stroke-opacity": 0.75 };
    svg.append(draw("line", { x1: fromX, y1: fromY, x2, y2, ...stroke }));
  }
  const boxes = [picked, ...links].map((one) => ({ x: at(one)[0], y: at(one)[1], width: 14 }));
  for (const [number, one] of [picked, ...links].entries()) {
    const [cx, cy] = at(one);
    const reach = number ? 6 : 9;
    const outline =
      number && one.role === "key" // a diamond, as the chart has it
        ? `M${cx - reach},${cy} l${reach},${-reach} ${reach},${reach} ${-reach},${reach}z`
        : `M${cx - reach},${cy} a${reach},${reach} 0 1 1 ${2 * reach},0 a${reach},${reach} 0 1 1 ${-2 * reach},0z`;
    const fill = number ? colours[one.role] : "none";
    svg.append(draw("path", { d: outline, fill, stroke: colours.picked, "stroke-width": number ? 1.5 : 3 }));
    const box = placed([cx, cy], one.label, boxes);
    const text = draw("text", {
      ...{ x: box.x, y: box.y, "text-anchor": "middle", "dominant-baseline": "central", "font-family": FONT },
      ...{ "font-size": 12, "font-weight": number ? 400 : 700, "paint-order": "stroke", "stroke-width": 4 },
      ...{ fill: colours[one.role], stroke: colours.background },
    });
    text.textContent = one.label;
    svg.append(text);
  }
  ground.append(svg);
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".map_links");
  root.stopListening?.();

  const click = (event) => {
    const { customdata } = event.points[0];
    if (customdata !== undefined) setTriggerValue("pick", Array.from(customdata));
  };
  let redraw = null;
  const attach = (chart) => {
    chart.dataset.linked = ""; // a click is heard from now on
    redraw = () => overlay(chart, data);
    hear(chart, { plotly_click: click, plotly_afterplot: redraw, plotly_relayout: redraw });
    if (matchMedia("(pointer: coarse)").matches) Plotly.relayout(chart, { dragmode: false }); // a finger scrolls the page
    redraw();
  };
  const detach = (chart) => {
    unhear(chart, { plotly_click: click, plotly_afterplot: redraw, plotly_relayout: redraw });
  };
  root.stopListening = watchChart(data.chart, ".nsewdrag", attach, detach);
  return root.stopListening;
}
