// The strongest links of a long text's head between tokens that are far apart; a click selects one and brings its cell into sight.

import { make, makeButton } from "./html.js";
import { keyed, renew } from "./renew.js";
import { cellText, labelAt } from "./matrix.js";

const MOST_LINKS = 10;

export class FarLinks {
  constructor({ go }) {
    this.go = go;
    this.list = make("ol", "");
    this.told = make("p", "told");
    this.root = make("section", "far", this.told, this.list);
    this.root.setAttribute("aria-label", "Strongest links");
  }

  draw({ pattern, shown, stage }) {
    this.root.classList.toggle("waits", !pattern);
    if (!pattern) return;
    const links = pattern.tiled.far.slice(0, MOST_LINKS);
    const span = stage.kind === "cross" ? "" : ` over ${stage.tiling.far} tokens or more`;
    this.told.textContent = links.length ? `Strongest links${span}, query → key; one for each query, without resting places.` : `No query of this head gives weight to a token that is ${stage.tiling.far} or more away.`;
    renew(this.list, links.map(([query, key, number]) => this.row(pattern, { query, key }, number, shown)));
  }

  row({ queries, keys, measure }, { query, key }, number, shown) {
    const button = makeButton("", "", () => this.go({ query, key }));
    button.setAttribute("aria-pressed", String(query === shown.query && key === shown.key));
    button.append(make("bdi", "what", `${labelAt(queries.labels[query], query, 12)} → ${labelAt(keys.labels[key], key, 12)}`), " ", make("span", "amount", cellText(number, measure)));
    return keyed(make("li", "", button), `${query} ${key}`);
  }

  end() {}
}
