// A line below a chart that says what is hovered over.

function showAsReadout(line) {
  line.classList.add("readout");
  line.setAttribute("aria-live", "polite");
}
