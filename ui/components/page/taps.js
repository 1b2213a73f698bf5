// What ends the typing of a text: a press anywhere, and in a sentence's field Enter.

const FIELD = '[class*="st-key-field_"] :is(textarea, input[type="text"]):not([role="combobox"])';
const SENTENCE = ":is(.st-key-field_text, .st-key-field_second)";
const WAITS = "[data-testid=InputInstructions] > *"; // Streamlit's hint, there while a text is not sent yet
const PICTURES = ".js-plotly-plot, .token_strip, .ranked_list, .head_grid, .map_grid, .token_flow, .viewer :is(.band, .pictures, .heads, .ranking)";
const PRESSES = ["pointerdown", "mousedown", "touchstart", "pointerup", "mouseup", "touchend", "click"];
const LINK_MS = 3000; // for a text that cannot be read, after which links stay as they are

function closeDrawer() {
  if (!matchMedia("(max-width: 768px)").matches) return;
  document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
}

/**
 * What a press does besides its click: it ends the typing of a text, and closes the drawer with the menu. If the text is the
 * sentence, a press on a picture does only that, since its selection would belong to the previous sentence.
 */
function endTyping({ data, line, hear }) {
  const own = line.dataset;
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
    const patience = setTimeout(open, LINK_MS);
  };
  const close = (event) => {
    if (event.target.closest(".stSidebar a")) closeDrawer();
  };
  hear({ focusin: enter, click: close });
  hear({ pointerdown: leave }, { capture: true });
  hear(Object.fromEntries(PRESSES.map((press) => [press, drop])), { capture: true });
  hear({ click: hold }, { capture: true });
}

/** Sends what a field holds, like Streamlit's own Ctrl+Enter. */
function submit(field) {
  const pressed = { key: "Enter", code: "Enter", keyCode: 13, ctrlKey: true, bubbles: true, cancelable: true };
  field.dispatchEvent(new KeyboardEvent("keydown", pressed));
}

/** Enter in a sentence's field submits it; Shift+Enter begins a new line. */
function enterRuns({ hear }) {
  const keydown = (event) => {
    const field = event.target.closest?.(`${SENTENCE} textarea`);
    if (!field || event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    submit(field);
  };
  hear({ keydown }, { capture: true });
}
