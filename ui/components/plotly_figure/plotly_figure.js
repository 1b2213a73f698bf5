// A Plotly figure, drawn with Streamlit's copy of Plotly. After the first figure, only the differences are drawn.
// Rests on html, numbers, readout, chart, chart_insides, tick_labels, walk, point_clicks, heatmap_events and label_room.

const NARROWEST = 150; // px
const NUMBER = 17; // px that the number of a column takes, with a gap
const CONFIG = { displayModeBar: false, showAxisRangeEntryBoxes: false }; // a click beside an axis is no wish to type its range

let loading = null;

function loadPlotly(file) {
  const { src } = document.querySelector('script[type="module"][src*="static/js/"]'); // Streamlit's, beside it
  loading ??= import(new URL(file, src));
  return loading;
}

/** The ranges that a figure asks for where its axes have equal scales; none for others. Plotly widens one of them for the room
 * that there is, in the figure itself, and with every other size it would widen what it has widened before. */
function askedRanges({ layout: { xaxis, yaxis } }) {
  if (!yaxis?.scaleanchor || !xaxis.range || !yaxis.range) return {};
  return { "xaxis.range": [...xaxis.range], "yaxis.range": [...yaxis.range] };
}

/** Draws the newest figure, or the one that is drawn in another size; nothing in a place that is not shown. */
function drawFigure(place, chart) {
  const { figure, clientWidth, clientHeight: height } = place;
  if (!clientWidth) return;
  const width = Math.max(clientWidth, NARROWEST);
  const isFirst = !chart.figure;
  if (chart.figure !== figure) {
    chart.figure = figure;
    [chart.asked, chart.isZoomed] = [askedRanges(figure), false];
    forgetRanges(chart);
    Plotly.react(chart, figure.data, { ...figure.layout, width, height }, CONFIG);
  } else if (chart.layout.width !== width || chart.layout.height !== height) {
    Plotly.relayout(chart, { width, height, ...(chart.isZoomed ? {} : structuredClone(chart.asked)) });
  }
  leaveOutWhatHasNoRoom(chart, figure);
  fitColourBars(chart);
  if (!isFirst) return;
  keepQuickClicks(chart);
  chart.on("plotly_relayout", (changes) => {
    const isOwn = "width" in changes;
    chart.isZoomed ||= !isOwn && ("xaxis.range[0]" in changes || "yaxis.range[0]" in changes); // a dragged box, or a wheel
  });
  tellChart(place.key, chart);
}

/** Numbers every column, or every second and so on where the columns are narrow; shows letters in cells, whose trace says in
 * `meta` how many px they take, where they have room. */
function leaveOutWhatHasNoRoom(chart, { data, layout }) {
  const area = plotArea(chart);
  const wide = area ? area.x(1) - area.x(0) : 0;
  if (!wide) return;
  if (layout.xaxis?.dtick === 1) {
    const dtick = Math.ceil(NUMBER / wide);
    if (chart.layout.xaxis.dtick !== dtick) Plotly.relayout(chart, { "xaxis.dtick": dtick });
  }
  for (const [at, { mode, meta }] of data.entries()) {
    if (mode !== "text" || !meta) continue;
    const visible = wide >= meta;
    if ((chart.data[at].visible ?? true) !== visible) Plotly.restyle(chart, { visible }, [at]);
  }
}

/** Makes each colour bar below a plot as wide as the plot: Plotly makes it as wide as the place, of which square cells leave some
 * empty where the height limits them. */
function fitColourBars(chart) {
  const [area, room] = [plotArea(chart), plotRoom(chart)];
  if (!area) return;
  const [len, x] = [area.width / room.width, (area.left + area.width / 2 - room.left) / room.width];
  for (const [at, trace] of chart.data.entries()) {
    const [bar, name] = trace.colorbar ? [trace.colorbar, "colorbar"] : [trace.marker?.colorbar, "marker.colorbar"];
    if (bar?.orientation !== "h" || Math.abs((bar.len ?? 1) - len) * room.width < 1) continue;
    Plotly.restyle(chart, { [`${name}.len`]: len, [`${name}.x`]: x }, [at]);
  }
}

/** Plotly takes two presses within 300 ms for a double click wherever they are, and loses the second point. */
function keepQuickClicks(chart) {
  let last = { clientX: 0, clientY: 0 };
  const press = (event) => {
    if (!isOnePlace(event, last)) endDoubleClick(chart);
    last = event;
  };
  chart.addEventListener("pointerdown", press, { capture: true });
}

function begin(place) {
  const chart = document.createElement("div");
  place.append(chart);
  place.draw = () => drawFigure(place, chart);
  const watcher = new ResizeObserver(place.draw);
  watcher.observe(place);
  place.end = () => {
    watcher.disconnect();
    forgetChart(place.key, chart);
    Plotly.purge(chart);
  };
}

/** Lets what has this name listen to a figure; returns what ends that. */
function listenAs(name, ...given) {
  if (name === "point_clicks") return listenToPoints(...given);
  if (name === "heatmap_events") return listenToCells(...given);
  return makeRoomForLabels(...given);
}

/** The line below the figure that a listener of this name writes to. */
function lineOf(parentElement, name) {
  const line = parentElement.querySelector(`.${name}`) ?? make("div", name);
  if (!line.isConnected) parentElement.append(line);
  return line;
}

function show({ data, attached, parentElement, setTriggerValue }) {
  const place = parentElement.querySelector(".plotly_figure");
  const text = new TextDecoder().decode(attached);
  const { key, alt, plotly, listeners } = data;
  let ends = [];
  const listenAll = () => {
    ends = Object.entries(listeners).map(([name, told]) =>
      listenAs(name, lineOf(parentElement, name), told, key, (value) => setTriggerValue(name, value))
    );
  };
  const waits = place.text !== text && place.draw; // listeners know the new figure, and the chart still shows the one before
  if (place.text !== text) {
    const figure = JSON.parse(text);
    Object.assign(place, { text, key, figure });
    place.style.height = `${figure.layout.height}px`;
    // Streamlit keeps that height for the whole component, and would scroll the lines below the figure in it.
    Object.assign(place.closest(".stElementContainer").style, { height: "auto", flex: "0 0 auto" });
    const drawing = loadPlotly(plotly).then(() => {
      document.due.delete(drawing);
      if (!place.isConnected) return;
      if (!place.draw) begin(place);
      place.draw();
      if (waits) listenAll();
    });
    document.due.add(drawing); // streamlit_fixes/newest_message.js has the others
  }
  Object.assign(place, { role: "figure", ariaLabel: alt });
  if (!waits) listenAll();
  return () => {
    ends.forEach((end) => end());
    place.end?.();
  };
}
