// Enter in a sentence's field submits it, like Streamlit's own Ctrl+Enter; Shift+Enter begins a new line.

function show({ data }) {
  const selector = data.fields.map((key) => `.st-key-${key} textarea`).join();
  const press = (event) => {
    const field = event.target.closest?.(selector);
    if (!field || event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    const meant = { key: "Enter", code: "Enter", keyCode: 13, ctrlKey: true, bubbles: true, cancelable: true };
    field.dispatchEvent(new KeyboardEvent("keydown", meant));
  };
  document.addEventListener("keydown", press, { capture: true });
  return () => document.removeEventListener("keydown", press, { capture: true });
}
