// What a press does beside its click: a text that is being typed is left, and the drawer with the menu closes behind it.

const FIELD = '[class*="st-key-field_"] :is(textarea, input[type="text"]):not([role="combobox"])';
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
  const enter = ({ target }) => {
    if (target.matches?.(FIELD)) before = target.value;
  };
  const leave = ({ target }) => {
    const field = document.activeElement;
    if (!field?.matches(FIELD) || field.contains(target)) return;
    isChanged = field.value !== before;
    field.blur();
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
  document.addEventListener("click", hold, true);
  document.addEventListener("click", close);
  return () => {
    document.removeEventListener("focusin", enter);
    document.removeEventListener("pointerdown", leave, true);
    document.removeEventListener("click", hold, true);
    document.removeEventListener("click", close);
  };
}
