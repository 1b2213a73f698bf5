// Listens to the heatmap that st.plotly_chart draws: a click picks query and key, and a line of text
// below it says what the cell under the pointer holds, or the picked cell when there is none.
// Streamlit itself reports no clicks on heatmap cells.

const SEARCH_MS = 50;

function number(value, digits) {
  return Number.isFinite(value) ? value.toFixed(digits) : "none";
}

function describe(data, row, column, shown) {
  // softmax: weight = exp(score - normaliser of the row), so either number gives the other.
  const weight = data.show === "weights" ? shown : Math.exp(shown - data.normalisers[row]);
  const score = data.show === "scores" ? shown : Math.log(shown) + data.normalisers[row];
  const numbers = `weight ${number(weight, 4)}, score ${number(score, 4)}`;
  return `query ${data.queries[row]} → key ${data.keys[column]}: ${numbers}`;
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const line = parentElement.querySelector(".heatmap_events");
  line.stopListening?.(); // to what it was told before: Streamlit calls this again with every new matrix
  line.style.color = data.colour;
  line.setAttribute("aria-live", "polite");
  line.textContent = data.picked;

  let chart = null;
  const hover = (event) => {
    const point = event.points[0];
    const [row, column] = point.pointNumber;
    line.textContent = describe(data, row, column, point.z);
  };
  const unhover = () => {
    line.textContent = data.picked;
  };
  const click = (event) => {
    const [row, column] = event.points[0].pointNumber;
    setTriggerValue("pick", [data.queryPositions[row], data.keyPositions[column]]);
  };
  const attach = () => {
    const found = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (found === chart || !found?.on) return;
    detach();
    chart = found;
    chart.on("plotly_hover", hover);
    chart.on("plotly_unhover", unhover);
    chart.on("plotly_click", click);
  };
  const detach = () => {
    chart?.removeListener?.("plotly_hover", hover);
    chart?.removeListener?.("plotly_unhover", unhover);
    chart?.removeListener?.("plotly_click", click);
  };
  attach();
  const search = setInterval(attach, SEARCH_MS); // Streamlit may draw the chart later, or anew
  line.stopListening = () => {
    clearInterval(search);
    detach();
  };
  return line.stopListening;
}
