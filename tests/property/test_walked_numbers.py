"""Step by step, the film, scaling, written texts and what components are sent: each number is worked out again in plain Python.

Keys are masked, scores are equal, a scale is not the usual one, a bias or a softcap is there or not.
"""

import math
from statistics import mean
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.figures.numbers import cell_text, number_text, share_text
from attnviz.heads.query_path import QueryPath
from attnviz.lessons.scaling import Products
from attnviz.records import Axis
from tests import hand_made, small_records
from tests.app.screen import facts
from tests.drawing import MARKS, draw_few
from tests.drawn_parts import PartOfView
from ui.components.head_film import darkest_from
from ui.components.head_grid import _colour
from ui.components.plotly_figure.heatmap_events import _cell, _normalisers, _picked
from ui.rooms.generate.branches import candidate_rows
from ui.rooms.generate.steps import finding as finding_of_step
from ui.rooms.how_it_works.scaling.in_numbers import lines_of, mean_norm, norm_text
from ui.rooms.how_it_works.step_by_step import _captions, _note, _score
from ui.rooms.how_it_works.step_by_step.to_output import _of_row, columns_of

pytestmark = MARKS
draw_few()

LABELS = ["cat", "door", "it", "box"]


def masks(*shape: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.bool_, shape, elements=st.integers(0, 2).map(bool), fill=st.nothing())


def whole(*shape: int, most: int = 3) -> st.SearchStrategy[np.ndarray]:
    """Few numbers, so that many are equal, some 0 and some negative."""
    return hnp.arrays(np.float32, shape, elements=st.integers(-most, most).map(float), fill=st.nothing())


def softmax(scores: list[float]) -> list[float]:
    """Shares of the exponentials; 0 for minus infinity, and everywhere where nothing may be seen."""
    counts = [math.exp(score) for score in scores]
    return [count / (math.fsum(counts) or 1.0) for count in counts]


@given(whole(4), masks(4), st.integers(0, 3))
def test_the_ends_of_a_row_of_scores(scores, allowed, key):
    row = [float(score) if seen else -math.inf for score, seen in zip(scores, allowed, strict=True)]
    walk = SimpleNamespace(key=key, label=lambda position, of: f"“{LABELS[position]}”")
    text = _of_row(walk, np.array(row, dtype=np.float32))
    stated, seen = facts(text), [value for value in row if value > -math.inf]
    if not seen:
        assert stated.quoted == stated.numbers == ()
        return
    parts = text.removesuffix(".").split("; ")
    assert len(parts) == 3
    for part, end in zip(parts, (max(seen), min(seen)), strict=False):
        own = facts(part)
        assert row[LABELS.index(own.quoted[0])] == end and own.numbers[0] == number_text(end)
        others = row.count(end) - 1
        assert own.numbers[1:] == ((str(others),) if others else ())
    last = facts(parts[2])
    assert last.quoted == (LABELS[key],)
    assert last.numbers == ((number_text(row[key]),) if allowed[key] else ())


@given(whole(3, 2), whole(3))
def test_what_each_key_adds_to_the_mean(values, weights):
    title_of_weight, title_of_length, title_of_both = columns_of(weights, values)
    columns = columns_of(weights, values)
    for key in range(3):
        length = math.hypot(*map(float, values[key]))
        assert columns[title_of_weight][key] == weights[key]
        assert columns[title_of_length][key] == pytest.approx(length)
        assert columns[title_of_both][key] == pytest.approx(float(weights[key]) * length)


@st.composite
def paths(draw: st.DrawFn) -> QueryPath:
    query, key, value = draw(whole(4)), draw(whole(4, 4)), draw(whole(4, 3))
    allowed = draw(masks(4))
    scale, softcap = draw(st.sampled_from([0.5, 0.25, 1.0])), draw(st.sampled_from([None, 2.0]))
    bias = draw(whole(4)) if draw(st.booleans()) else None
    products = [math.fsum(float(a) * float(b) for a, b in zip(query, value, strict=True)) for value in key]
    scores = [
        scale * product if softcap is None else softcap * math.tanh(scale * product / softcap)
        for product in products
    ]
    if bias is not None:
        scores = [score + float(b) for score, b in zip(scores, bias, strict=True)]
    scores = [score if seen else -math.inf for score, seen in zip(scores, allowed, strict=True)]
    weights = np.array(softmax(scores), dtype=np.float32)
    return QueryPath(
        query=query,
        key=key,
        value=value,
        products=np.array(products, dtype=np.float32),
        scale=scale,
        softcap=softcap,
        bias=bias,
        bias_is_of_distance=True,
        scores=np.array(scores, dtype=np.float32),
        weights=weights,
        output=weights @ value,
    )


@given(paths(), st.integers(0, 3), st.integers(0, 3))
def test_what_the_film_says_of_each_stage(path, query, key):
    tokens = hand_made.tokens(LABELS)
    walk = SimpleNamespace(
        view=PartOfView(
            trace=SimpleNamespace(query_tokens=lambda kind: tokens, key_tokens=lambda kind: tokens),
            kind="encoder",
        ),
        place=SimpleNamespace(layer=5, head=6, words="layer 5, head 6"),
        query=query,
        key=key,
        anatomy=None,
    )
    hidden = np.arange(4 * 7, dtype=np.float32).reshape(4, 7)
    vector, made, products, scaled, weights, values, output = (
        facts(sentence) for sentence in _captions(walk, path, hidden, n_others=0)
    )
    assert vector.numbers == ("5", "7", number_text(float(hidden[query, 0])))
    assert made.numbers[:2] == ("4", number_text(float(path.query[0])))
    product = float(path.products[key])
    assert products.quoted == (LABELS[query], LABELS[key])
    assert products.numbers == (number_text(product), "4")
    score = float(path.scores[key])
    is_usual = path.scale == 0.5  # 1 / sqrt(4)
    if score == -math.inf:
        assert scaled.quoted == (LABELS[query], LABELS[key]) and scaled.numbers == ("0",)
    else:
        expected = ["2.00"] if is_usual else [f"{path.scale:.3g}"]
        if path.bias is not None or path.softcap is not None:
            expected.append(number_text(product * path.scale))
        expected += [] if path.softcap is None else ["2"]
        expected += [] if path.bias is None else [number_text(float(path.bias[key]))]
        written = [number for number in scaled.numbers if number != "4" or not is_usual]
        assert written[-len(expected) - 1 :] == [*expected, number_text(score)]
    weight = float(path.weights[key])
    total = math.fsum(path.weights.astype(float))
    assert weights.quoted == (LABELS[query], LABELS[key])
    assert weights.numbers == (
        number_text(total),
        share_text(weight).removeprefix("under ").removeprefix("over "),
    )
    assert values.quoted == (LABELS[key],) and values.numbers == (number_text(weight),)
    assert output.numbers[0] == "4" and output.numbers[-2:] == ("3", number_text(float(path.output[0])))
    written = _score(path)
    assert ("√4" in written) == is_usual and ("bias" in written) == (path.bias is not None)
    assert ("tanh" in written) == (path.softcap is not None)


@given(paths(), st.sets(st.integers(0, 3), min_size=1), st.floats(0.5, 2, width=16))
def test_what_the_film_leaves_out(path, shown, darkest):
    listed = np.array(sorted(shown))
    stated = facts(_note(path, None, listed, darkest)).numbers
    left = [float(weight) for at, weight in enumerate(path.weights) if at not in shown]
    share = share_text(math.fsum(left)).removeprefix("under ").removeprefix("over ")
    left_out = (str(len(shown)), "4", str(len(left)), share) if left else ()
    assert stated == ("0", *left_out)
    with_x = _note(path, np.zeros((2, 130), dtype=np.float32), listed, darkest)
    assert f"±{number_text(darkest)}" in with_x and "3 numbers of x" in with_x  # 64 cells for 130


@given(st.lists(whole(50, most=20), min_size=1, max_size=2))
def test_one_number_in_a_hundred_is_beyond_the_darkest_tone(vectors):
    sizes = sorted(abs(float(number)) for vector in vectors for number in vector)
    limit = darkest_from([None, *vectors])
    beyond = sum(size > limit for size in sizes)
    assert beyond <= math.ceil(0.01 * len(sizes))
    assert limit >= sizes[math.floor(0.99 * (len(sizes) - 1))] or limit == 1.0


def sharp(weights: list[float]) -> tuple[float, float, float]:
    """Entropy as a share of ln n, largest weight, and the Frobenius norm of diag(w) - w wᵀ."""
    nats = -math.fsum(weight * math.log(weight) for weight in weights if weight)
    cells = [
        ((weight if at == there else 0.0) - weight * other) ** 2
        for at, weight in enumerate(weights)
        for there, other in enumerate(weights)
    ]
    n = len(weights)
    return nats / math.log(n) if n > 1 else 0.0, max(weights), math.sqrt(math.fsum(cells))


@given(whole(3, 4), masks(3, 4), st.sampled_from([None, 2.0]))
def test_how_sharp_a_row_is_under_each_scale(numbers, allowed, softcap):
    assume(allowed[0].any())
    products = Products(
        products=numbers,
        scale=0.5,
        softcap=softcap,
        bias=np.zeros((3, 4), dtype=np.float32),
        allowed=allowed,
    )

    def row(query: int, scale: float) -> tuple[float, float, float]:
        scaled = [
            scale * float(product)
            for product, seen in zip(numbers[query], allowed[query], strict=True)
            if seen
        ]
        return sharp(
            softmax([score if softcap is None else softcap * math.tanh(score / softcap) for score in scaled])
        )

    scales = {"The model’s": 0.5, "Yours": 0.125}
    *lines, equal = lines_of(products, 0, scales)
    for line, (name, scale) in zip(lines, scales.items(), strict=True):
        entropy, largest, norm = row(0, scale)
        assert f"{name}, scale {scale:.3g}:" in line
        assert line.split(":** ")[1] == (
            f"entropy {share_text(entropy)} of ln n, largest weight {share_text(largest)}, norm of the Jacobian {norm_text(norm)}"
        )
    n_seen = int(allowed[0].sum())
    even = sharp([1 / n_seen] * n_seen)
    assert (
        share_text(1 / n_seen) in equal
        and share_text(even[0]) in equal
        and equal.endswith(norm_text(even[2]))
    )
    norms = [row(query, 0.25)[2] for query in range(3) if allowed[query].any()]
    assert mean_norm(products, 0.25) == pytest.approx(mean(norms), abs=1e-9)


@given(st.data(), st.permutations([0.5, 0.25, 0.125, 0.0625]))
def test_the_candidates_of_a_step(data, chances):
    """The written token is among them, or is added with its own probability, and is the one that is marked."""
    listed = data.draw(st.permutations([10, 11, 12, 13]))[:3]
    written = data.draw(st.sampled_from([10, 11, 12, 13]))
    step = data.draw(st.integers(0, 1))
    ids = [[90, 91, 92], [93, 94, 95]]
    ids[step] = listed
    labels = [tuple(f"t{value}" for value in row) for row in ids]
    written_all = [96, 97]
    written_all[step] = written
    probabilities = np.array([0.01, 0.02])
    continuation = SimpleNamespace(
        tokens=SimpleNamespace(ids=np.array([1, 2, *written_all])),
        n_read=2,
        written=tuple(f"t{token_id}" for token_id in written_all),
        probabilities=probabilities,
        candidate_ids=np.array(ids),
        candidates=tuple(labels),
        candidate_probabilities=np.array([chances[:3], chances[:3]]),
    )
    row_ids, rows = candidate_rows(continuation, step)
    expected = dict(zip(listed, chances[:3], strict=True))
    expected.setdefault(written, float(probabilities[step]))
    assert dict(zip(row_ids, [row.length for row in rows], strict=True)) == expected
    assert [row.amount for row in rows] == [number_text(expected[row_id]) for row_id in row_ids]
    assert [row.text for row in rows] == [f"t{row_id}" for row_id in row_ids]
    assert [token_id for token_id, row in zip(row_ids, rows, strict=True) if row.picked] == [written]


@given(st.data())
def test_what_is_written_in_a_step(data):
    n_read, n_written, axis = 2, 2, Axis.of(hand_made.tokens(LABELS))
    counts = np.tril(data.draw(hnp.arrays(np.int64, (4, 4), elements=st.integers(1, 4), fill=st.nothing())))
    pattern = small_records.pattern(
        (counts / counts.sum(axis=1, keepdims=True)).tolist(),
        kind="decoder",
        allowed=np.tril(np.ones((4, 4), dtype=bool)),
        queries=axis,
        keys=axis,
    )
    step = data.draw(st.integers(0, n_written - 1))
    query = n_read + step - 1
    continuation = SimpleNamespace(
        tokens=hand_made.tokens(LABELS),
        written=tuple(LABELS[n_read:]),
        probabilities=np.array([0.375, 0.625]),
    )
    screen = SimpleNamespace(
        continuation=continuation,
        pattern=pattern,
        query=query,
        step=step,
        view=SimpleNamespace(selection=SimpleNamespace(place=SimpleNamespace(words="layer 1, head 2"))),
    )
    stated = facts(finding_of_step(screen))
    assert stated.numbers[:2] == (str(step + 1), ("37.5%", "62.5%")[step])
    assert stated.quoted[:2] == (LABELS[n_read + step], LABELS[query])
    key = LABELS.index(stated.quoted[2])
    assert stated.numbers[2] == share_text(float(pattern.weights[query, key]))
    others = [
        float(pattern.weights[query, number]) for number in range(1, query)
    ]  # neither itself nor the first
    assert not others or float(pattern.weights[query, key]) == max(others)


@given(whole(2, 3), st.booleans(), st.booleans())
def test_colours_and_numbers_of_a_grid_of_heads(numbers, signed, is_ragged):
    """A signed scale has 0 in its middle and ends as far below as above; another goes from 0, or lower, to the largest."""
    if is_ragged:
        numbers[1, 2] = np.nan
    cells: list[list[dict[str, object]]] = [[{} for _ in range(3)] for _ in range(2)]
    legend = _colour(cells, numbers, "light", signed=signed)
    known = [float(value) for value in numbers.ravel() if not math.isnan(value)]
    low, high = min([0.0, *known]), max([0.0, *known])
    if signed:
        high = max(map(abs, known))
        low = -high
    assert legend["low"] == ("0" if low == 0 else cell_text(low)) and legend["high"] == cell_text(high)
    steps = legend["steps"]
    for layer, head in np.ndindex(2, 3):
        number, cell = float(numbers[layer, head]), cells[layer][head]
        assert cell["label"] == ("–" if math.isnan(number) else cell_text(number))
        if high > low and number in (low, high):
            assert cell["fill"] == steps[0 if number == low else -1]
        if signed and high > low and number == 0:
            assert cell["fill"] == steps[len(steps) // 2]


@given(whole(3, 4), masks(3, 4), st.integers(0, 2), st.integers(0, 3))
def test_what_turns_a_weight_into_its_score(scores, allowed, query, key):
    """score - ln(weight) is the logarithm of the row's sum of exponentials."""
    rows = [
        [float(score) if seen else -math.inf for score, seen in zip(*both, strict=True)]
        for both in zip(scores, allowed, strict=True)
    ]
    pattern = small_records.pattern(
        [softmax(row) for row in rows],
        scores=np.array(rows, dtype=np.float32),
        allowed=allowed,
        kind="cross",
    )
    normalisers = _normalisers(pattern)
    for row, normaliser in zip(rows, normalisers, strict=True):
        total = math.fsum(math.exp(score) for score in row)
        assert normaliser == (pytest.approx(math.log(total), abs=1e-5) if total else None)
    sentence = _picked(pattern, _cell(pattern, (query, key)))
    assert number_text(float(pattern.weights[query, key])) in sentence.split(", score")[0]
    assert sentence.endswith(f"score {number_text(rows[query][key])}")
