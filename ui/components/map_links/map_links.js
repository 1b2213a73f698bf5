// Marks the picked point of a chart that st.plotly_chart draws, with lines to its partners, in an SVG over the chart
// that follows its zoom; and reports the custom data of a point that is clicked. Labels are text nodes only.

const SVG = "http://www.w3.org/2000/svg";
const SEARCH_MS = 50;
const WIDEST = 7; // px, for a weight of 1
const LETTER = 7.4; // px a letter takes at 12 px
const LINE = 15; // px
const FONT = '"Source Code", "Source Code VF", "Source Code Pro", ui-monospace, monospace';

function drawn(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [one, value] of Object.entries(attributes)) made.setAttribute(one, value);
  parent.append(made);
  return made;
}

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
  if (!ground || !chart._fullLayout?.xaxis) return;
  ground.querySelector(".links")?.remove();
  if (!picked) return;
  const { xaxis, yaxis } = chart._fullLayout;
  const svg = document.createElementNS(SVG, "svg");
  const size = { class: "links", width: xaxis._length, height: yaxis._length, "aria-hidden": "true" };
  for (const [one, value] of Object.entries(size)) svg.setAttribute(one, value);
  svg.style.cssText = `position:absolute;left:${xaxis._offset}px;top:${yaxis._offset}px;overflow:hidden;pointer-events:none`;
  const at = (mark) => [xaxis.l2p(mark.x), yaxis.l2p(mark.y)];
  const [fromX, fromY] = at(picked);
  for (const one of links) {
    const [x2, y2] = at(one);
    const width = Math.max(1.5, WIDEST * one.weight);
    drawn("line", { x1: fromX, y1: fromY, x2, y2, stroke: colours.picked, "stroke-width": width, "stroke-opacity": 0.75 }, svg);
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
    drawn("path", { d: outline, fill, stroke: colours.picked, "stroke-width": number ? 1.5 : 3 }, svg);
    const box = placed([cx, cy], one.label, boxes);
    const text = drawn("text", { x: box.x, y: box.y, "text-anchor": "middle", "dominant-baseline": "central" }, svg);
    const look = { fill: colours[one.role], stroke: colours.background, "stroke-width": 4, "paint-order": "stroke" };
    for (const [name, value] of Object.entries(look)) text.setAttribute(name, value);
    text.setAttribute("font-family", FONT);
    text.setAttribute("font-size", 12);
    text.setAttribute("font-weight", number ? 400 : 700);
    text.textContent = one.label;
  }
  ground.append(svg);
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".map_links");
  root.stopListening?.();

  let chart = null;
  const click = (event) => {
    const { customdata } = event.points[0];
    if (customdata !== undefined) setTriggerValue("pick", Array.from(customdata));
  };
  const draw = () => overlay(chart, data);
  const leave = () => {
    chart?.removeListener?.("plotly_click", click);
    chart?.removeListener?.("plotly_afterplot", draw);
    chart?.removeListener?.("plotly_relayout", draw);
  };
  const attach = () => {
    const found = [...document.querySelectorAll(`.st-key-${data.chart} .js-plotly-plot`)].at(-1);
    if (found === chart || !found?.on) return;
    leave();
    chart = found;
    chart.dataset.linked = ""; // a click is heard from now on
    chart.on("plotly_click", click);
    chart.on("plotly_afterplot", draw);
    chart.on("plotly_relayout", draw);
    if (matchMedia("(pointer: coarse)").matches) Plotly.relayout(chart, { dragmode: false }); // a finger scrolls the page
    draw();
  };
  attach();
  const search = setInterval(attach, SEARCH_MS); // Streamlit may draw the chart later, or anew
  root.stopListening = () => {
    clearInterval(search);
    leave();
  };
  return root.stopListening;
}
