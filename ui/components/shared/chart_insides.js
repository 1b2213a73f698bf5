// What Plotly 4.2 exposes in no public field or event. No other script reads Plotly's private fields.

/** Where the plot lies in the chart, and where numbers lie in the plot, px: layout has margins and ranges as they are
 * asked for, not as they come out. */
function plotArea(chart) {
  const { xaxis, yaxis } = chart._fullLayout ?? {};
  if (!xaxis) return null;
  return {
    ...{ left: xaxis._offset, top: yaxis._offset, width: xaxis._length, height: yaxis._length },
    ...{ x: (number) => xaxis.l2p(number), y: (number) => yaxis.l2p(number) },
  };
}

/** Traces with arrays of numbers: chart.data has them as they were sent, which is in base64. */
function tracesOf(chart) {
  return chart._fullData;
}

/** The marks of all points, each with its x and y. */
function marksOf(chart) {
  return [...chart.querySelectorAll(".points path.point")].map((mark) => ({ mark, at: mark.__data__ }));
}

/** The point that a label stands beside: a label has no number of its point, and a point without a text no label. */
function pointOf(label) {
  return label.parentNode.__data__;
}

/** Forgets the ranges that axes were given. Plotly.relayout does, but Plotly.react sets them again, over those of the new
 * figure, where `scaleanchor` ties two axes. */
function forgetRanges(chart) {
  for (const [name, axis] of Object.entries(chart._fullLayout ?? {})) {
    if (/^[xy]axis/.test(name)) delete axis._inputRange;
  }
}

/** The next press begins a click of its own, however soon after the last. */
function endDoubleClick(chart) {
  chart._mouseDownTime = 0;
}

/** The point that Plotly saw under the pointer when it last looked. */
function pointUnder(chart) {
  return chart._hoverdata?.[0];
}

/** Where the plot may lie and how large it may be, px; a chart with axes of equal scales need not fill that. */
function plotRoom(chart) {
  const { l: left, w: width, h: height } = chart._fullLayout._size;
  return { left, width, height };
}
