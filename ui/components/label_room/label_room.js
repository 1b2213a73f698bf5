// Hides labels of a map that lie on others or leave the chart. Maps are laid out for a wide window; in a narrow one
// the points are closer to each other, and labels as large as before. Labels at the ends of lines stay, and are moved
// into the chart. Rests on chart and chart_insides.

const MOST_COVERED = 0.1; // of a label, as in attnviz/figures/projection.py
const MOST_CUT = 1; // px

/** Share of the smaller of two boxes that lies on the other. */
function covered(one, other) {
  const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  const height = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
  const area = Math.max(width, 0) * Math.max(height, 0);
  return area / Math.min(one.width * one.height, other.width * other.height);
}

/** Hides what has no room; whether there was any. */
function makeRoom(chart) {
  const lines = tracesOf(chart).filter(({ mode, x }) => mode === "lines" && x);
  const ends = new Set(lines.flatMap(({ x, y }) => Array.from(x, (one, at) => `${one} ${y[at]}`)));
  const written = [...chart.querySelectorAll(".textpoint text")].filter(({ textContent }) => textContent);
  for (const label of written) label.style.translate = "none";
  const frame = chart.getBoundingClientRect();
  const labels = written.map((label) => {
    const { x, y } = pointOf(label);
    const box = label.getBoundingClientRect();
    const inwards = Math.max(frame.left - box.left, 0) + Math.min(frame.right - box.right, 0);
    return { label, box, inwards, isEnd: ends.has(`${x} ${y}`) };
  });
  labels.sort((one, other) => other.isEnd - one.isEnd);
  const kept = [];
  for (const { label, box, inwards, isEnd } of labels) {
    const isCut = Math.abs(inwards) > MOST_CUT;
    const isHidden = !isEnd && (isCut || kept.some((other) => covered(box, other) > MOST_COVERED));
    label.style.visibility = isHidden ? "hidden" : "visible";
    if (isEnd) {
      label.style.translate = `${inwards}px`;
      box.x += inwards;
    }
    if (!isHidden) kept.push(box);
  }
  return kept.length < labels.length;
}

function show({ data, parentElement }) {
  const line = parentElement.querySelector(".label_room");
  line.style.color = data.colour;

  return followChart(line, data.chart, (chart) => {
    const look = () => {
      line.textContent = makeRoom(chart) ? data.note : "";
    };
    look();
    return listen(chart, { plotly_afterplot: look });
  });
}
