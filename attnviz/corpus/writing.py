"""A profile written into a folder: heads.parquet, a row for each head, and examples.parquet, a row for each example.

docs/corpus.md has their columns.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

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
from attnviz.corpus.pairs import Pairs
from attnviz.corpus.profile import (
    EXAMPLES,
    EXAMPLES_SCHEMA,
    HEADS,
    HEADS_SCHEMA,
    N_DECILE,
    probe_columns,
)
from attnviz.corpus.sums import FEWEST_TEXTS, LEVEL
from attnviz.corpus.tally import Tally
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.heads.probes import HeadProbes, probe_heads
from attnviz.model.batch import MOST_TEXTS
from attnviz.records import Head, Kind, Progress

if TYPE_CHECKING:
    from attnviz.model.model import Model

PER_DECILE = 3


@dataclass(frozen=True, slots=True)
class _Example:
    hash: int
    kind: Kind
    head: Head
    row: dict[str, Any]


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
    model: "Model",
    tally: Tally,
    heads: list[tuple[Kind, Head]],
    pairs: Pairs,
    probes: dict[Kind, HeadProbes],
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
