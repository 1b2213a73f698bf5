// What can be chosen of a matrix: the name of each choice, what it does, and its options. `attnviz.viewer.CHOICES` reads this, so it is JSON.

export const CHOICES = {
  "fill": {
    "title": "Show",
    "help": "Shows matrix and map side by side, or one part as large as the window allows.",
    "names": { "all": "Together", "token_flow": "Arcs", "matrix": "Matrix", "map": "Map" }
  },
  "key": { "title": "Key", "help": "Selects the token that the query attends to; select the query by its token above." },
  "measure": {
    "title": "Cells",
    "help": "Weights after the softmax; scores before it; norm-based: ‖w·v·W_O‖, the length of the vector that a weight lets through; rollout: an estimate over all layers, heads averaged; ALTI and value zeroing: how much of each token the layer mixes into each, all heads together.",
    "names": { "weights": "Weights", "scores": "Scores", "norms": "Norm-based", "rollout": "Rollout", "alti": "ALTI", "value_zeroing": "Value zeroing" }
  },
  "colour": {
    "title": "Colours",
    "help": "Logarithmic colours tell small weights apart; the numbers, and scores, stay the same.",
    "names": { "linear": "Linear", "logarithmic": "Logarithmic" }
  },
  "unit": {
    "title": "Unit",
    "help": "Merges word pieces: their columns are summed and their rows averaged.",
    "names": { "tokens": "Token", "words": "Word" }
  },
  "special": {
    "title": "Special tokens",
    "help": "Hides the rows and columns of special tokens such as [CLS] and [SEP]; renormalised rows sum to 1 again.",
    "names": { "shown": "Shown", "hidden": "Hidden", "renormalised": "Renormalised" }
  },
  "sentences": {
    "title": "Sentences",
    "help": "Keeps only the queries of one sentence of the pair and the keys of one: query → key.",
    "names": { "all": "All", "A → A": "First → first", "A → B": "First → second", "B → A": "Second → first", "B → B": "Second → second" }
  },
  "pool": {
    "title": "Blocks",
    "help": "What is drawn where one pixel stands for several cells: their largest number, or their mean over what a query may see.",
    "names": { "max": "Largest", "mean": "Mean" }
  },
  "clip": {
    "title": "Clip colours at special tokens",
    "help": "Ends the colours at the largest cell of the other tokens where special tokens hold more; the numbers stay the same."
  },
  "withoutFirst": {
    "title": "Hide the first token",
    "help": "Hides the row and column of the first token, where heads rest in models without [CLS]."
  }
};
