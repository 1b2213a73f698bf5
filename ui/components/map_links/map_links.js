// Marks the selected point of a chart that plotly_figure draws, with lines to its partners, in an SVG over the chart
// that follows its zoom; and reports the custom data of a point that is clicked. Rests on svg, chart and chart_insides.

const WIDEST = 7; // px, for a weight of 1
const LETTER = 7.4; // px a letter takes at 12 px
const LINE = 15; // px

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

function overlay(chart, { picked, links, font, colours }) {
  const ground = chart.querySelector(".svg-container");
  const area = plotArea(chart);
  if (!ground || !area) return;
  ground.querySelector(".links")?.remove();
  if (!picked) return;
  const { left, top, width, height } = area;
  const svg = draw("svg", { class: "links", width, height, "aria-hidden": "true" });
  svg.style.cssText = `position:absolute;left:${left}px;top:${top}px;overflow:hidden;pointer-events:none`;
  const at = (mark) => [area.x(mark.x), area.y(mark.y)];
  const [fromX, fromY] = at(picked);
  for (const link of links) {
    const [x2, y2] = at(link);
    const stroke = { stroke: colours.picked, "stroke-width": Math.max(1.5, WIDEST * link.weight), "stroke-opacity": 0.75 };
    svg.append(draw("line", { x1: fromX, y1: fromY, x2, y2, ...stroke }));
  }
  const boxes = [picked, ...links].map((point) => ({ x: at(point)[0], y: at(point)[1], width: 14 }));
  for (const [number, point] of [picked, ...links].entries()) {
    const [cx, cy] = at(point);
    const reach = number ? 6 : 9;
    const outline =
      number && point.role === "key" // a diamond, as the chart has it
        ? `M${cx - reach},${cy} l${reach},${-reach} ${reach},${reach} ${-reach},${reach}z`
        : `M${cx - reach},${cy} a${reach},${reach} 0 1 1 ${2 * reach},0 a${reach},${reach} 0 1 1 ${-2 * reach},0z`;
    const fill = number ? colours[point.role] : "none";
    const { x, y } = placed([cx, cy], point.label, boxes);
    const style = {
      ...{ fill: colours[point.role], stroke: colours.background, "stroke-width": 4, "paint-order": "stroke" },
      ...{ "font-family": font, "font-size": 12, "font-weight": number ? 400 : 700 },
    };
    svg.append(
      draw("path", { d: outline, fill, stroke: colours.picked, "stroke-width": number ? 1.5 : 3 }),
      draw("text", { x, y, "text-anchor": "middle", "dominant-baseline": "central", ...style }, point.label)
    );
  }
  ground.append(svg);
}

function show(component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector(".map_links");
  const click = ({ customdata }) => {
    if (customdata !== undefined) setTriggerValue("pick", Array.from(customdata));
  };
  return followChart(root, data.chart, (chart) => {
    const lay = () => overlay(chart, data);
    const ends = [listen(chart, { plotly_afterplot: lay, plotly_relayout: lay }), listenToClicks(chart, click)];
    chart.dataset.linked = ""; // a click is heard from now on
    if (matchMedia("(pointer: coarse)").matches) Plotly.relayout(chart, { dragmode: false }); // a finger scrolls the page
    lay();
    return () => ends.forEach((end) => end());
  });
}
