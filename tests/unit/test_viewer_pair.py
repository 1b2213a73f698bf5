"""What an opened cell shows, against loops in float64 over the vectors that the attention got."""

import math
import re

import msgspec
import numpy as np
import pytest

from attnviz.errors import SelectionError
from attnviz.figures.numbers import number_text, share_text
from attnviz.heads.score import score_of
from attnviz.model.trace import Trace
from attnviz.viewer.pair import MOST_CELLS, MOST_KEYS, PairData, pair_data, pair_json

WRITTEN = re.compile(r"(−?)([\d.]+)?(?:\xa0×\xa0)?(?:10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?")
LONG = "the cat sat on a mat and the dog saw the door when it opened . " * 2


def row_in_loops(
    trace: Trace, layer: int, head: int, query: int, kind: str
) -> tuple[list[float], list[float]]:
    """Scores and weights of one query, product by product; a group of heads shares keys."""
    call = trace.attention(layer, kind)
    group = head // (len(call.query) // len(call.key))
    scores = []
    for key in range(call.key.shape[1]):
        score = 0.0
        for dimension in range(call.query.shape[2]):
            score += float(call.query[head, query, dimension]) * float(call.key[group, key, dimension])
        score *= call.scale
        if call.softcap is not None:
            score = call.softcap * math.tanh(score / call.softcap)
        if call.bias is not None:
            score += float(call.bias[head if len(call.bias) > 1 else 0, query, key])
        allowed = (
            True
            if call.allowed is None
            else bool(call.allowed[head if len(call.allowed) > 1 else 0, query, key])
        )
        scores.append(score if allowed else -math.inf)
    largest = max(scores)
    exponentials = [math.exp(score - largest) for score in scores]
    return scores, [exponential / sum(exponentials) for exponential in exponentials]


def number(text: str) -> float:
    """What a text says."""
    sign, digits, power = WRITTEN.fullmatch(text.replace(",", "")).groups()  # type: ignore[union-attr]
    exponent = int((power or "⁰").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    return (-1 if sign else 1) * float(digits or 1) * 10**exponent


def check(data: PairData, trace: Trace, layer: int, head: int, query: int, key: int, kind: str) -> None:
    scores, weights = row_in_loops(trace, layer, head, query, kind)
    call = trace.head(layer, head, kind)
    *_, products = data.products.strips
    for cell, dimension in enumerate(data.products.dimensions):
        product = float(call.query[query, dimension]) * float(call.key[key, dimension])
        assert number(products.texts[cell]) == pytest.approx(product, rel=6e-3, abs=6e-6)
    assert [piece.sign for piece in data.score][-1] == "="
    assert data.is_masked == (scores[key] == -math.inf)
    if not data.is_masked:
        assert number(data.score[-1].text) == pytest.approx(scores[key], rel=6e-3, abs=1e-5)
    assert number(data.weight) == pytest.approx(weights[key], rel=6e-3, abs=6e-6)
    assert data.weight == number_text(float(trace.weights(layer, head, kind)[query, key]))
    assert data.weight_share == share_text(float(trace.weights(layer, head, kind)[query, key]))
    [picked] = [row for row in data.rows if row.is_picked]
    assert (picked.weight_text, picked.score is None) == (data.weight, data.is_masked)
    assert sum(row.weight for row in data.rows) == pytest.approx(1, abs=1e-4)
    output = np.array(
        [
            sum(weights[at] * float(call.value[at, d]) for at in range(len(weights)))
            for d in range(call.value.shape[1])
        ]
    )
    for cell, dimension in enumerate(data.values.dimensions):
        value = float(call.value[key, dimension])
        expected = value, value * weights[key], output[dimension]
        for strip, number_there in zip(data.values.strips, expected, strict=True):
            assert number(strip.texts[cell]) == pytest.approx(number_there, rel=6e-3, abs=1e-5)
    share = weights[key] * float(call.value[key].astype(float) @ output) / float(output @ output)
    assert data.output_share == share_text(share)


def test_the_first_screens_pair(door_trace: Trace) -> None:
    data = pair_data(door_trace, 3, 1, 7, 5, kind=None)
    check(data, door_trace, 3, 1, 7, 5, "encoder")
    assert (data.weight, data.weight_share) == ("0.475", "47.5%")
    assert data.largest == int(score_of(door_trace, 3, 1, 7, 5).largest_first()[0])
    assert [piece.name for piece in data.score] == ["sum", "√32", "score"]
    assert [row.label for row in data.rows][5:8] == ["door·5", "when·6", "it·7"]
    assert msgspec.json.decode(pair_json(data))["weightShare"] == "47.5%"


@pytest.mark.parametrize("family", ["llama", "gemma2", "t5", "bart"])
def test_every_kind_of_score(family, tiny_model) -> None:
    model = tiny_model(family)
    trace = (
        model.trace("the cat sat", "it opened")
        if family in ("t5", "bart")
        else model.trace("the cat sat on a mat")
    )
    names = set()
    for kind in trace.kinds:
        head = trace.n_heads(1, kind) - 1
        pairs = list(np.ndindex(trace.weights(1, head, kind).shape))
        for query, key in pairs[:: 7 if len(pairs) > 100 else 1]:
            data = pair_data(trace, 1, head, query, key, kind=kind)
            check(data, trace, 1, head, query, key, kind)
            names |= {piece.name.split(" ")[0] for piece in data.score}
            if data.is_masked:
                assert (data.weight, data.softmax) == ("0", [])
                assert "may not see" in data.captions[3].text
    assert "not" in names  # a masked pair's score is not used
    assert ("softcap" in names) == (family == "gemma2")
    assert ("bias" in names) == (family == "t5")


def test_a_long_row_lists_the_strongest_keys_and_sums_the_others(embedded) -> None:
    trace = embedded.trace(LONG)
    weights = trace.weights(2, 5)
    for query in (1, 9):
        key = int(weights[query].argmin())
        data = pair_data(trace, 2, 5, query, key, kind="encoder")
        check(data, trace, 2, 5, query, key, "encoder")
        assert len(data.rows) == MOST_KEYS + 1
        listed = {int(row.label.rpartition("·")[2]) for row in data.rows[:-1]}
        assert listed == {key, *np.argsort(-weights[query], kind="stable")[: MOST_KEYS - 1].tolist()}
        others = [float(weight) for at, weight in enumerate(weights[query]) if at not in listed]
        assert data.rows[-1].label == f"{len(others)} others"
        assert data.rows[-1].weight == pytest.approx(sum(others), rel=1e-4)


def test_wide_vectors_show_of_neighbours_the_largest_product(door_trace: Trace, monkeypatch) -> None:
    monkeypatch.setattr("attnviz.viewer.pair.MOST_CELLS", 10)
    data = pair_data(door_trace, 3, 1, 7, 5, kind=None)
    assert MOST_CELLS == 64
    products = score_of(door_trace, 3, 1, 7, 5).terms
    blocks = [
        max(range(start, min(start + 4, 32)), key=lambda at: abs(products[at])) for start in range(0, 32, 4)
    ]
    assert data.products.dimensions == blocks
    check(data, door_trace, 3, 1, 7, 5, "encoder")


def test_of_a_token_that_is_not_there(door_trace: Trace) -> None:
    with pytest.raises(SelectionError, match="Key token 11"):
        pair_data(door_trace, 3, 1, 0, 11, kind=None)
