// The keys of the shown query, largest first, as rows with bars. A click on a row selects its key. The rows are one stop of the Tab key.
// Where the largest weight is a special token's, a line says what such a token is.

import { make, makeButton } from "./html.js";
import { keyed, renew } from "./renew.js";
import { setStop, walkAmong } from "./rove.js";
import { entryOf } from "./cells.js";
import { nameOf, rankedKeys } from "./words.js";
import { cellText, labelAt } from "./matrix.js";

const MOST_BARS = 8;
const COUNTED = { weights: "weight", norms: "norm-based weight", rollout: "rollout", alti: "ALTI", value_zeroing: "value zeroing" };

export class Ranking {
  constructor({ pick }) {
    this.pick = pick;
    this.list = make("ol", "");
    this.list.onkeydown = (event) => walkAmong(this.buttons, event);
    this.told = make("p", "told");
    this.meaning = make("p", "meaning");
    this.root = make("section", "ranking", this.told, this.list, this.meaning);
    this.root.setAttribute("aria-label", "Keys of the query, largest first");
  }

  draw({ stage, told: of, shown }) {
    this.root.classList.toggle("waits", !of);
    if (!of && this.text !== stage.text) this.clear(); // of another text nothing stays
    this.text = stage.text;
    if (!of) return;
    const keys = rankedKeys(of, shown.query);
    const entry = entryOf(of.queries, shown.query);
    if (entry < 0) {
      this.clear();
      this.told.textContent = "The query is not shown.";
      return;
    }
    const largest = Math.max(keys[0]?.weight ?? 0, 1e-9);
    const rows = keys.slice(0, MOST_BARS).map((key) => this.row(key, of.measure, largest, entryOf(of.keys, shown.key)));
    const weaker = keys.length - MOST_BARS;
    this.told.replaceChildren("Keys of ", make("bdi", "query", nameOf(of.queries, shown.query)), `, largest ${COUNTED[of.measure]} first`, weaker > 0 ? `; ${weaker.toLocaleString("en")} weaker ${weaker === 1 ? "one is" : "ones are"} not listed.` : ".");
    renew(this.list, rows);
    const { activeElement } = this.root.getRootNode();
    setStop(this.buttons, this.buttons.includes(activeElement) ? activeElement : this.list.querySelector("[aria-pressed=true]"));
    const [strongest] = keys;
    const isSpecial = (stage.keys ?? stage.queries).special.includes(strongest?.position);
    const means = isSpecial && stage.specialMeans;
    this.meaning.replaceChildren(...(means ? [make("bdi", "", nameOf(of.keys, strongest.position)), `: ${means}`] : []));
  }

  get buttons() {
    return [...this.list.querySelectorAll("button")];
  }

  clear() {
    this.told.textContent = this.meaning.textContent = "";
    this.list.replaceChildren();
  }

  row({ column, position, label, weight }, measure, largest, picked) {
    const button = makeButton("", "", () => this.pick({ key: position }));
    button.setAttribute("aria-pressed", String(column === picked));
    button.dataset.position = position;
    const bar = make("span", "length");
    bar.style.setProperty("--share", Math.max(0, weight / largest).toFixed(4));
    button.append(make("bdi", "what", labelAt(label, position, 24)), " ", make("span", "amount", cellText(weight, measure)), bar);
    return keyed(make("li", "", button), position);
  }

  end() {}
}
