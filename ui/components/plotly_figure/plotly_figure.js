// A figure of Plotly's, drawn with the Plotly that Streamlit brings. Of each figure after the first, what differs is drawn.

const NARROWEST = 150; // px
const CONFIG = { displayModeBar: false };

let loading = null;

function loadPlotly(file) {
  const { src } = document.querySelector('script[type="module"][src*="static/js/"]'); // Streamlit's, beside it
  loading ??= import(new URL(file, src));
  return loading;
}

/** Draws the newest figure, or the one that is drawn in another size; nothing in a place that is not shown. */
function draw(place) {
  const { figure, clientWidth, clientHeight: height } = place;
  if (!clientWidth) return;
  const [chart] = place.children;
  const width = Math.max(clientWidth, NARROWEST);
  if (chart.figure !== figure) {
    chart.figure = figure;
    Plotly.react(chart, figure.data, { ...figure.layout, width, height }, CONFIG);
  } else if (chart.layout.width !== width || chart.layout.height !== height) {
    Plotly.relayout(chart, { width, height });
  }
}

function begin(place) {
  place.append(document.createElement("div"));
  const watcher = new ResizeObserver(() => draw(place));
  watcher.observe(place);
  place.end = () => {
    watcher.disconnect();
    Plotly.purge(place.firstElementChild);
  };
}

function show({ data, parentElement }) {
  const place = parentElement.querySelector(".plotly_figure");
  const text = new TextDecoder().decode(data);
  if (place.text !== text) {
    place.text = text;
    const { figure, alt, plotly } = JSON.parse(text);
    place.figure = figure;
    place.setAttribute("role", "figure");
    place.setAttribute("aria-label", alt);
    place.style.height = `${figure.layout.height}px`; // its room, before it is drawn; a style may make it less
    loadPlotly(plotly).then(() => {
      if (!place.isConnected) return;
      if (!place.end) begin(place);
      draw(place);
    });
  }
  return () => place.end?.();
}
