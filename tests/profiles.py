"""Profiles of random numbers, with the rows that they are made of, and what these rows say in plain Python."""

from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from attnviz.corpus.columns import EDGES, MEANS
from attnviz.corpus.files import EXAMPLES_SCHEMA, HEADS_SCHEMA
from attnviz.corpus.naming import FEWEST_WORDS, NAMES
from attnviz.corpus.profile import Profile
from attnviz.corpus.relations import DIRECTIONS
from attnviz.heads import PROBES

KINDS = ("decoder", "cross")
PLACES = [(kind, layer, head) for kind in KINDS for layer in range(2) for head in range(3)]
SHARES = (None, 0.0, 0.125, 0.45, 0.55, 0.75)
IN_TOKENS = ("distance", "activation")
"""Numbers that are not shares."""
WEIGHTS = {"model.safetensors": "1" * 64}


@cache
def profile_of(seed: int) -> tuple[Profile, list[dict[str, Any]], list[dict[str, Any]]]:
    """A profile of random numbers, with the rows of both its files."""
    rng = np.random.default_rng(seed)

    def share() -> float | None:
        return SHARES[rng.integers(len(SHARES))]

    absent = {name for name in MEANS if rng.random() < 0.2}
    known = [
        {
            "relation": relation,
            "direction": direction,
            "words": int(rng.choice([FEWEST_WORDS - 1, FEWEST_WORDS, 1234])),
            "offset": int(rng.choice([-2, 1])),
            "offset_accuracy": float(rng.choice([0.25, 0.625])),
        }
        for relation in ("dobj", "odd")
        for direction in DIRECTIONS
    ]
    rows: list[dict[str, Any]] = []
    for kind, layer, head in PLACES:
        row: dict[str, Any] = {"kind": kind, "layer": layer, "head": head, "texts": 7, "copying": share()}
        for name in (*MEANS, *PROBES):
            mean = None if name in absent or (kind, name) == ("cross", "previous") else share()
            if name in IN_TOKENS and mean is not None:
                mean *= 16
            apart = None if mean is None or rng.random() < 0.2 else float(rng.choice([0.03125, 0.25]))
            row[name] = mean
            row[f"{name}_low"] = None if apart is None else mean - apart
            row[f"{name}_high"] = None if apart is None else mean + 2 * apart
        row["distances"] = rng.random(2 * len(EDGES) + 1).tolist() if rng.random() < 0.8 else None
        row["positions"] = rng.random(32).tolist()
        row["relations"] = [
            relation | {"accuracy": mean, "low": mean - 0.0625, "high": mean + 0.125}
            for relation in known
            for mean in [float(rng.choice([0.125, 0.5, 0.5625, 0.6875, 0.75]))]
        ]
        for name in ("token_pairs", "part_pairs"):
            row[name] = [
                {
                    "query": f"q{at}",
                    "key": f"k{at}",
                    "mass": 20.0 - at,
                    "expected": 1.5 * (at + 1) % 4,
                    "n": at,
                }
                for at in range(rng.integers(0, 14))
            ]
        rows.append(row)
    examples = [
        {
            "kind": kind,
            "layer": layer,
            "head": head,
            "decile": decile,
            "rank": rank,
            "activation": float(decile or 11) + rank / 8,
            "text": f"text {kind} {layer} {head} {decile} {rank}",
            "query": int(rng.integers(0, 3)),
            "query_label": "cat",
            "labels": ["the", "cat", "sat"],
            "weights": rng.integers(0, 9, 3) / 16,
        }
        for kind, layer, head in PLACES
        for decile in (None, *range(1, 11))
        for rank in (1, 2)
    ]
    profile = Profile(
        **{
            "about": MappingProxyType({"model": "mine", "weights": WEIGHTS}),
            "n_text": 1200,
            "n_token": 34567,
            "n_failed": 0,
            "n_sample": 7,
            "n_verified": 1100,
            "n_passed": 1100,
            "worst_error": 2.5e-7,
            "worst_difference": 0.0,
            "edges": EDGES,
            "probed": None,
            "table": pa.Table.from_pylist(rows, schema=HEADS_SCHEMA),
            "example_table": pa.Table.from_pylist(examples, schema=EXAMPLES_SCHEMA),
            "places": tuple(PLACES),
        }
    )
    return profile, rows, examples


def of_kind(rows: list[dict[str, Any]], kind: str | None) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == (kind or "decoder")]


class Called(NamedTuple):
    share: float
    low: float
    high: float
    is_relation: bool


def called(row: dict[str, Any]) -> dict[str, Called]:
    """The names of a head, from its row."""
    names: dict[str, Called] = {}
    for name, words in [*((name, one.called) for name, one in PROBES.items()), *NAMES.items()]:
        if (row[f"{name}_low"] or 0) > 0.5:
            names.setdefault(words, Called(row[name], row[f"{name}_low"], row[f"{name}_high"], False))
    if "[CLS]" in names:
        names.pop("first token", None)
    for value in row["relations"]:
        if value["words"] >= 20 and value["low"] > 0.5 and value["low"] > value["offset_accuracy"]:
            words = relation_title(value["relation"], value["direction"])
            names[words] = Called(value["accuracy"], value["low"], value["high"], True)
    return names


def relation_title(relation: str, direction: str) -> str:
    """What a head links that finds a relation, in words written down here."""
    of_dobj = {
        "attends to": "links a direct object to its verb",
        "attended by": "links a verb to its direct object",
    }
    depends = "the word that it depends on" if direction == "attends to" else "the word that depends on it"
    return of_dobj[direction] if relation == "dobj" else f"links a word to {depends} ({relation})"
