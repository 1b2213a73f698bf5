"""The smallest records that fit, to be changed where a test needs another."""

import numpy as np

from attnviz.records import (
    AttentionPattern,
    Axis,
    Chance,
    Check,
    LayerAttention,
    Projection,
    Provenance,
    Reliability,
    Tokens,
    VerificationReport,
)

PROVENANCE = Provenance(model="m", revision="r", dtype="float32", versions={"torch": "2"})


def tokens(n: int = 4, **changes) -> Tokens:
    """[CLS] 1 2 ... [SEP]"""
    given = {
        "text": "text",
        "ids": np.arange(n),
        "labels": tuple(map(str, range(n))),
        "is_special": np.isin(np.arange(n), (0, n - 1)),
        "segment": np.zeros(n, dtype=int),
        "word": np.arange(n) - 1,
    }
    return Tokens(**given | changes)


def layer(**changes) -> LayerAttention:
    """6 heads on 2 shared keys and values, 3 queries, 5 keys."""
    given = {
        "kind": "cross",
        "layer": 0,
        "query": np.zeros((6, 3, 7), dtype=np.float32),
        "key": np.zeros((2, 5, 7), dtype=np.float32),
        "value": np.zeros((2, 5, 11), dtype=np.float32),
        "scale": 1.0,
    }
    return LayerAttention(**given | changes)


def pattern(weights: list[list[float]], **changes) -> AttentionPattern:
    n_query, n_key = np.shape(weights)
    given = {
        "kind": "encoder",
        "layer": 0,
        "head": 0,
        "scores": np.arange(n_query * n_key, dtype=np.float32).reshape(n_query, n_key),
        "weights": np.array(weights, dtype=np.float32),
        "allowed": np.ones((n_query, n_key), dtype=bool),
        "queries": Axis.of(tokens(n_query)),
        "keys": Axis.of(tokens(n_key)),
        "hidden_weight": np.zeros(n_query, dtype=np.float32),
        "provenance": PROVENANCE,
    }
    return AttentionPattern(**given | changes)


PERFECT = Reliability(n_query=3, order_correlation=-1.0, worst_correlation=-1.0, nearest_agreement=1.0)
BY_CHANCE = Chance(n_permutations=999, correlation=-0.5, correlation_p=0.001, nearest=0.25, nearest_p=0.001)


def projection(n_point: int = 6, **changes) -> Projection:
    given = {
        "points": np.zeros((n_point, 2), dtype=np.float32),
        "role": ("query", "query", "query", "key", "key", "key"),
        "position": np.array([0, 1, 2, 0, 1, 2]),
        "query_tokens": tokens(3),
        "key_tokens": tokens(3),
        "weights": np.full((3, 3), 1 / 3, dtype=np.float32),
        "kind": "encoder",
        "layer": 0,
        "head": 0,
        "method": "tsne",
        "space": "raw",
        "parameters": {"seed": 0},
        "in_map": PERFECT,
        "chance": BY_CHANCE,
        "in_space": PERFECT,
        "trustworthiness": 1.0,
        "provenance": PROVENANCE,
    }
    return Projection(**given | changes)


def check(differences, tolerances=1e-5, name: str = "attention weights") -> Check:
    """A check of encoder layers x heads; one tolerance for all, or one each."""
    found = np.array(differences, dtype=np.float32)
    allowed = np.broadcast_to(np.array(tolerances, dtype=np.float32), found.shape).copy()
    return Check(
        name=name,
        differences={"encoder": found},
        tolerances={"encoder": allowed},
        unit="weight",
        reason="float32",
    )


def report(weights: float = 0.0, outputs: float = 0.0) -> VerificationReport:
    return VerificationReport(
        checks=(check([[0.0, weights]]), check([[outputs]], name="output after W_O")), provenance=PROVENANCE
    )
