// Previews on hover, on the matrix and the map: a query's row and lines to its keys, or the matrix of another head;
// everything else is dimmed.
// Rests on svg, html, chart, chart_insides and stage.

const STRONGEST = 5; // lines on the map, as many as it has of the selected query
const THICKEST = 8; // px, for a weight of 1
const FAINT = 0.25; // opacity of what is not of the previewed head or query

/** An SVG over the plot of a chart, empty; nothing where the chart is not drawn. */
function sheetOver(chart) {
  const ground = chart.querySelector(".svg-container"), area = plotArea(chart);
  if (!ground || !area) return null;
  const { left, top, width, height } = area;
  const svg = draw("svg", { class: "preview", width, height, "aria-hidden": "true" });
  svg.style.cssText = `position:absolute;left:${left}px;top:${top}px;overflow:hidden;pointer-events:none`;
  ground.append(svg);
  return { svg, area };
}

/** The matrix of a previewed head over the selected one's. Plotly would take a tenth of a second for it. */
function previewMatrix(chart, marks, place) {
  const cells = weightsOf(place), sheet = cells && sheetOver(chart);
  if (!sheet) return;
  const { svg, area } = sheet;
  const [x, y] = [area.x(-0.5), area.y(-0.5)];
  const box = { x, y, width: area.x(marks.keys.length - 0.5) - x, height: area.y(marks.queries.length - 0.5) - y };
  const href = pictureOf(cells, stage().heads.nKey, marks.queries, marks.keys);
  svg.append(draw("image", { href, preserveAspectRatio: "none", "image-rendering": "pixelated", "data-place": place, ...box }));
}

function markRow(chart, marks, colours, query) {
  const sheet = sheetOver(chart), row = marks.queries.indexOf(query);
  if (!sheet || row < 0) return;
  const { svg, area } = sheet;
  const [y, below] = [area.y(row - 0.5), area.y(row + 0.5)];
  svg.append(draw("rect", { x: 1, y, width: area.width - 2, height: below - y, fill: "none", stroke: colours.picked, "stroke-width": 2 }));
}

function markPoints(chart, colours, { query, row }) {
  const sheet = sheetOver(chart);
  if (!sheet) return;
  const { svg, area } = sheet;
  const places = new Map();
  for (const { customdata, x, y } of tracesOf(chart)) {
    if (!customdata || !x) continue;
    [...customdata].forEach(([role, position], at) => places.set(`${role} ${position}`, [area.x(x[at]), area.y(y[at])]));
  }
  const from = places.get(`query ${query}`);
  if (!from) return;
  const strongest = [...row.keys()].sort((key, other) => row[other] - row[key]).slice(0, STRONGEST);
  for (const at of strongest) {
    const to = places.get(`key ${at}`);
    if (!to || row[at] < 0.005) continue;
    const stroke = { stroke: colours.picked, "stroke-width": 1 + (THICKEST - 1) * row[at], "stroke-opacity": 0.7 };
    svg.append(draw("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], ...stroke }));
  }
  svg.append(draw("circle", { cx: from[0], cy: from[1], r: 9, fill: "none", stroke: colours.picked, "stroke-width": 3 }));
}

/** Shows previews on the charts of the stage; returns what ends that.
 * @param marks has the rows (`queries`) and columns (`keys`) of the matrix as drawn, and whether another head's weights can
 * replace its cells. */
function showPreviews(root, { text }, marks, colours) {
  const ends = ["matrix", "map", "ranking"].map((key) =>
    followChart(make("i"), key, (chart) =>
      followStage(() => {
        const { own, preview } = stage();
        if (own?.text !== text || !chart.isConnected) return;
        const shown = shownRow();
        const isElsewhere = !shown.isOwn;
        if (key === "ranking") {
          chart.style.opacity = isElsewhere || shown.query !== own.query ? FAINT : 1;
          return;
        }
        chart.querySelector(".preview")?.remove();
        const isMarked = preview.query !== undefined && preview.query !== own.query;
        if (key === "map") {
          chart.style.opacity = isElsewhere ? FAINT : 1;
          if (isMarked) markPoints(chart, colours, shown);
        } else if (isElsewhere && marks.isWeights) previewMatrix(chart, marks, shown.place);
        else if (isElsewhere) chart.style.opacity = FAINT;
        else if (isMarked) markRow(chart, marks, colours, preview.query);
        if (key === "matrix" && !isElsewhere) chart.style.opacity = 1;
      })
    )
  );
  root.endPreviews?.();
  root.endPreviews = () => ends.forEach((end) => end());
  return root.endPreviews;
}
