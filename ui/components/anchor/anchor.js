// Scrolls to the heading that the address names, and keeps it in view while the content above it is still being drawn:
// Streamlit scrolls only once, before formulas have their height.

const PATIENCE_MS = 15000;
const HANDS = ["wheel", "touchstart", "pointerdown", "keydown"];

function show({ parentElement }) {
  const place = parentElement.querySelector(".anchor");
  if (place.hasScrolled) return;
  place.hasScrolled = true; // what is drawn anew later stays where the reader is
  const heading = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!heading) return;
  const show = () => heading.scrollIntoView();
  const watcher = new ResizeObserver(show);
  watcher.observe(heading.closest(".stMainBlockContainer"));
  const stop = () => {
    watcher.disconnect();
    clearTimeout(patience);
    for (const hand of HANDS) window.removeEventListener(hand, stop, true);
  };
  const patience = setTimeout(stop, PATIENCE_MS);
  for (const hand of HANDS) window.addEventListener(hand, stop, true);
  show();
  return stop;
}
