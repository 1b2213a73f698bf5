// A text file that is dropped on a sentence's field takes the place of what is in it; a browser would leave the page for the file.

const MOST_BYTES = 5_000_000;

/** The text of a file; null where it is too large or no text in UTF-8. */
async function textIn(file) {
  if (file.size > MOST_BYTES || !(file.type.startsWith("text/") || /\.(txt|md)$/i.test(file.name))) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()).replaceAll("\r\n", "\n");
  } catch {
    return null;
  }
}

function takeFiles({ hear }) {
  const fieldOf = (event) => event.target.closest?.(SENTENCE)?.querySelector("textarea");
  const dragover = (event) => {
    if (!fieldOf(event) || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
  };
  const drop = async (event) => {
    const field = fieldOf(event);
    const [file] = event.dataTransfer?.files ?? [];
    if (!field || !file) return;
    event.preventDefault();
    const text = await textIn(file);
    field.focus();
    if (text === null) {
      field.setCustomValidity(`${file.name} cannot be read here. Drop a text file in UTF-8 of up to ${MOST_BYTES / 1e6} MB.`);
      field.reportValidity();
      field.addEventListener("input", () => field.setCustomValidity(""), { once: true });
      return;
    }
    // React takes a value over only from the element's own setter.
    Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(field, text);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await null; // React takes it over before the next task
    submit(field); // a window that a file is dragged to from another one has no focus, and so nothing to blur
    field.blur();
  };
  hear({ dragover, drop });
}
