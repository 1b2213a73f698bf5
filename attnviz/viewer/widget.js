// The viewer in a notebook: what is selected is the widget's trait `selection`, both ways; numbers that are not here are asked of Python.

const ANSWER_MS = 30_000; // after which the kernel is taken to be gone

/** Bytes of a trait or a message: a buffer, or base64 where the notebook passes none on. */
function bytesFrom(buffer, base64) {
  if (base64) return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const { buffer: whole, byteOffset, byteLength } = ArrayBuffer.isView(buffer) ? buffer : new Uint8Array(buffer);
  return new Uint8Array(whole, byteOffset, byteLength).slice();
}

/** The theme of the notebook around: JupyterLab's, VS Code's, Colab's and marimo's own, or the system's. */
function themeAround() {
  const { body, documentElement: page } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "true" ? "light" : "dark";
  const said = `${body.className} ${body.dataset.theme ?? ""} ${page.className} ${page.getAttribute("theme") ?? ""}`;
  if (/vscode-light|\blight\b/.test(said)) return "light";
  if (/vscode-dark|vscode-high-contrast|\bdark\b/.test(said)) return "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Questions to Python, each with a name of its own, since answers go to every view of the widget. */
class Questions {
  constructor(model) {
    this.model = model;
    this.waiting = new Map();
    this.hear = (answer, buffers) => this.answer(answer, buffers);
    model.on("msg:custom", this.hear);
  }

  ask(what, query) {
    const id = Math.random().toString(36);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.answer({ id, error: "The kernel does not answer. Start it and run the cell again." }), ANSWER_MS);
      this.waiting.set(id, { resolve, reject, late });
      this.model.send({ id, what, query });
    });
  }

  answer({ id, error, base64, ...said }, buffers = []) {
    const asked = this.waiting.get(id);
    if (!asked) return;
    this.waiting.delete(id);
    clearTimeout(asked.late);
    if (error) asked.reject(new Error(error));
    else asked.resolve({ ...said, bytes: base64 || buffers.length ? bytesFrom(buffers[0], base64) : null });
  }

  end() {
    this.model.off("msg:custom", this.hear);
    for (const { late } of this.waiting.values()) clearTimeout(late);
  }
}

function render({ model, el }) {
  const root = make("div", "");
  const around = make("div", "attnviz-notebook", root);
  // JupyterLab takes keys of whatever has the focus, unless that very element says no: d pressed twice would delete the cell.
  around.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "true"));
  // What the viewer has used, a wheel to zoom or a key to walk, is not the notebook's.
  for (const name of ["wheel", "keydown"]) around.addEventListener(name, (event) => event.defaultPrevented && event.stopPropagation());
  el.append(around);
  const theme = () => (model.get("theme") === "auto" ? themeAround() : model.get("theme"));
  const questions = new Questions(model);
  const settle = (selection) => {
    model.set("selection", selection);
    model.save_changes();
  };
  const viewer = new Viewer(root, { theme: theme(), settle, ask: (what, query) => questions.ask(what, query) });
  const load = () => viewer.load(model.get("document"), bytesFrom(model.get("cells"), model.get("cells_base64")), model.get("selection"));
  const put = () => JSON.stringify(model.get("selection")) !== JSON.stringify(viewer.selection) && viewer.put(model.get("selection"));
  const dress = () => viewer.dress(theme());
  load();
  const heard = { "change:document": load, "change:selection": put, "change:theme": dress };
  for (const [name, does] of Object.entries(heard)) model.on(name, does);
  const themes = new MutationObserver(dress);
  for (const node of [document.body, document.documentElement]) themes.observe(node, { attributes: true, attributeFilter: ["class", "theme", "data-theme", "data-jp-theme-light"] });
  return () => {
    themes.disconnect();
    for (const [name, does] of Object.entries(heard)) model.off(name, does);
    questions.end();
    viewer.end();
  };
}

export default { render };
