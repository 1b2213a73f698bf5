"""Softcapped scores: on paper, and wherever scores are computed again from queries and keys.

The truth is numpy's, from the formula of Gemma Team 2024 (arXiv:2408.00118), section 2.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import attnviz
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import PROVENANCE, write_bundle
from attnviz.cost.streaming import stream_head, streaming_attention
from attnviz.errors import BundleError, ShapeError
from attnviz.figures.pair import draw_pair
from attnviz.heads import query_path
from attnviz.heads.claims import measure
from attnviz.heads.score import Score, score_of
from attnviz.lessons.scaling import Products, products_of
from attnviz.maths.attention import attention_output, attention_scores
from attnviz.maths.blocks import attention_output_in_blocks
from attnviz.model.head_attention import HeadAttention
from tests import numpy_attention
from tests.bundles import bundle_of, files_of, with_document
from tests.small_records import layer

CAP = 3.0
AT = {"layer": 1, "head": 4}


@pytest.fixture(scope="module")
def trace(tiny_model):
    return tiny_model("gemma2").trace("I was watching the door")


@pytest.fixture(scope="module")
def expected(trace):
    """Scores, weights and output of one head of Gemma 2, in float64."""
    call = trace.attention(AT["layer"])
    query, key, value = call.query[4], call.key[4 // 3], call.value[4 // 3]
    allowed = call.allowed[0]
    scores = 7**-0.5 * query.astype(np.float64) @ key.astype(np.float64).T
    assert np.abs(scores[allowed]).max() > CAP  # or the cap could be left out unnoticed
    scores = np.where(allowed, CAP * np.tanh(scores / CAP), -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return scores, weights, weights @ value


def test_on_paper():
    query, key = torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 1.0], [0.0, 1.0], [1.0, 5.0]])
    bias = torch.tensor([[0.0, 10.0, 0.0]])
    allowed = torch.tensor([[True, True, False]])
    scores = attention_scores(query, key, 0.5, softcap=2.0, allowed=allowed, bias=bias)
    # half of 6 is 3, and 2 tanh(3 / 2) = 1.81030; what is added later is not capped
    np.testing.assert_allclose(scores.numpy(), [[1.8102965, 10.0, -np.inf]], rtol=1e-6)


@pytest.mark.parametrize("attend", [attention_output, attention_output_in_blocks, streaming_attention])
def test_every_way_to_compute_attention(attend):
    random = np.random.default_rng(0)
    query, key, value = (
        random.normal(size=(2, n, 5)) * 3 for n in (131, 17, 17)
    )  # more rows than a block has
    bias, allowed = random.normal(size=(2, 131, 17)), random.random((1, 131, 17)) < 0.8
    terms = {"softcap": 1.5, "bias": bias, "allowed": allowed}
    given = {name: torch.tensor(term) if name != "softcap" else term for name, term in terms.items()}
    tile = {"tile": 4} if attend is streaming_attention else {}
    output = attend(torch.tensor(query), torch.tensor(key), torch.tensor(value), 0.7, **given, **tile)
    np.testing.assert_allclose(
        output.numpy(), numpy_attention.output(query, key, value, 0.7, **terms), rtol=0, atol=1e-13
    )


def test_the_trace_of_a_model(trace, expected):
    scores, weights, output = expected
    # float32: scores of up to 3
    np.testing.assert_allclose(trace.scores(**AT), scores, atol=1e-5)
    np.testing.assert_allclose(trace.weights(**AT), weights, atol=1e-5)
    np.testing.assert_allclose(trace.output(**AT), output, atol=1e-4)
    np.testing.assert_allclose(trace.layer_weights(1)[4], weights, atol=1e-5)
    np.testing.assert_allclose(trace.pattern(**AT).scores, scores, atol=1e-5)


def test_what_pages_compute_of_a_trace(trace, expected):
    scores, _, output = expected
    path = query_path(trace, 6, *AT.values())
    assert path.softcap == CAP
    np.testing.assert_allclose(path.scores, scores[6], atol=1e-5)
    seen = np.isfinite(scores)
    products = products_of(trace, **AT)
    np.testing.assert_allclose(products.scores(products.scale)[seen], scores[seen], atol=1e-5)
    np.testing.assert_allclose(products.row(6, products.scale), scores[6][seen[6]], atol=1e-5)
    for key in np.flatnonzero(seen[6]).tolist():
        assert score_of(trace, *AT.values(), 6, key).value == pytest.approx(scores[6, key], abs=1e-5)
    np.testing.assert_allclose(stream_head(trace, **AT, tile=3)[-1].output.numpy(), output, atol=1e-4)


def test_the_weights_of_tied_queries_are_capped_too(trace):
    call = replace(trace.attention(1), allowed=None)  # under a causal mask no two tokens see each other
    key = call.key[4 // 3]
    weights = numpy_attention.weights(key, key, 7**-0.5, softcap=CAP)
    asymmetry = np.abs(weights - weights.T).sum() / (weights + weights.T).sum()
    tied = measure(trace.with_layer(call)).tied_asymmetry[AT["layer"], AT["head"]]
    assert tied == pytest.approx(asymmetry, abs=1e-5)


class TestOfOnePair:
    SCORE = Score(
        query=np.array([1.0, 2.0], dtype=np.float32),
        key=np.array([4.0, 1.0], dtype=np.float32),
        scale=0.5,
        softcap=2.0,
        bias=0.25,
        allowed=True,
    )

    def test_the_score(self):
        # 2 + 1 = 3, 2 tanh(3 / 2) = 1.81030
        assert self.SCORE.cap == pytest.approx(1.8102965 - 3)
        assert self.SCORE.value == pytest.approx(2.0602965)

    def test_as_csv(self):
        rows = self.SCORE.csv().decode("utf-8-sig").splitlines()
        assert [*map(float, rows[3].split(",")[3:])] == pytest.approx([-1.1897035, 1.8102965])
        assert [*map(float, rows[4].split(",")[3:])] == pytest.approx([0.25, 2.0602965])

    def test_drawn_as_a_step_of_the_sum(self):
        sums = draw_pair(self.SCORE).data[-1]
        np.testing.assert_allclose(sums.y, [2.0, 3.0, 1.8102965, 2.0602965], rtol=1e-6)
        assert [row[0] for row in sums.customdata] == ["0", "1", "softcap", "bias"]


def test_a_scale_that_reaches_a_limit():
    products = Products(
        products=np.array([[4.0, -8.0, 2.0]], dtype=np.float32),
        bias=np.zeros((1, 3), dtype=np.float32),
        allowed=np.array([[True, True, False]]),
        scale=0.5,
        softcap=10.0,
    )
    scale = products.scale_reaching(0, 5.0)
    assert scale == pytest.approx(10 * np.arctanh(0.5) / 4)
    assert products.row(0, scale)[0] == pytest.approx(5.0)
    assert products.scale_reaching(0, 10.5) is None  # above the cap


@pytest.mark.parametrize("softcap", [None, 3.0])
@pytest.mark.parametrize("seed", range(6))
def test_scores_and_the_scale_that_reaches_a_limit_key_by_key(softcap, seed):
    """Of a score s(c) = cap(c p) + b that grows with the scale c, the limit is reached at c = cap^-1(limit - b) / p."""
    rng = np.random.default_rng(seed)
    numbers, bias = (rng.integers(-4, 5, (2, 5)).astype(np.float32) / 2 for _ in range(2))
    allowed = rng.random((2, 5)) < 0.7
    allowed[:, 0] = True
    products = Products(products=numbers, bias=bias, allowed=allowed, scale=0.5, softcap=softcap)

    def score(query, key, scale):
        scaled = scale * float(numbers[query, key])
        return (softcap * math.tanh(scaled / softcap) if softcap else scaled) + float(bias[query, key])

    of_scale, limit = products.scores(0.75), 2.5 if seed % 2 else 1.75
    for query in range(2):
        keys = [key for key in range(5) if allowed[query, key]]
        row = [score(query, key, 0.75) for key in keys]
        assert products.row(query, 0.75).tolist() == pytest.approx(row)
        for key in range(5):
            assert of_scale[query, key] == (
                pytest.approx(score(query, key, 0.75)) if allowed[query, key] else -math.inf
            )
        reaching = []
        for key in keys:
            missing, product = limit - float(bias[query, key]), float(numbers[query, key])
            if missing <= 0:
                reaching.append(0.0)
            elif product > 0 and (softcap is None or missing < softcap):
                reaching.append((softcap * math.atanh(missing / softcap) if softcap else missing) / product)
        expected = pytest.approx(min(reaching)) if reaching else None
        assert products.scale_reaching(query, limit) == expected


def test_a_cap_is_above_0():
    with pytest.raises(ShapeError, match=r"softcap is 0\.0, not above 0"):
        layer(softcap=0.0)


def test_one_head_of_a_layer_has_its_cap():
    assert HeadAttention.of(layer(softcap=2.5), 0).softcap == 2.5


class TestBundle:
    def test_carries_the_cap(self, trace, tiny_model):
        data = write_bundle(bundle_of(tiny_model("gemma2"), trace))
        read = read_bundle(data).trace
        assert [call.softcap for call in read.layers["decoder"]] == [CAP] * 3
        np.testing.assert_array_equal(read.scores(**AT), trace.scores(**AT))
        assert json.loads(files_of(data)[PROVENANCE])["version"] == 5  # which older readers refuse

    def test_carries_the_caps_of_layers_of_which_some_have_none(self, trace, tiny_model):
        first, *others = trace.layers["decoder"]
        mixed = replace(trace, layers={"decoder": (replace(first, softcap=None), *others)})
        gemma = tiny_model("gemma2")
        read = read_bundle(write_bundle(replace(bundle_of(gemma, trace), trace=mixed))).trace
        assert [call.softcap for call in read.layers["decoder"]] == [None, CAP, CAP]

    @pytest.mark.parametrize("softcaps", [[CAP], [CAP, -1.0, CAP], [0.0, CAP, CAP]])
    def test_of_a_wrong_number_of_caps_or_one_that_is_not_above_0_is_refused(
        self, softcaps, trace, tiny_model
    ):
        data = write_bundle(bundle_of(tiny_model("gemma2"), trace))
        wrong = with_document(
            data, lambda document: document["attention"]["decoder"].update(softcap=softcaps)
        )
        with pytest.raises(BundleError, match="softcap"):
            read_bundle(wrong)

    def test_without_one_says_nothing_of_it(self, tiny_model):
        model = tiny_model("llama")
        document = json.loads(files_of(write_bundle(bundle_of(model, model.trace("the door"))))[PROVENANCE])
        assert "softcap" not in document["attention"]["decoder"]


def test_verification_compares_the_scores_with_what_the_softmax_gets(trace, tiny_model):
    model = tiny_model("gemma2")
    check = attnviz.verify(model, trace).check("scores")
    assert check.passed
    assert check.differences["decoder"].shape == (3, 6)
    call = trace.attention(1)
    wrong = trace.with_layer(replace(call, softcap=None))
    failed = {failing.name for failing in attnviz.verify(model, wrong).failed}
    assert {"scores", "attention weights"} <= failed
