// Part of plotly_figure: hides labels of a map that overlap others or another point, or leave the chart. Maps are laid out for a wide window; in
// a narrow one the points are closer together, but the labels as large as before. Of overlapping labels the one at the end
// of the wider line stays. Those at the ends of the widest line and the picked one always stay, and are moved into the chart.
// Rests on chart and chart_insides.

const GAP = 4; // px between labels, a word space
const LEADING = 1.5; // px of a label above and below its letters that another may share
const TOUCH = 3; // px of a label's empty edge that may lie on a mark
const MOST_CUT = 1; // px

/** Whether two boxes are nearer to each other than a word space, and on one line. */
function meet(label, other) {
  const isBeside = Math.min(label.right, other.right) - Math.max(label.left, other.left) > -GAP;
  return isBeside && Math.min(label.bottom, other.bottom) - Math.max(label.top, other.top) > LEADING;
}

/** Whether a box lies on a mark; boxes that touch at their edges do not. */
function liesOn(box, mark) {
  const width = Math.min(box.right, mark.right) - Math.max(box.left, mark.left);
  return width > TOUCH && Math.min(box.bottom, mark.bottom) - Math.max(box.top, mark.top) > TOUCH;
}

/** Of each point at the end of a line, the width of its widest line. */
function lineWidths(chart) {
  const widths = new Map();
  for (const { mode, x, y, line } of tracesOf(chart)) {
    if (mode !== "lines" || !x) continue;
    for (const [at, across] of Array.from(x).entries()) {
      const end = `${across} ${y[at]}`;
      widths.set(end, Math.max(line.width, widths.get(end) ?? 0));
    }
  }
  return widths;
}

/** Hides what has no room; whether there was any. */
function makeRoom(chart, picked) {
  const widths = lineWidths(chart);
  const widest = Math.max(...widths.values());
  const written = [...chart.querySelectorAll(".textpoint text")].filter(({ textContent }) => textContent);
  for (const label of written) label.style.translate = "none";
  const frame = chart.getBoundingClientRect();
  const points = marksOf(chart).map(({ mark, at }) => ({ own: `${at.x} ${at.y}`, box: mark.getBoundingClientRect() }));
  const labels = written.map((label) => {
    const { x, y } = pointOf(label);
    const box = label.getBoundingClientRect();
    const inwards = Math.max(frame.left - box.left, 0) + Math.min(frame.right - box.right, 0);
    const width = label.textContent === picked ? Infinity : (widths.get(`${x} ${y}`) ?? 0);
    return { label, box, inwards, own: `${x} ${y}`, width };
  });
  labels.sort((label, other) => other.width - label.width);
  const kept = [];
  for (const { label, box, inwards, own, width } of labels) {
    const isEnd = width > 0;
    const hasRoom =
      (isEnd || Math.abs(inwards) <= MOST_CUT) &&
      !kept.some((other) => meet(box, other)) &&
      !points.some((point) => point.own !== own && liesOn(box, point.box));
    const isHidden = !hasRoom && !(isEnd && width >= widest);
    label.style.visibility = isHidden ? "hidden" : "visible";
    if (isEnd) {
      label.style.translate = `${inwards}px`;
      box.x += inwards;
    }
    if (!isHidden) kept.push(box);
  }
  return kept.length < labels.length;
}

/** Makes room for the labels of the chart with this key, whenever it is drawn; returns what ends that. */
function makeRoomForLabels(line, data, key) {
  line.style.color = data.colour;
  return followChart(line, key, (chart) => {
    const sift = () => {
      line.textContent = makeRoom(chart, data.picked) ? data.note : "";
    };
    sift();
    return listen(chart, { plotly_afterplot: sift });
  });
}
