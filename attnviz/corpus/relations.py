"""Which words each head links, for a batch of labelled texts.

For a word with a parent, the word that it depends on, a head gives the word that it attends to most and the word that
attends to it most, itself left out; it finds the relation where that is the parent.

Source: Clark et al. 2019 (arXiv:1906.04341), section 4.2: both directions, the token itself and special tokens left out; weights
of words as in `attnviz.records.arrange`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnviz.corpus.labels import Labels
from attnviz.records import Tokens

DIRECTIONS = ("attends to", "attended by")
"""The parent is what a word attends to most, or what attends to that word most."""


class Words:
    """The words of a batch, and what each depends on.

    Args:
        labels: None for a text without labels.
        n_token: tokens of the longest text.
    """

    def __init__(
        self, texts: Sequence[Tokens], labels: Sequence[Labels | None], n_token: int, device: torch.device
    ) -> None:
        self.n_word = max((len(label.heads) for label in labels if label is not None), default=0)
        """Number of words of the longest text."""
        belongs = np.zeros((len(texts), self.n_word, n_token), dtype=np.float32)
        heads = np.zeros((len(texts), self.n_word), dtype=np.int64)
        self.relations: list[dict[str, Int[np.ndarray, " word"]]] = []
        """Of each text, by relation, the words that depend on another; both words have tokens."""
        for number, (tokens, labels_of_text) in enumerate(zip(texts, labels, strict=True)):
            self.relations.append({})
            if labels_of_text is None:
                continue
            words = labels_of_text.word_of(tokens)
            at = np.flatnonzero(words >= 0)
            belongs[number, words[at], at] = 1
            heads[number, : len(labels_of_text.heads)] = labels_of_text.heads
            has_tokens = np.isin(np.arange(len(labels_of_text.heads)), words)
            related = (labels_of_text.heads >= 0) & has_tokens & has_tokens[labels_of_text.heads]
            for name in set(labels_of_text.relations):
                of_name = np.flatnonzero(related & (np.array(labels_of_text.relations) == name))
                if len(of_name):
                    self.relations[-1][name] = of_name
        self._keys = torch.tensor(belongs, device=device)  # [text, word, token], whose weights are summed
        lengths = self._keys.sum(dim=-1, keepdim=True)
        self._queries = self._keys / lengths.clamp(min=1)  # whose rows are averaged
        self._no_word = lengths[..., 0] == 0  # [text, word]
        self._heads = torch.tensor(heads, device=device)

    def hits(self, weights: Float[Tensor, "text head query key"]) -> Bool[Tensor, "text head word direction"]:
        """Whether a head links each word most with the word that it depends on, in both `DIRECTIONS`."""
        of_words = self._queries[:, None] @ weights @ self._keys[:, None].mT  # [text, head, word, word]
        none = self._no_word[:, :, None] | self._no_word[:, None, :]
        none = none | torch.eye(none.shape[-1], dtype=torch.bool, device=none.device)
        of_words = of_words.masked_fill(none[:, None], 0.0)
        wanted = self._heads[:, None].clamp(min=0)  # [text, 1, word]
        pairs = []
        for cells in (of_words, of_words.mT):
            most, which = cells.max(dim=-1)  # [text, head, word]
            pairs.append((which == wanted) & (most > 0))
        return torch.stack(pairs, dim=-1)
