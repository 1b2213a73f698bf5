// Part of plotly_figure: reports the custom data of a clicked point. A chart with a name
// supports the keyboard; a line below it describes the current point or cell.
// Rests on readout, chart, chart_insides, tick_labels and walk.

const isTouched = matchMedia("(hover: none)").matches;

/** How one is selected; a heatmap has cells. */
function hintOf(chart) {
  const mark = chart?.data.some(({ type }) => type === "heatmap") ? "cell" : "point";
  return isTouched
    ? `Tap a ${mark} to select it.`
    : `Click a ${mark}, or walk through the ${mark}s with the arrow keys; Enter selects.`;
}

/** The text of a point on one line: Plotly's hover text has entities in the place of what it would read as markup. */
function plainText(hovertext) {
  const page = new DOMParser().parseFromString(hovertext.replaceAll("<br>", ", "), "text/html");
  return page.body.textContent;
}

/** The points in rows, as the arrow keys walk through them: those of a trace, or the cells of a heatmap's row, the upper first. */
function pointRows({ data, layout }) {
  return data.flatMap((trace, curveNumber) => {
    const { type, customdata, hovertext } = trace;
    if (!customdata) return [];
    if (type !== "heatmap") {
      const point = (number) => ({ curveNumber, pointNumber: number, custom: customdata[number], text: hovertext[number] });
      return [{ length: customdata.length, point }];
    }
    const rows = customdata.map((row, y) => ({
      length: row.length,
      point: (x) => ({ curveNumber, pointNumber: [y, x], custom: row[x], text: hovertext[y][x] }),
    }));
    const [bottom, top] = layout.yaxis.range;
    return bottom > top ? rows : rows.reverse();
  });
}

/** Whether it has three axes; Plotly cannot be told to point at something in such a one. */
function isTurned(chart) {
  return chart.data.some(({ type }) => type === "scatter3d");
}

/** Sends the custom data of a clicked point of the chart with this key; returns what ends that. */
function listenToPoints(line, data, key, send) {
  line.dataset.walks = Boolean(data.name);
  showAsReadout(line);
  let chart = null;
  if (data.name && !line.textContent) line.textContent = hintOf(chart);

  const report = (customdata) => {
    if (customdata !== undefined) send(Array.from(customdata));
  };
  const click = ({ customdata }) => report(customdata);
  const say = (hovertext) => {
    line.textContent = plainText(hovertext);
  };
  const hover = (event) => {
    const { data: trace, pointNumber } = event.points[0];
    const text = [pointNumber].flat().reduce((nested, at) => nested?.[at], trace?.hovertext);
    if (data.name && text !== undefined) say(text);
  };
  const unhover = () => {
    if (data.name) line.textContent = hintOf(chart);
  };

  /** Looks at the point that the walk has reached, which is noted on the line. */
  const visit = ([row, number]) => {
    const { curveNumber, pointNumber, text } = pointRows(chart)[row].point(number);
    if (!isTurned(chart)) Plotly.Fx.hover(chart, [{ curveNumber, pointNumber }]);
    say(text);
  };
  const steps = {
    lengths: () => pointRows(chart).map(({ length }) => length),
    visit,
    take: ([row, number]) => report(pointRows(chart)[row].point(number).custom),
    leave: () => {
      if (!isTurned(chart)) Plotly.Fx.unhover(chart);
      line.textContent = hintOf(chart);
    },
  };
  /** Another figure is drawn, without what the walk has reached. */
  const redrawn = () => {
    if (document.activeElement === chart && line.at) visit(line.at);
  };

  return followChart(line, key, (newest) => {
    chart = newest;
    if (data.name && line.textContent === hintOf(null)) line.textContent = hintOf(chart);
    const clickRow = (_, number) => report(chart.data[0].customdata[number]);
    const ends = [
      data.wholeRows
        ? listenToLabels(chart, clickRow, { wholeRows: true })
        : listenToClicks(chart, click),
    ];
    if (data.name) {
      line.from = [0, -1];
      ends.push(walkable(chart, data.name, steps, line));
      ends.push(listen(chart, { plotly_hover: hover, plotly_unhover: unhover, plotly_react: redrawn }));
    }
    return () => ends.forEach((end) => end());
  });
}
