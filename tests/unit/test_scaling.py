"""Why scores are scaled: against numbers on paper, torch's own derivatives and scipy's entropy."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from attnviz.figures.scaling import draw_sharpness, draw_spread, variance_text
from attnviz.figures.theme import LIGHT
from attnviz.lessons.scaling import (
    SCALES,
    Products,
    exponentials,
    largest_argument,
    products_of,
    random_products,
    sharpness,
)


@pytest.mark.parametrize(
    ("family", "kind"),
    [("bert", "encoder"), ("gpt2", "decoder"), ("llama", "decoder"), ("t5", "decoder"), ("bart", "cross")],
)
def test_products_become_the_model_s_scores(family, kind, tiny_model):
    model = tiny_model(family)
    pair = () if family in ("bert", "gpt2", "llama") else ("a door",)
    trace = model.trace("the cat sat on a mat", *pair)
    for head in range(trace.n_heads(1, kind)):
        products, expected = products_of(trace, 1, head, kind), trace.scores(1, head, kind)
        np.testing.assert_allclose(products.scores(products.scale), expected, rtol=1e-4, atol=1e-5)  # float32
        seen = np.isfinite(expected)
        assert len(products.seen) == seen.sum()
        row = products.row(1, np.array([[products.scale], [0.0]]))
        np.testing.assert_allclose(row[0], expected[1, seen[1]], rtol=1e-4, atol=1e-5)
        if family == "t5":  # what is added after the scaling stays whatever the scale
            np.testing.assert_allclose(row[1], products.bias[1, seen[1]])
            assert products.bias.any()
        else:
            assert not row[1].any()
    if kind == "decoder":
        assert products_of(trace, 1, 0, kind).row(0, 1.0).shape == (1,)


@pytest.mark.parametrize("n_key", [1, 2, 3, 17])
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 8.0])
def test_against_torch_and_scipy(n_key, spread):
    scores = spread * np.random.default_rng(n_key).standard_normal(n_key)
    sharp = sharpness(scores)
    jacobian = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, dim=0), torch.tensor(scores))
    assert float(sharp.jacobian) == pytest.approx(float(jacobian.norm()), rel=1e-9, abs=1e-12)
    weights = torch.softmax(torch.tensor(scores), dim=0).numpy()
    assert float(sharp.entropy) == pytest.approx(stats.entropy(weights, base=max(n_key, 2)), abs=1e-12)
    assert float(sharp.largest) == pytest.approx(weights.max())


def test_on_paper():
    even = sharpness(np.zeros(8))
    assert (float(even.entropy), float(even.largest)) == pytest.approx((1, 1 / 8))
    assert float(even.jacobian) == pytest.approx(math.sqrt(7) / 8)  # 8 of (1/8 x 7/8)^2 and 56 of (1/64)^2
    tied = sharpness(np.array([3.0, -900.0, 3.0]))
    expected = (math.log(2, 3), 0.5, 0.5)  # two of three keys share all the weight
    assert (float(tied.entropy), float(tied.largest), float(tied.jacobian)) == pytest.approx(expected)
    alone = sharpness(np.array([5.0]))
    assert (float(alone.entropy), float(alone.largest), float(alone.jacobian)) == (0, 1, 0)


def test_next_to_nothing_is_not_rounded_away():
    rest = math.exp(-60)  # of two weights 1 - r and r every derivative is r (1 - r), up to its sign
    assert float(sharpness(np.array([60.0, 0.0])).jacobian) == pytest.approx(2 * rest, rel=1e-9, abs=0)


def test_keys_that_may_not_be_seen_do_not_count():
    scores = np.array([0.3, 1.2, -0.5])
    masked = np.array([[0.3, -np.inf, 1.2, -0.5, -np.inf]])
    for name in ("entropy", "largest", "jacobian"):
        unmasked, other = getattr(sharpness(scores), name), getattr(sharpness(masked), name)
        np.testing.assert_allclose(other, [unmasked])


@pytest.mark.parametrize("d_k", [1, 5, 64, 512])
def test_random_products_have_the_variance_of_the_paper(d_k):
    products = random_products(d_k, seed=3)
    assert products.shape == (256, 256)
    # The vectors' lengths decide: |q|^2 / d_k has variance 2 / d_k, on both sides, in 256 draws each.
    bound = 4 * math.sqrt(2 * 2 / (256 * d_k)) + 0.02
    assert products.var() / d_k == pytest.approx(1, abs=bound)
    assert products.mean() == pytest.approx(0, abs=4 * math.sqrt(d_k) / 256)
    np.testing.assert_array_equal(products, random_products(d_k, seed=3))
    assert not np.allclose(products, random_products(d_k, seed=4))
    more = random_products(d_k, n_key=300, seed=3)
    assert more.shape == (256, 300)
    np.testing.assert_allclose(more[:, :256], products, rtol=1e-4, atol=1e-4)


def test_scales_have_every_root_of_a_power_of_two():
    for power in range(11):
        assert any(math.isclose(scale, (2**power) ** -0.5) for scale in SCALES)


def test_the_largest_arguments():
    assert largest_argument(np.float16) == pytest.approx(math.log(65504))
    assert largest_argument(np.float32) == pytest.approx(math.log((2 - 2**-23) * 2.0**127))


class TestExponentials:
    def test_overflow(self):
        softmax = exponentials(np.array([11.0, 12.0]), np.float16, subtract=False)  # e^12 is 162,755
        assert softmax.exponentials.dtype == np.float16
        assert float(softmax.exponentials[0]) == pytest.approx(math.exp(11), rel=1e-3)
        assert np.isinf(softmax.exponentials[1]) and np.isinf(softmax.total)
        assert softmax.weights[0] == 0 and np.isnan(softmax.weights[1])
        wide = exponentials(np.array([11.0, 12.0]), np.float32, subtract=False)
        assert wide.exponentials.dtype == np.float32
        np.testing.assert_allclose(wide.weights, [1 / (1 + math.e), math.e / (1 + math.e)], rtol=1e-5)
        assert np.isnan(exponentials(np.array([88.0, 89.0]), np.float32, subtract=False).weights[1])

    def test_a_sum_overflows_before_its_parts(self):
        softmax = exponentials(np.array([11.0, 11.0]), np.float16, subtract=False)
        assert np.isfinite(softmax.exponentials).all() and np.isinf(softmax.total)
        assert softmax.weights.tolist() == [0, 0]

    def test_underflow(self):
        softmax = exponentials(np.array([-20.0, -21.0]), np.float16, subtract=False)  # least is 6e-8, e^-16.6
        assert softmax.total == 0 and np.isnan(softmax.weights).all()

    @pytest.mark.parametrize("scores", [[11.0, 12.0], [-20.0, -19.0], [500.0, 501.0]])
    @pytest.mark.parametrize(("dtype", "relative"), [(np.float16, 2e-3), (np.float32, 1e-6)])
    def test_the_largest_taken_off(self, scores, dtype, relative):
        softmax = exponentials(np.array(scores), dtype, subtract=True)
        assert softmax.weights.dtype == dtype
        np.testing.assert_allclose(
            softmax.weights.astype(float), [1 / (1 + math.e), math.e / (1 + math.e)], rtol=relative
        )


def test_histograms_are_densities_and_say_their_variance():
    products = np.array([-4.0, -2, 0, 2, 4, 6, 7], dtype=np.float32)
    figure = draw_spread(products, 0.5, expected=3.0)
    before, curve, after, _ = figure.data
    for bars in (before, after):
        assert (np.array(bars.y) * np.array(bars.width)).sum() == pytest.approx(1)
    assert np.abs(np.array(after.x) * 2).max() == pytest.approx(np.abs(np.array(before.x)).max())
    assert max(curve.y) == pytest.approx(1 / math.sqrt(2 * math.pi * 3))
    assert [annotation.text for annotation in figure.layout.annotations] == [
        f"q · k: variance {products.var():.4g}",
        f"q · k × 0.5: variance {products.var() / 4:.4g}",
    ]


def test_marks_lie_on_the_row():
    scales = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
    row, random = np.array([3.0, 2.0, 1.5, 0.5, 0.1]), np.array([3.0, 2.9, 2.0, 1.0, 0.4])
    figure = draw_sharpness(
        scales, row, random, what="entropy", even=3.1, marks={"today": 0.5, "yours": 2.0}, random_mark=1.0
    )
    [marks] = [
        trace_of_figure
        for trace_of_figure in figure.data
        if trace_of_figure.mode == "markers" and trace_of_figure.name == "this row"
    ]
    assert (list(marks.x), list(marks.y)) == ([0.5, 2.0], [2.0, 0.5])
    [diamond] = [
        trace_of_figure
        for trace_of_figure in figure.data
        if trace_of_figure.mode == "markers" and trace_of_figure.name == "random vectors"
    ]
    assert (list(diamond.x), list(diamond.y)) == ([1.0], [2.0])
    assert [annotation.text for annotation in figure.layout.annotations] == ["today", "yours"]
    assert figure.layout.yaxis.range == (0, pytest.approx(1.08 * 3.1))
    today, yours = figure.layout.annotations
    assert (today.x, today.xanchor) == (pytest.approx(math.log10(0.5)), "right")
    assert (yours.x, yours.xanchor) == (pytest.approx(math.log10(2)), "left")
    assert (today.font.color, yours.font.color) == (LIGHT.quiet, LIGHT.picked) == marks.marker.color
    assert list(figure.layout.xaxis.range) == pytest.approx([math.log10(0.25) - 0.4, math.log10(4) + 0.4])
    ticks = dict(zip(figure.layout.xaxis.ticktext, figure.layout.xaxis.tickvals, strict=True))
    assert ticks == {"1/256": 1 / 256, "1/64": 1 / 64, "1/16": 1 / 16, "1/4": 1 / 4, "1": 1, "4": 4, "16": 16}
    *upright, level = [(shape.x0, shape.x1, shape.y0, shape.y1) for shape in figure.layout.shapes]
    assert upright == [(0.5, 0.5, 0, 1), (2, 2, 0, 1)] and level == (0, 1, 3.1, 3.1)
    lines = [(list(line.x), list(line.y)) for line in figure.data if line.mode == "lines"]
    assert lines == [(scales.tolist(), random.tolist()), (scales.tolist(), row.tolist())]


@pytest.mark.parametrize("product", [0.0, 4.0, 1e18])
def test_products_that_are_all_alike_lie_in_the_middle_of_their_histogram(product):
    """Half a unit to each side, or as far as numbers of that size can be told apart: 4 bars that are 128 apart at 1e18."""
    before, after = draw_spread(np.full(9, product, dtype=np.float32), 0.5).data
    for bars, at in ((before, product), (after, product / 2)):
        room = max(0.5, 4 * float(np.spacing(float(np.float32(at)))))
        assert list(bars.width) == pytest.approx([room / 2] * 4)
        assert list(bars.x) == pytest.approx(
            [float(np.float32(at)) + room / 4 * side for side in (-3, -1, 1, 3)]
        )
        assert math.fsum(height * room / 2 for height in bars.y) == pytest.approx(1)


def test_means_of_several_rows_at_each_scale():
    rows = sharpness(np.log([[[0.5, 0.5], [0.5, 0.5], [0.125, 0.875]]] * 2))
    means = rows.mean()
    nats = -(0.125 * math.log(0.125) + 0.875 * math.log(0.875)) / math.log(2)
    assert means.entropy.tolist() == pytest.approx([(2 + nats) / 3] * 2)
    assert means.largest.tolist() == pytest.approx([1.875 / 3] * 2)
    # of two weights w and 1 - w, all four derivatives are as large as w (1 - w)
    assert means.jacobian.tolist() == pytest.approx([2 * (0.25 + 0.25 + 0.109375) / 3] * 2)


def test_the_largest_score_is_subtracted():
    assert exponentials(np.array([3.0, 5.0, 1.0]), np.float64, subtract=True).scores.tolist() == [-2, 0, -4]


def test_variances_from_1000_on_are_whole_numbers():
    assert [variance_text(number) for number in (999.94, 1000.0, 1000.4, 0.12345)] == [
        "999.9",
        "1,000",
        "1,000",
        "0.1235",
    ]


@pytest.mark.parametrize("n", [3, 40, 5000])
def test_bars_and_the_curve_of_a_histogram(n):
    """One more bar than the root of the number of products, 61 at most; the curve reaches four deviations."""
    products = np.random.default_rng(n).normal(size=n).astype(np.float32)
    for bars, curve, factor in zip(
        *[iter(draw_spread(products, 0.25, expected=4.0).data)] * 2, (1, 0.25), strict=True
    ):
        scores = products.astype(float) * factor
        n_bar = min(61, 1 + math.isqrt(n))
        wide = (scores.max() - scores.min()) / n_bar
        assert list(bars.x) == pytest.approx([scores.min() + (at + 0.5) * wide for at in range(n_bar)])
        assert list(bars.width) == pytest.approx([wide] * n_bar)
        counts = [round(height * wide * n) for height in bars.y]
        assert sum(counts) == n and counts[-1] >= 1 <= counts[0]
        deviation = 2 * factor
        assert (curve.x[0], curve.x[-1], len(curve.x)) == (-4 * deviation, 4 * deviation, 81)
        density = [
            math.exp(-((x / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi)) for x in curve.x
        ]
        assert list(curve.y) == pytest.approx(density)


def test_a_bias_of_a_masked_key_reaches_no_limit():
    products = Products(
        products=np.ones((1, 2), dtype=np.float32),
        bias=np.array([[0, 5]], dtype=np.float32),
        allowed=np.array([[True, False]]),
        scale=1.0,
    )
    assert products.scale_reaching(0, 3.0) == pytest.approx(3.0)
