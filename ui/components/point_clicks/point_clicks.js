// Listens to a chart that plotly_figure draws and reports the custom data of the point that is clicked. A chart
// with a name can be walked through by key; a line below it says which point is looked at.
// Rests on readout, chart, chart_insides and tick_labels.

const HINT = matchMedia("(hover: none)").matches
  ? "Tap a point to select it."
  : "Click a point, or walk through the points with the arrow keys; Enter selects.";

/** The text of a point: Plotly's hover text has entities in the place of what it would read as markup. */
function plain(hovertext) {
  const page = new DOMParser().parseFromString(hovertext, "text/html");
  return page.body.textContent;
}

/** Whether it has three axes; Plotly cannot be told to point at something in such a one. */
function isTurned(chart) {
  return chart.data.some(({ type }) => type === "scatter3d");
}

function show(component) {
  const { data, parentElement, setTriggerValue } = component;
  const line = parentElement.querySelector(".point_clicks");
  line.dataset.walks = Boolean(data.name);
  showAsReadout(line);
  if (data.name && !line.textContent) line.textContent = HINT;

  let chart = null;
  const report = (customdata) => {
    if (customdata !== undefined) setTriggerValue("click", Array.from(customdata));
  };
  const click = ({ customdata }) => report(customdata);
  const say = (trace, number) => {
    line.textContent = plain(trace.hovertext[number]);
  };
  const hover = (event) => {
    const { data: trace, pointNumber } = event.points[0];
    if (data.name && trace?.hovertext) say(trace, pointNumber);
  };
  const unhover = () => {
    if (data.name) line.textContent = HINT;
  };
  const kinds = () => chart.data.map((trace, curve) => ({ trace, curve })).filter(({ trace }) => trace.customdata);

  /** Looks at the point that the walk has reached, whose kind and number are noted on the line. */
  const look = () => {
    const [kind, number] = line.at;
    const { trace, curve } = kinds()[kind];
    if (!isTurned(chart)) Plotly.Fx.hover(chart, [{ curveNumber: curve, pointNumber: number }]);
    say(trace, number);
  };
  const press = (event) => {
    const all = kinds();
    if (!all.length) return;
    let [kind, number] = line.at ?? [0, -1];
    kind = Math.min(kind, all.length - 1);
    const last = () => all[kind].trace.customdata.length - 1;
    switch (event.key) {
      case "ArrowRight":
        number += 1;
        break;
      case "ArrowLeft":
        number -= 1;
        break;
      case "ArrowDown":
        kind = Math.min(kind + 1, all.length - 1);
        break;
      case "ArrowUp":
        kind = Math.max(kind - 1, 0);
        break;
      case "Home":
        number = 0;
        break;
      case "End":
        number = Infinity;
        break;
      case "Enter":
      case " ":
        if (number < 0) return;
        event.preventDefault();
        report(all[kind].trace.customdata[Math.min(number, last())]);
        return;
      default:
        return;
    }
    event.preventDefault();
    line.at = [kind, Math.min(Math.max(number, 0), last())];
    look();
  };
  const leave = () => {
    if (!isTurned(chart)) Plotly.Fx.unhover(chart);
    line.textContent = HINT;
  };
  /** Another figure is drawn, without what the walk has reached. */
  const redrawn = () => {
    if (document.activeElement === chart && line.at) look();
  };

  return followChart(line, data.chart, (found) => {
    chart = found;
    const clickRow = (_, number) => report(chart.data[0].customdata[number]);
    const ends = [
      data.wholeRows
        ? listenToLabels(chart, clickRow, { wholeRows: true })
        : listenToClicks(chart, click),
    ];
    if (data.name) {
      chart.tabIndex = 0;
      chart.setAttribute("role", "group");
      chart.setAttribute("aria-label", data.name);
      ends.push(listen(chart, { plotly_hover: hover, plotly_unhover: unhover, plotly_react: redrawn }));
      chart.addEventListener("keydown", press);
      chart.addEventListener("blur", leave);
      ends.push(() => {
        chart.removeEventListener("keydown", press);
        chart.removeEventListener("blur", leave);
      });
    }
    return () => ends.forEach((end) => end());
  });
}
