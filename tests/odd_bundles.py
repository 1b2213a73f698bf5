"""Bundles that no export writes but anybody can: odd numbers, texts and sizes, all of them consistent."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from attnviz.bundle.bundle import Bundle
from attnviz.bundle.writing import write_bundle
from attnviz.model.interventions import (
    ReplacedOutput,
    ReplacedState,
    ReplacedVectors,
    ReplacedWeights,
    ScaledOutput,
)
from attnviz.model.tolerances import UNITS
from attnviz.model.trace import Trace
from attnviz.records import (
    WEIGHTS,
    Axis,
    Check,
    Kind,
    LayerAttention,
    Provenance,
    Tokens,
    VerificationReport,
    head_table,
)


def tokens(n: int, **changes: Any) -> Tokens:
    """So many tokens of one text, the first and the last of them special; of one, it is not."""
    labels = tuple(f"t{number % 7}" for number in range(n))
    is_special = np.zeros(n, dtype=bool)
    if n > 2:
        labels = ("[CLS]", *labels[1:-1], "[SEP]")
        is_special[[0, -1]] = True
    made = Tokens(
        text=" ".join(labels)[:2000],
        ids=np.arange(n),
        labels=labels,
        is_special=is_special,
        segment=np.zeros(n, dtype=np.int64),
        word=np.where(is_special, -1, np.arange(n)),
    )
    return replace(made, **changes)


def trace(
    n_layer: int,
    n_head: int,
    n_token: int,
    d_head: int = 4,
    *,
    kinds: tuple[Kind, ...] = ("encoder",),
    of_tokens: Mapping[str, Any] | None = None,
    target: Tokens | None = None,
    **of_layer: Any,
) -> Trace:
    """A trace of random vectors, with other fields in its tokens and in each of its layers."""
    at_random = np.random.default_rng(7)
    source = tokens(n_token, **(of_tokens or {}))

    def vectors(length: int) -> np.ndarray:
        return at_random.standard_normal((n_head, length, d_head)).astype(np.float32)

    def layer(kind: Kind, number: int) -> LayerAttention:
        n_query = len(source) if kind == "encoder" or target is None else len(target)
        n_key = n_query if kind == "decoder" else len(source)
        made = LayerAttention(
            kind=kind,
            layer=number,
            query=vectors(n_query),
            key=vectors(n_key),
            value=vectors(n_key),
            scale=d_head**-0.5,
            value_products=np.ones((n_head, n_head, n_key), dtype=np.float32),
        )
        return replace(made, **of_layer)

    return Trace(
        tokens=source,
        target_tokens=target,
        layers={kind: tuple(layer(kind, number) for number in range(n_layer)) for kind in kinds},
        last_hidden_state=np.zeros((len(source if target is None else target), 3), dtype=np.float32),
        provenance=Provenance(model="odd", revision="none", dtype="float32", versions={"attnviz": "0"}),
    )


def uneven(n_heads: tuple[int, ...] = (4, 6, 2), n_token: int = 6) -> Trace:
    """A trace whose layers have these numbers of heads, each on keys and values of its own, and norm-based weights."""
    layers = [trace(1, count, n_token).attention(0) for count in n_heads]
    numbered = tuple(replace(one, layer=layer) for layer, one in enumerate(layers))
    return replace(trace(1, 1, n_token), layers={"encoder": numbered})


def report(of: Trace, *, difference: float = 0.0, tolerance: float = 1e-5) -> VerificationReport:
    """A verdict with the same difference and tolerance of every check, in every layer and head."""

    def tables(name: str, number: float) -> dict[Kind, np.ndarray]:
        if name != WEIGHTS:
            return {of.kinds[0]: np.full((1, 1), number, dtype=np.float32)}
        return {
            kind: head_table([[number] * len(call.query) for call in of.layers[kind]]) for kind in of.kinds
        }

    checks = tuple(
        Check(
            name=name,
            differences=tables(name, difference),
            tolerances=tables(name, tolerance),
            unit=unit,
            reason="",
        )
        for name, unit in UNITS.items()
    )
    return VerificationReport(checks=checks, provenance=of.provenance)


def bundle(of: Trace, verdict: VerificationReport | None = None, **changes: Any) -> bytes:
    """A bundle of a trace, at its first head."""
    kind = changes.pop("kind", of.kinds[0])
    made = Bundle(
        trace=of,
        report=verdict or report(of),
        kind=kind,
        layer=0,
        head=0,
        queries=Axis.of(of.query_tokens(kind)),
        keys=Axis.of(of.key_tokens(kind)),
        query=0,
        key=0,
        settings={"step": "0", "iterations": "250"},
        weights_sha256={"model.safetensors": "0" * 64},
    )
    return write_bundle(replace(made, **changes))


def odd() -> dict[str, bytes]:
    """Bundles that are read, by what is odd about them."""
    plain = trace(2, 3, 6)
    sees_nothing = np.ones((1, 6, 6), dtype=bool)
    sees_nothing[0, 2] = False
    unseen = np.ones((1, 6, 6), dtype=bool)
    unseen[0, :, 3] = False
    huge = np.zeros((1, 6, 6), dtype=np.float32)
    huge[0, 1] = np.linspace(-1e12, 1e12, 6)
    pair = {"text_pair": "t4 [SEP]", "segment": np.array([0, 0, 0, 0, 1, 1])}
    return {
        "a tolerance of 0": bundle(plain, report(plain, difference=1e-6, tolerance=0.0)),
        "everything exact": bundle(plain, report(plain, tolerance=0.0)),
        "a difference that is not a number": bundle(plain, report(plain, difference=float("nan"))),
        "a tolerance of 0 and no numbers": bundle(
            plain, report(plain, difference=float("nan"), tolerance=0.0)
        ),
        "a row without an allowed key": bundle(trace(2, 3, 6, allowed=sees_nothing), query=2),
        "one key for everybody": bundle(trace(2, 3, 6, allowed=np.eye(6, dtype=bool)[None])),
        "a key that nobody sees": bundle(trace(2, 3, 6, allowed=unseen), key=3),
        "a bias as large as can be": bundle(trace(2, 3, 6, bias=huge)),
        "one head, one dimension, one token": bundle(trace(1, 1, 1, 1)),
        "two tokens": bundle(trace(2, 3, 2)),
        "only special tokens": bundle(trace(2, 3, 6, of_tokens={"is_special": np.ones(6, dtype=bool)})),
        "no special tokens": bundle(trace(2, 3, 6, of_tokens={"is_special": np.zeros(6, dtype=bool)})),
        "labels of nothing": bundle(trace(2, 3, 6, of_tokens={"labels": ("",) * 6})),
        "labels that are all alike": bundle(trace(2, 3, 6, of_tokens={"labels": ("door",) * 6})),
        "labels of control characters": bundle(
            trace(2, 3, 6, of_tokens={"labels": ("\0", "\n", "\x1b[0m", "\u202e", "\ufeff", "a\u0301" * 400)})
        ),
        "no text": bundle(trace(2, 3, 6, of_tokens={"text": ""})),
        "one word": bundle(trace(2, 3, 6, of_tokens={"word": np.zeros(6, dtype=np.int64)})),
        "a pair of which one sentence has one token": bundle(trace(2, 3, 6, of_tokens=pair)),
        "all masked": bundle(trace(2, 3, 6, of_tokens={"masked": {number: "door" for number in range(6)}})),
        "vectors of zeros": bundle(
            trace(2, 3, 6, **dict.fromkeys(("query", "key", "value"), np.zeros((3, 6, 4), dtype=np.float32)))
        ),
        "vectors as large as can be": bundle(
            trace(
                2,
                3,
                6,
                **dict.fromkeys(("query", "key", "value"), np.full((3, 6, 4), 9e11, dtype=np.float32)),
            )
        ),
        "the largest scale": bundle(trace(2, 3, 6, scale=1e6)),
        "the smallest scale": bundle(trace(2, 3, 6, scale=1e-6)),
        "norms of nothing": bundle(
            trace(2, 3, 6, value_products=np.zeros((3, 3, 6), dtype=np.float32)), show="norms"
        ),
        "negative squares": bundle(
            trace(2, 3, 6, value_products=-np.ones((3, 3, 6), dtype=np.float32)), show="norms"
        ),
        "no norms": bundle(trace(2, 3, 6, value_products=None)),
        "values of one number": bundle(
            trace(2, 3, 6, value=np.ones((3, 6, 1), dtype=np.float32)), show="norms"
        ),
        "a decoder without a text": bundle(
            trace(2, 3, 6, kinds=("encoder", "decoder", "cross"), target=tokens(1, text="")), kind="cross"
        ),
        "a run that was changed": changed(plain),
        "many layers of one head": bundle(trace(40, 1, 9)),
        "layers with different numbers of heads": bundle(uneven(), layer=1, head=5, show="norms"),
        "one row and one column": bundle(
            plain,
            queries=Axis(tokens=plain.tokens, spans=np.array([[5, 6]])),
            keys=Axis(tokens=plain.tokens, spans=np.array([[0, 1]])),
            renormalised=True,
        ),
    }


def changed(of: Trace) -> bytes:
    """A run with interventions of every kind, with rows of weights that do not sum to 1."""
    n, d_value = len(of.tokens), of.attention(0).value.shape[2]
    weights = np.linspace(0, 1, n * n, dtype=np.float32).reshape(n, n)
    states = np.zeros((1, of.last_hidden_state.shape[1]), dtype=np.float32)
    interventions = (
        ReplacedWeights(weights=weights, layer=0, head=0),
        ReplacedWeights(weights=np.zeros((n, n), dtype=np.float32), layer=0, head=1),
        ScaledOutput(factor=-1e6, layer=1),
        ReplacedOutput(
            output=np.zeros((1, d_value), dtype=np.float32), layer=1, head=1, positions=(0, n - 1)
        ),
        ReplacedVectors(
            role="value", vectors=np.zeros((1, d_value), dtype=np.float32), layer=0, positions=(1,)
        ),
        ReplacedState(states=states, layer=0),
        ReplacedState(states=states, where="mlp", layer=1),
    )
    return bundle(replace(of, interventions=interventions))


def long() -> dict[str, bytes]:
    """The same of a text as long as can be, which pages take a while for."""
    return {"one head of 1,024 tokens": bundle(trace(1, 1, 1024, 1))}
