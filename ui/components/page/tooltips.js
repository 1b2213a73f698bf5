// When a tooltip is shown, and where.

const HELP = "button[aria-label^='Help']";
const MENU = ".st-key-menu";
const LIST = "[data-testid=stSelectbox] input";

/**
 * Sets three marks on the page's root for the style: "pressed" from a press until the pointer leaves the pressed element, "asked" while a
 * requested help text is open, and "in_menu" while the pointer or the focus is on the menu. A list's value that does not fit becomes its title.
 */
function markPressed({ hear }) {
  const root = document.documentElement.classList;
  let place = null; // of what was pressed; where a drawing replaces it, the new one stands there
  const pointerdown = ({ target }) => {
    root.toggle("asked", Boolean(target.closest(HELP)));
    place = target.closest("[data-testid=stTooltipHoverTarget]")?.getBoundingClientRect();
    root.toggle("pressed", Boolean(place) && !root.contains("asked"));
  };
  const pointermove = ({ clientX: x, clientY: y }) => {
    if (!place || (x >= place.left && x <= place.right && y >= place.top && y <= place.bottom)) return;
    place = null;
    root.remove("pressed");
  };
  const pointerover = ({ target }) => {
    root.toggle("in_menu", Boolean(target.closest(MENU)));
    if (target.matches(LIST)) target.title = target.scrollWidth > target.clientWidth ? target.value : "";
  };
  const focusin = ({ target }) => {
    root.toggle("asked", target.matches(HELP));
    root.toggle("in_menu", Boolean(target.closest(MENU)));
  };
  hear({ pointerdown }, { capture: true });
  hear({ pointermove, pointerover, focusin });
}
