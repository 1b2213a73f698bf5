"""A profile written into a folder: heads.parquet, a row for each head, and examples.parquet, a row for each example.

docs/corpus.md has their columns.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Int

from attnviz.corpus.columns import (
    ACTIVATION,
    DIRECTIONS,
    DISTANCES,
    EDGES,
    MEANS,
    PLACES,
    POSITIONS,
    UNBOUNDED,
)
from attnviz.corpus.files import write
from attnviz.corpus.labels import Labels
from attnviz.corpus.profile import (
    EXAMPLES,
    EXAMPLES_SCHEMA,
    HEADS,
    HEADS_SCHEMA,
    N_DECILE,
    Pair,
    probe_columns,
)
from attnviz.corpus.sums import FEWEST_TEXTS, LEVEL
from attnviz.corpus.tally import Tally
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.heads.probes import HeadProbes, probe_heads
from attnviz.model.batch import MOST_TEXTS
from attnviz.model.trace import Trace
from attnviz.records import KINDS, Head, Kind, Progress

if TYPE_CHECKING:
    from attnviz.model.model import Model

PER_DECILE = 3
N_PAIR = 20
"""Pairs of a head that are kept."""


@dataclass(frozen=True, slots=True)
class _Example:
    hash: int
    kind: Kind
    head: Head
    row: dict[str, Any]


class Pairs:
    """What each head links, added up text by text: which tokens with which, and which parts of speech.

    A head that puts most of its weight on full stops links every token with them; the frequencies of both sides already
    predict such pairs, so pairs are ordered by their excess over that.
    """

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
        return _beyond(
            mass, sides[0] * sides[1], lambda at: [self._names[id_] for id_ in pairs[at].tolist()], n
        )

    def of_parts(self) -> Iterator[list[Pair]]:
        """As `of_tokens`, of parts of speech; nothing where no text has labels."""
        for cells in () if self._of_parts is None else self._of_parts:
            products = np.outer(cells.sum(axis=1), cells.sum(axis=0))
            n = np.zeros(cells.size, dtype=int)
            yield _beyond(
                cells.ravel(),
                products.ravel(),
                lambda at: [self._parts[part] for part in divmod(at, len(self._parts))],
                n,
            )


def _beyond(
    mass: Float[np.ndarray, " pair"],
    products: Float[np.ndarray, " pair"],
    names: Callable[[int], Sequence[str]],
    n: Int[np.ndarray, " pair"],
) -> list[Pair]:
    """The pairs that exceed what the frequencies of both sides predict by most, largest excess first.

    Args:
        products: of the mass of both sides of each pair.
        names: of a pair's query and key.
    """
    total = mass.sum()
    expected = products / total if total > 0 else mass
    order = np.argsort(-(mass - expected), kind="stable")[:N_PAIR].tolist()
    known = [(at, *names(at)) for at in order if mass[at] > expected[at]]
    return [
        Pair(query=query, key=key, mass=float(mass[at]), expected=float(expected[at]), n=int(n[at]))
        for at, query, key in known
    ]


def write_profile(model: "Model", tally: Tally, out: Path, *, progress: Progress = lambda _: None) -> None:
    """Writes both files.

    Args:
        progress: called with the share that is done, 0 to 1; it may raise to stop.

    Raises:
        CorpusError: no room on the disk.
        ModelFailedError, OutOfMemoryError: as `Model.trace`.
    """
    probe = model.probe()
    heads: list[tuple[Kind, Head]] = [(kind, head) for kind in probe.kinds for head in probe.heads(kind)]
    examples = _examples(tally, heads)
    pairs = _read_again(model, tally, examples, progress)
    probes = probe_heads(model)
    about = tally.described() | _about(tally, probes)
    rows = _head_rows(model, tally, heads, pairs, probes)
    for name, schema, table in (
        (EXAMPLES, EXAMPLES_SCHEMA, [example.row for example in examples]),
        (HEADS, HEADS_SCHEMA, rows),  # its presence marks a complete profile
    ):
        write(out / name, [pa.Table.from_pylist(table, schema=schema)], schema, about)


def _about(tally: Tally, probes: dict[Kind, HeadProbes]) -> dict[str, Any]:
    probed = next(iter(probes.values()), None)
    return {
        "n_sample": len(tally.sample),
        "interval": {"level": LEVEL, "fewest_texts": FEWEST_TEXTS},
        "distance_edges": EDGES,
        "probes": None if probed is None else {"n_token": probed.n_token, "n_text": probed.n_text},
    }


def _head_rows(
    model: "Model", tally: Tally, heads: list[tuple[Kind, Head]], pairs: Pairs, probes: dict[Kind, HeadProbes]
) -> list[dict[str, Any]]:
    means, places = tally.means.means(), tally.places.means()
    most = np.maximum(means, [math.inf if name in UNBOUNDED else 1.0 for name in MEANS])
    lows, highs = (np.clip(ends, 0.0, most) for ends in tally.means.mean_intervals())
    of_tokens, of_parts = list(pairs.of_tokens()), list(pairs.of_parts())
    copying = _copying(model)
    relations = _relations(tally)
    rows = []
    for number, (kind, head) in enumerate(heads):
        row: dict[str, Any] = {"kind": kind, "layer": head.layer, "head": head.head, "texts": tally.n_text}
        for at, name in enumerate(MEANS):
            row |= {
                name: _known(means[number, at]),
                f"{name}_low": _known(lows[number, at]),
                f"{name}_high": _known(highs[number, at]),
            }
        if kind in probes:
            row |= {name: _known(probe) for name, probe in probe_columns(probes[kind], head).items()}
        row["copying"] = None if copying is None or kind != heads[0][0] else _known(float(copying[head]))
        for column, names in (("distances", DISTANCES), ("positions", POSITIONS)):
            row[column] = [_known(places[number, PLACES.index(name)]) for name in names]
        row["relations"] = relations[number]
        row["token_pairs"] = [asdict(pair) for pair in of_tokens[number]] if of_tokens else []
        row["part_pairs"] = [asdict(pair) for pair in of_parts[number]] if number < len(of_parts) else []
        rows.append(row)
    return rows


def _known(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _copying(model: "Model") -> np.ndarray | None:
    from attnviz.effects.copying import copying_scores

    try:
        return copying_scores(model)
    except (SelectionError, UnsupportedArchitectureError):
        return None


def _read_again(model: "Model", tally: Tally, examples: list[_Example], progress: Progress) -> Pairs:
    """Adds the rows of weights to the examples; returns the pairs of the sample."""
    pairs, sample = Pairs(), set(tally.sample.tolist())
    of_text: dict[int, list[_Example]] = {}
    for example in examples:
        of_text.setdefault(example.hash, []).append(example)
    hashes = sorted(sample | of_text.keys())
    for start in range(0, len(hashes), MOST_TEXTS):
        progress(start / len(hashes))
        some = hashes[start : start + MOST_TEXTS]
        traces = model.trace_texts([model.read(tally.texts[hash_], cut=True) for hash_ in some])
        for hash_, trace in zip(some, traces, strict=True):
            if hash_ in sample:
                labels = tally.labels.get(hash_)
                pairs.add(trace, None if labels is None else Labels.read(labels))
            by_layer: dict[tuple[Kind, int], np.ndarray] = {}
            for example in of_text.get(hash_, ()):
                place = example.kind, example.head.layer
                if place not in by_layer:
                    by_layer[place] = trace.layer_weights(example.head.layer, example.kind)
                example.row.update(
                    {
                        "query_label": trace.query_tokens(example.kind).labels[example.row["query"]],
                        "labels": list(trace.key_tokens(example.kind).labels),
                        "weights": by_layer[place][example.head.head, example.row["query"]],
                    }
                )
    return pairs


def _relations(tally: Tally) -> list[list[dict[str, Any]]]:
    """For each head, how much of each relation it finds, the most frequent relations first."""
    rows: list[list[dict[str, Any]]] = [[] for _ in range(tally.n_head)]
    n_words = {name: float(sums.counts.sum()) for name, sums in tally.relations.items()}
    for name in sorted(n_words, key=lambda name: (-n_words[name], name)):
        shares, (lows, highs) = tally.relations[name].means(), tally.relations[name].share_intervals()
        offset, n_at = max(
            tally.offsets[name].items(), key=lambda pair: (pair[1], -abs(pair[0])), default=(0, 0)
        )
        for head, of_head in enumerate(rows):
            for way, direction in enumerate(DIRECTIONS):
                of_head.append(
                    {
                        "relation": name,
                        "direction": direction,
                        "accuracy": float(shares[head, way]),
                        "low": float(lows[head, way]),
                        "high": float(highs[head, way]),
                        "words": int(n_words[name]),
                        "offset": offset,
                        "offset_accuracy": n_at / n_words[name],
                    }
                )
    return rows


def _examples(tally: Tally, heads: list[tuple[Kind, Head]]) -> list[_Example]:
    """The strongest examples of each head, and some of each decile of its activations in the sample."""
    examples = []
    for number, (kind, head) in enumerate(heads):

        def add(
            hash_: int, shown: np.ndarray, decile: int | None, rank: int, kind: Kind = kind, head: Head = head
        ) -> None:
            activation, query = float(shown[0]), int(shown[1])
            row: dict[str, Any] = {
                "kind": kind,
                "layer": head.layer,
                "head": head.head,
                "decile": decile,
                "rank": rank,
            }
            row |= {ACTIVATION: activation, "text": tally.texts[hash_], "query": query}
            examples.append(_Example(hash_, kind, head, row))

        strongest = zip(tally.strongest[number].tolist(), tally.strongest_shown[number], strict=True)
        for rank, (place, shown) in enumerate(strongest, 1):
            if np.isfinite(shown[0]):
                add(place, shown, None, rank)
        activations = tally.sample_shown[:, number, 0]
        there = np.flatnonzero(np.isfinite(activations))
        order = there[np.argsort(activations[there], kind="stable")]
        for decile, part in enumerate(np.array_split(order, N_DECILE), 1):
            spread = np.linspace(0, len(part) - 1, min(PER_DECILE, len(part))).round().astype(int)
            for rank, at in enumerate(part[spread].tolist(), 1):
                add(int(tally.sample[at]), tally.sample_shown[at, number], decile, rank)
    return examples
