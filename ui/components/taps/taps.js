// What a press does besides its click: it ends the typing of a text, and closes the drawer with the menu. If the text is the
// sentence, a press on a picture does only that, since its selection would belong to the previous sentence.

const FIELD = '[class*="st-key-field_"] :is(textarea, input[type="text"]):not([role="combobox"])';
const SENTENCE = ".st-key-field_text, .st-key-field_second";
const WAITS = "[data-testid=InputInstructions] > *"; // Streamlit's hint, there while a text is not sent yet
const PICTURES = ".js-plotly-plot, .token_strip, .ranked_list, .head_grid, .map_grid, .token_flow, .viewer :is(.band, .pictures, .heads, .ranking)";
const PRESSES = ["pointerdown", "mousedown", "touchstart", "pointerup", "mouseup", "touchend", "click"];
const PATIENCE_MS = 3000; // for a text that cannot be read, after which links stay as they are

function closeDrawer() {
  if (!matchMedia("(max-width: 768px)").matches) return;
  document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
}

function show({ data, parentElement }) {
  const own = parentElement.querySelector(".taps").dataset;
  if (own.opened !== undefined && own.opened !== String(data.opened)) closeDrawer();
  own.opened = data.opened;
  let before = ""; // what a field held when it was entered
  let isChanged = false;
  let isOld = false; // what the pictures show, since the sentence that is typed has just been sent
  const enter = ({ target }) => {
    if (target.matches?.(FIELD)) before = target.value;
  };
  const leave = ({ target }) => {
    const field = document.activeElement;
    isOld = false;
    if (!field?.matches(FIELD) || field.contains(target)) return;
    isChanged = field.value !== before;
    isOld = Boolean(field.closest(SENTENCE)?.querySelector(WAITS));
    field.blur();
  };
  const drop = (event) => {
    if (isOld && event.composedPath().some((target) => target.matches?.(PICTURES))) event.stopPropagation();
    if (event.type === "click") isOld = false;
  };
  // A link opens its page once it carries the new text.
  const hold = (event) => {
    const link = isChanged && event.target.closest(".stApp a");
    isChanged = false;
    if (!link) return;
    event.preventDefault();
    event.stopPropagation();
    const open = () => {
      watcher.disconnect();
      clearTimeout(patience);
      link.click();
    };
    const watcher = new MutationObserver(open);
    watcher.observe(link, { attributeFilter: ["href"] });
    const patience = setTimeout(open, PATIENCE_MS);
  };
  const close = (event) => {
    if (event.target.closest(".stSidebar a")) closeDrawer();
  };
  document.addEventListener("focusin", enter);
  document.addEventListener("pointerdown", leave, true);
  PRESSES.forEach((press) => document.addEventListener(press, drop, true));
  document.addEventListener("click", hold, true);
  document.addEventListener("click", close);
  return () => {
    document.removeEventListener("focusin", enter);
    document.removeEventListener("pointerdown", leave, true);
    PRESSES.forEach((press) => document.removeEventListener(press, drop, true));
    document.removeEventListener("click", hold, true);
    document.removeEventListener("click", close);
  };
}
