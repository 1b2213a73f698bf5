// The keys of the shown query, largest first, as rows with bars. A click on a row selects its key.

import { make, makeButton } from "./html.js";
import { keyed, renew } from "./renew.js";
import { cellText, labelAt } from "./matrix.js";

const MOST_BARS = 8;
const COUNTED = { weights: "weight", scores: "weight", norms: "norm-based weight", rollout: "rollout" };

export class Ranking {
  constructor({ pick }) {
    this.pick = pick;
    this.list = make("ol", "");
    this.told = make("p", "told");
    this.root = make("section", "ranking", this.told, this.list);
    this.root.setAttribute("aria-label", "Keys of the query, largest first");
  }

  draw({ pattern, whole, shown }) {
    this.root.classList.toggle("waits", !pattern);
    if (!pattern) return;
    const of = pattern.measure === "scores" ? whole : pattern; // scores have no sum: their weights are ranked
    const row = of.queries.positions.indexOf(shown.query);
    if (row < 0) return renew(this.list, []);
    const count = of.keys.labels.length;
    const numbers = of.weights.subarray(row * count, (row + 1) * count);
    const order = [...numbers.keys()].filter((column) => !Number.isNaN(numbers[column]));
    order.sort((column, other) => numbers[other] - numbers[column] || column - other);
    const largest = Math.max(of.measure === "norms" ? numbers[order[0]] : 1, 1e-9);
    const rows = order.slice(0, MOST_BARS).map((column) => this.row(of, column, numbers[column], largest, shown));
    const weaker = order.length - MOST_BARS;
    this.told.replaceChildren("Keys of ", make("bdi", "query", `“${of.queries.labels[row]}”`), `, largest ${COUNTED[of.measure]} first`, weaker > 0 ? `; ${weaker} weaker ones are not listed.` : ".");
    return renew(this.list, rows);
  }

  row(of, column, number, largest, shown) {
    const position = of.keys.positions[column];
    const button = makeButton("", "", () => this.pick({ key: position }));
    button.setAttribute("aria-pressed", String(position === shown.key));
    button.dataset.position = position;
    const bar = make("span", "bar");
    bar.style.setProperty("--share", Math.max(0, number / largest).toFixed(4));
    button.append(make("bdi", "what", labelAt(of.keys.labels[column], position, 24)), " ", make("span", "amount", cellText(number, of.measure)), bar);
    return keyed(make("li", "", button), position);
  }

  end() {}
}
