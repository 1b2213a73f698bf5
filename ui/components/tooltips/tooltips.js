// Sets three marks on the page's root for the style: "pressed" from a press until the pointer leaves the pressed element,
// "asked" while a requested help text is open, and "in_menu" while the pointer or the focus is on the menu. A list's value that does not fit becomes the list's title.

const HELP = "button[aria-label^='Help']";
const MENU = ".st-key-menu";
const LIST = "[data-testid=stSelectbox] input";

function show() {
  const root = document.documentElement.classList;
  let place = null; // of what was pressed; where a drawing replaces it, the new one stands there
  const press = ({ target }) => {
    root.toggle("asked", Boolean(target.closest(HELP)));
    place = target.closest("[data-testid=stTooltipHoverTarget]")?.getBoundingClientRect();
    root.toggle("pressed", Boolean(place) && !root.contains("asked"));
  };
  const move = ({ clientX: x, clientY: y }) => {
    if (!place || (x >= place.left && x <= place.right && y >= place.top && y <= place.bottom)) return;
    place = null;
    root.remove("pressed");
  };
  const enter = ({ target }) => {
    root.toggle("in_menu", Boolean(target.closest(MENU)));
    if (target.matches(LIST)) target.title = target.scrollWidth > target.clientWidth ? target.value : "";
  };
  const focus = ({ target }) => {
    root.toggle("asked", target.matches(HELP));
    root.toggle("in_menu", Boolean(target.closest(MENU)));
  };
  document.addEventListener("pointerdown", press, true);
  document.addEventListener("pointermove", move);
  document.addEventListener("pointerover", enter);
  document.addEventListener("focusin", focus);
  return () => {
    document.removeEventListener("pointerdown", press, true);
    document.removeEventListener("pointermove", move);
    document.removeEventListener("pointerover", enter);
    document.removeEventListener("focusin", focus);
  };
}
