"""What each head links, over a sample of texts: which tokens with which, and which parts of speech.

A head that puts most of its weight on full stops links every token with them; the frequencies of both sides already
predict such pairs, so pairs are ordered by their excess over that.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from attnviz.corpus.labels import Labels
from attnviz.corpus.profile import Pair
from attnviz.model.trace import Trace
from attnviz.records import KINDS, Kind

N_PAIR = 20
"""Pairs of a head that are kept."""


class Pairs:
    """Pairs of all heads, added up text by text."""

    def __init__(self) -> None:
        self._ids: dict[Kind, list[Int[np.ndarray, "query head pair"]]] = {}
        self._weights: dict[Kind, list[Float[np.ndarray, "query head"]]] = {}
        self._parts: list[str] = []
        self._of_parts: Float[np.ndarray, "head part key_part"] | None = None
        self._names: dict[int, str] = {}

    def add(self, trace: Trace, labels: Labels | None = None) -> None:
        """Adds a text: the strongest key of each query that is no added special token, and all weights between labelled words."""
        words = None if labels is None else labels.word_of(trace.tokens)
        of_parts = []
        for kind in KINDS:
            if kind not in trace.layers:
                continue
            queries, keys = trace.query_tokens(kind), trace.key_tokens(kind)
            own = np.flatnonzero(~queries.is_added)
            ids, weights = [], []
            self._names |= dict(zip(keys.ids.tolist(), keys.labels, strict=True))
            self._names |= dict(zip(queries.ids.tolist(), queries.labels, strict=True))
            for layer in range(trace.n_layers(kind)):
                cells = trace.layer_weights(layer, kind)[:, own]  # [head, query, key]
                strongest = cells.argmax(axis=-1)
                both = np.stack(
                    [np.broadcast_to(queries.ids[own], strongest.shape), keys.ids[strongest]], axis=-1
                )
                ids.append(both.transpose(1, 0, 2))
                weights.append(cells.max(axis=-1).T)
                if labels is not None and words is not None and kind != "cross" and queries is trace.tokens:
                    of_parts.append(self._between_parts(trace.layer_weights(layer, kind), words, labels))
            self._ids.setdefault(kind, []).append(np.concatenate(ids, axis=1))
            self._weights.setdefault(kind, []).append(np.concatenate(weights, axis=1))
        if of_parts:
            part_cells = np.concatenate(of_parts)
            if self._of_parts is None:
                self._of_parts = part_cells
            else:
                grown = np.zeros((len(part_cells), len(self._parts), len(self._parts)), dtype=np.float64)
                grown[:, : self._of_parts.shape[1], : self._of_parts.shape[2]] = self._of_parts
                self._of_parts = grown + part_cells

    def _between_parts(
        self, weights: Float[np.ndarray, "head query key"], words: Int[np.ndarray, " token"], labels: Labels
    ) -> Float[np.ndarray, "head part key_part"]:
        for name in labels.parts:
            if name not in self._parts:
                self._parts.append(name)
        of_token = np.zeros((len(words), len(self._parts)))
        at = np.flatnonzero(words >= 0)
        of_token[at, [self._parts.index(labels.parts[words[word]]) for word in at]] = 1
        between: np.ndarray = of_token.T @ weights.astype(np.float64) @ of_token
        return between

    def of_tokens(self) -> Iterator[list[Pair]]:
        """The pairs of each head that exceed what is expected by most, largest excess first."""
        for kind in self._ids:
            ids, weights = np.concatenate(self._ids[kind]), np.concatenate(self._weights[kind])
            for head in range(ids.shape[1]):
                yield self._of_head(ids[:, head], weights[:, head].astype(np.float64))

    def _of_head(
        self, ids: Int[np.ndarray, "query pair"], weights: Float[np.ndarray, " query"]
    ) -> list[Pair]:
        pairs, inverse, n = np.unique(ids, axis=0, return_inverse=True, return_counts=True)
        mass = np.bincount(inverse.ravel(), weights=weights, minlength=len(pairs))
        sides = []
        for side in (0, 1):
            _, which = np.unique(pairs[:, side], return_inverse=True)
            sides.append(np.bincount(which.ravel(), weights=mass)[which.ravel()])
        total = mass.sum()
        expected = sides[0] * sides[1] / total if total > 0 else mass
        order = np.argsort(-(mass - expected), kind="stable")[:N_PAIR]
        return [
            Pair(
                query=self._names[int(pairs[row, 0])],
                key=self._names[int(pairs[row, 1])],
                mass=float(mass[row]),
                expected=float(expected[row]),
                n=int(n[row]),
            )
            for row in order
            if mass[row] > expected[row]
        ]

    def of_parts(self) -> Iterator[list[Pair]]:
        """As `of_tokens`, of parts of speech; nothing where no text has labels."""
        for cells in () if self._of_parts is None else self._of_parts:
            total = cells.sum()
            expected = np.outer(cells.sum(axis=1), cells.sum(axis=0)) / total if total > 0 else cells
            order = np.argsort(-(cells - expected), axis=None, kind="stable")[:N_PAIR]
            yield [
                Pair(
                    query=self._parts[cell // len(cells)],
                    key=self._parts[cell % len(cells)],
                    mass=float(cells.flat[cell]),
                    expected=float(expected.flat[cell]),
                    n=0,
                )
                for cell in order.tolist()
                if cells.flat[cell] > expected.flat[cell]
            ]
