// The drawer of the stage: what the cells hold, their colours, and which rows and columns are shown. It opens over the heads, beside what
// it changes.

import { make, makeButton } from "./html.js";
import { CHOICES } from "./choices.js";

const WITHOUT_WORDS = "Words are not offered: neither spaces nor the tokenizer tell which tokens of this text make one.";
const NUMBERS = [["layer", "Layer"], ["head", "Head"]];

export class Options {
  constructor({ pick }) {
    this.pick = pick;
    this.button = makeButton("options-button", "Options", () => this.open(this.root.hidden));
    this.button.setAttribute("aria-expanded", "false");
    this.root = make("section", "options");
    this.root.setAttribute("aria-label", "Options");
    this.root.hidden = true;
    this.fields = new Map();
    const close = makeButton("options-close", "Close", () => this.open(false));
    const numbers = make("div", "options-numbers", ...NUMBERS.map(([name, title]) => this.number(name, title)), this.key());
    const ofCells = Object.entries(CHOICES).filter(([name]) => name !== "fill" && name !== "key");
    const choices = ofCells.map(([name, choice]) => (choice.names ? this.choice(name, choice) : this.toggle(name, choice)));
    this.root.append(make("div", "options-head", make("b", "", "Options"), close), numbers, ...choices);
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.open(false);
    });
  }

  open(isOpen) {
    this.root.hidden = !isOpen;
    this.button.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.root.querySelector("input, select").focus();
    else this.button.focus();
  }

  field(name, title, input, help = "") {
    const label = make("label", "", make("span", "", title), input);
    label.title = help;
    input.name = name;
    this.fields.set(name, input);
    return label;
  }

  number(name, title) {
    const input = make("input", "");
    Object.assign(input, { type: "number", min: 0, step: 1 });
    input.onchange = () => {
      const number = Math.min(Math.max(0, Math.round(Number(input.value)) || 0), Number(input.max));
      input.value = number; // a field with the focus is not drawn anew
      this.pick(name === "layer" ? { layer: number, head: Math.min(this.scene.selection.head, this.scene.stage.counts[number] - 1) } : { [name]: number });
    };
    return this.field(name, title, input);
  }

  key() {
    const select = make("select", "");
    select.onchange = () => this.pick({ key: Number(select.value) });
    return this.field("key", CHOICES.key.title, select, CHOICES.key.help);
  }

  choice(name, { title, help, names }) {
    const select = make("select", "");
    for (const [value, text] of Object.entries(names)) select.append(Object.assign(make("option", "", text), { value }));
    select.onchange = () => this.pick({ [name]: select.value });
    return this.field(name, title, select, help);
  }

  toggle(name, { title, help }) {
    const input = make("input", "");
    input.type = "checkbox";
    input.onchange = () => this.pick({ [name]: input.checked });
    return this.field(name, title, input, help);
  }

  /** Which choices there are for this text. */
  offers(name, value) {
    const { stage } = this.scene;
    if (name === "measure") return stage.measures.includes(value);
    if (name === "unit") return value === "tokens" || Boolean(stage.queries.words ?? stage.keys?.words);
    return true;
  }

  draw(scene) {
    this.scene = scene;
    const { stage, selection } = scene;
    for (const [name, input] of this.fields) {
      if (name === "key") this.drawKeys(input);
      else if (input.type === "checkbox") input.checked = selection[name];
      else if (input !== input.getRootNode().activeElement) input.value = selection[name];
      if (name === "layer") input.max = stage.counts.length - 1;
      if (name === "head") input.max = stage.counts[selection.layer] - 1;
      for (const option of name === "key" ? [] : (input.options ?? [])) option.hidden = option.disabled = !this.offers(name, option.value);
    }
    this.fields.get("unit").closest("label").title = this.offers("unit", "words") ? CHOICES.unit.help : WITHOUT_WORDS;
    const isScores = selection.measure === "scores";
    this.fields.get("colour").disabled = isScores;
    this.fields.get("clip").disabled = isScores || selection.colour === "logarithmic";
    const isTiled = Boolean(stage.tiling);
    const hide = (name, isHidden) => (this.fields.get(name).closest("label").hidden = isHidden);
    for (const name of ["key", "unit", "special", "withoutFirst"]) hide(name, isTiled); // cells of a long text are tokens, all of them
    hide("pool", !isTiled);
    hide("sentences", isTiled || !stage.queries.segment.includes(1));
  }

  drawKeys(select) {
    const { stage, selection } = this.scene;
    if (stage.tiling) return;
    if (select.of !== stage) {
      select.of = stage;
      const labels = (stage.keys ?? stage.queries).labels;
      select.replaceChildren(...labels.map((label, position) => Object.assign(make("option", "", `${label}·${position}`), { value: position })));
    }
    select.value = selection.key ?? "";
  }
}
