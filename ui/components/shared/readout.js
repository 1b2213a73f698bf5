// A line below a chart that says what is pointed at.

function showAsReadout(line) {
  line.classList.add("readout");
  line.setAttribute("aria-live", "polite");
}
