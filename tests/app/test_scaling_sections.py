"""The page Scaling, with products drawn at random: curves, histograms, tables and sentences are worked out again."""

import csv
import io
import math
from dataclasses import replace
from statistics import mean
from types import SimpleNamespace

import numpy as np
import pytest

from attnviz.figures.numbers import share_text
from attnviz.figures.scaling import draw_sharpness, draw_spread, variance_text
from attnviz.figures.theme import LIGHT
from attnviz.lessons.scaling import SCALES, Products, Sharpness, products_of
from tests.app.screen import facts, figure, numbers
from tests.app.views import drawn_of, trace_of, view_of, whole
from tests.drawn_parts import PartOfView
from ui.rooms.how_it_works.scaling import curves as curves_section
from ui.rooms.how_it_works.scaling import spread as spread_section
from ui.rooms.how_it_works.scaling.chosen import Chosen, controls, nearest
from ui.rooms.how_it_works.scaling.curves import curves
from ui.rooms.how_it_works.scaling.numbers import norm_text, ratio
from ui.rooms.how_it_works.scaling.overflow import overflow, written
from ui.rooms.how_it_works.scaling.spread import spread


def softmax(row: list[float]) -> list[float]:
    counts = [math.exp(value - max(row)) for value in row]
    return [count / math.fsum(counts) for count in counts]


def sharp(row: list[float]) -> tuple[float, float, float]:
    """Entropy as a share of ln n, largest weight, and the Frobenius norm of diag(w) - w wᵀ."""
    weights, n = softmax(row), len(row)
    nats = -math.fsum(weight * math.log(weight) for weight in weights if weight)
    cells = [
        ((weight if at == there else 0.0) - weight * other) ** 2
        for at, weight in enumerate(weights)
        for there, other in enumerate(weights)
    ]
    return nats / math.log(n) if n > 1 else 0.0, max(weights), math.sqrt(math.fsum(cells))


def chosen_of(
    seed: int, *, scale: float = 0.125, d_k: int = 16, query: int = 3, own: float = 0.5, **changes: object
) -> Chosen:
    trace = trace_of(seed, kind="decoder", **{"scale": own} | changes)
    view = view_of(trace, query=query)
    return Chosen(view=view, products=products_of(trace, 1, 2), scale=scale, d_k=d_k)


def row_of(products: Products, query: int, scale: float) -> list[float]:
    scores = []
    for product, bias, seen in zip(
        products.products[query], products.bias[query], products.allowed[query], strict=True
    ):
        if seen:
            scaled = scale * float(product)
            cap = products.softcap
            scores.append((scaled if cap is None else cap * math.tanh(scaled / cap)) + float(bias))
    return scores


RANDOM = np.random.default_rng(7)


@pytest.fixture
def random_curves(monkeypatch):
    """What stands for rows of random vectors: another curve for each number, by the scale."""

    def made(d_k, n_key, seed, scales):
        assert (d_k, n_key, seed) == (16, 4, 0)
        at = np.array(scales)
        return Sharpness(entropy=1 / (1 + at), largest=at / (1 + at), jacobian=at / (2 + at) ** 2)

    monkeypatch.setattr(curves_section.cache, "random_sharpness", made)


@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("scale", [0.125, 0.5, 1.0])
def test_curves_of_a_row(scale, softcap, random_curves):
    chosen = chosen_of(1, scale=scale, softcap=softcap)
    made = []
    at = drawn_of(chosen.view, lambda: made.append(curves(chosen)))
    scales = sorted({*SCALES, 0.5, scale, 0.25})
    rows = [sharp(row_of(chosen.products, 3, scale)) for scale in scales]
    random = [(1 / (1 + scale), scale / (1 + scale), scale / (2 + scale) ** 2) for scale in scales]
    equal = (1.0, 0.25, sharp([0.0] * 4)[2])
    named = {"the model’s": 0.5, "yours": scale} if scale not in (0.5, 1.0) else {"the model’s": 0.5}
    if scale == 1.0:
        named["not scaled"] = 1.0
    for number, key in enumerate(("entropy", "largest", "jacobian")):
        drawn = figure(at, f"sharp_{key}")
        dashed, diamond, solid, dots = drawn["data"]
        assert numbers(solid["x"]).tolist() == pytest.approx(scales)
        assert numbers(solid["y"]).tolist() == pytest.approx([row[number] for row in rows], abs=1e-7)
        assert numbers(dashed["y"]).tolist() == pytest.approx([row[number] for row in random])
        assert numbers(diamond["x"]) == pytest.approx([0.25])
        assert numbers(diamond["y"]) == pytest.approx([random[scales.index(0.25)][number]])
        assert numbers(dots["x"]).tolist() == list(named.values())
        assert numbers(dots["y"]).tolist() == pytest.approx(
            [rows[scales.index(named_scale)][number] for named_scale in named.values()], abs=1e-7
        )
        [level] = [shape for shape in drawn["layout"]["shapes"] if shape["y0"] == shape["y1"]]
        assert level["y0"] == pytest.approx(equal[number])
        assert {annotation["text"] for annotation in drawn["layout"]["annotations"]} == {*named}
    caption = at.caption[0].value
    assert facts(caption).quoted == ("##s",)
    assert "4 random keys with 16 dimensions" in caption and "= 0.25." in caption
    assert ("tanh^2(s / 2)" in caption) == (softcap is not None)
    bullets = next(element.value for element in at.markdown if "sees 4 keys" in element.value).splitlines()[
        1:
    ]
    shown = {"The model’s": 0.5, "Not scaled": 1.0}
    if scale not in shown.values():
        shown["Yours"] = scale
    for bullet, (name, shown_scale) in zip(bullets, shown.items(), strict=False):
        entropy, largest, norm = rows[scales.index(shown_scale)]
        assert bullet.startswith(f"- **{name}, scale {shown_scale:.3g}:**")
        assert f"entropy {share_text(entropy)} of ln n, largest weight {share_text(largest)}" in bullet
        assert bullet.endswith(norm_text(norm))
    assert len(bullets) == len(shown) + 1
    [last] = [element.value for element in at.markdown if element.value.startswith("Over all ")]
    other = scale if scale != 0.5 else 1.0
    norms = [
        mean(sharp(row_of(chosen.products, query, used_scale))[2] for query in range(5))
        for used_scale in (0.5, other)
    ]
    of_random = [random[scales.index(number)][2] for number in (0.25, 1.0)]
    assert last.startswith(
        f"Over all 5 queries of this head the norm is {norm_text(norms[0])} on average under the model’s scale and "
        f"{norm_text(norms[1])} under scale {other:.3g}, {ratio(*norms)}."
    )
    assert f"16 dimensions it is {norm_text(of_random[0])} under" in last
    assert last.endswith(f"and {norm_text(of_random[1])} not scaled, {ratio(*of_random)}.")
    lines = list(csv.reader(io.StringIO(made[0]().decode("utf-8-sig"))))
    assert lines[0][0] == "scale" and len(lines[0]) == 7 and len(lines) == 1 + len(scales)
    for line, line_scale, row, drawn_row in zip(lines[1:], scales, rows, random, strict=True):
        assert [float(cell) for cell in line] == pytest.approx(
            [line_scale, *row, *drawn_row], rel=1e-5, abs=1e-7
        )


def test_scales_that_are_named_and_compared():
    """The model's own, none, and the reader's; compared with is the first that differs from the model's."""
    of_model = chosen_of(1, scale=0.5)
    assert of_model.scales == {"The model’s": 0.5, "Not scaled": 1.0} and of_model.other == 1.0
    assert chosen_of(1, scale=0.125).scales == {"The model’s": 0.5, "Not scaled": 1.0, "Yours": 0.125}
    assert chosen_of(1, scale=0.125).other == 0.125
    own = replace(of_model.products, scale=1.0)
    unscaled = Chosen(view=of_model.view, products=own, scale=1.0, d_k=4)
    assert unscaled.scales == {"The model’s": 1.0} and unscaled.other == 0.5  # 1 / √4
    narrow = SimpleNamespace(query=lambda *place: np.zeros((5, 1)))  # 1 / √1 is 1, too
    view = PartOfView(trace=narrow, selection=of_model.view.selection, kind="encoder")
    assert Chosen(view=view, products=own, scale=1.0, d_k=4).other == 0.5
    assert Chosen(view=view, products=replace(own, scale=3.0), scale=3.0, d_k=4).other == 1.0
    assert [chosen_of(1, query=number).n_seen for number in range(5)] == [1, 2, 3, 4, 5]
    assert facts(of_model.token).quoted == ("##s",)


def test_the_nearest_of_some_numbers_is_that_of_the_nearest_ratio():
    assert nearest([1.0, 10.0, 100.0], 40.0) == 100.0 and nearest([1.0, 10.0, 100.0], 30.0) == 10.0
    assert nearest([1.0, 2.0], 0.001) == 1.0


@pytest.mark.parametrize(("scale", "d_k"), [(None, None), (0.7, 5), (0.49, 1000)])
def test_sliders_have_the_models_own_numbers_among_others(scale, d_k):
    trace = trace_of(0, query=whole(RANDOM, 4, 5, 6), key=whole(RANDOM, 4, 5, 6), scale=0.3)
    view = view_of(trace, scale=scale, d_k=d_k)
    made = []
    at = drawn_of(view, lambda: made.append(controls(view, products_of(trace, 1, 2))))
    [chosen] = made
    expected = {None: 0.3, 0.7: 2**-0.5, 0.49: 0.5}[scale]
    assert chosen.scale == pytest.approx(expected)
    assert chosen.d_k == {None: 6, 5: 4, 1000: 1024}[d_k] or (d_k == 5 and chosen.d_k == 6)
    scales, sizes = at.select_slider
    written_ = [float(option.split()[0]) for option in scales.options]
    assert written_ == sorted(written_) and len(written_) == len(SCALES) + 1
    assert [option for option in scales.options if "model" in option] == ["0.3 (the model’s)"]
    assert [int(option.split()[0]) for option in sizes.options] == sorted(
        [6, *(2**number for number in range(11))]
    )
    assert [option for option in sizes.options if "this head" in option] == ["6 (this head)"]


@pytest.mark.parametrize("changes", [{}, {"own": 0.25}, {"softcap": 2.0}])
def test_how_products_spread(changes, monkeypatch):
    chosen = chosen_of(2, **changes)
    random = whole(RANDOM, 6, 5)
    monkeypatch.setattr(spread_section.cache, "random_products", lambda d_k, n_key, seed: random)
    at = drawn_of(chosen.view, lambda: spread(chosen))
    pairs = [float(chosen.products.products[query, key]) for query in range(5) for key in range(query + 1)]
    for key, products in (("spread_random", random.ravel().tolist()), ("spread_model", pairs)):
        drawn = figure(at, key)
        middle = mean(products)
        variance = mean((product - middle) ** 2 for product in products)
        titles = [annotation["text"] for annotation in drawn["layout"]["annotations"]]
        assert titles == [
            f"q · k: variance {variance_text(variance)}",
            f"q · k × 0.125: variance {variance_text(variance / 64)}",
        ]
        bars = [trace for trace in drawn["data"] if trace["type"] == "bar"]
        for bar, factor in zip(bars, (1.0, 0.125), strict=True):
            x, y, width = (numbers(bar[name]) for name in ("x", "y", "width"))
            counts = [
                sum(a - w / 2 - 1e-9 <= factor * product < a + w / 2 - 1e-9 for product in products)
                for a, w in zip(x, width, strict=True)
            ]
            counts[-1] += len(products) - sum(counts)  # the largest is in the last bin
            assert (y * width * len(products)).tolist() == pytest.approx(counts)
        assert len([trace for trace in drawn["data"] if trace["type"] == "scatter"]) == 2 * (
            key == "spread_random"
        )
    of_model = at.caption[1].value
    assert (f"multiplies with {chosen.products.scale:.3g}" in of_model) == (changes == {"own": 0.25})
    assert ("2 tanh(s / 2)" in of_model) == ("softcap" in changes)
    assert f"layer {chosen.view.selection.layer}, head 2" in next(
        element.value for element in at.markdown if element.value.startswith("**This model")
    )
    curve = figure(at, "spread_random")["data"][1]
    x, y = numbers(curve["x"]), numbers(curve["y"])
    assert y.tolist() == pytest.approx(
        [math.exp(-product * product / 32) / math.sqrt(32 * math.pi) for product in x]
    )


def test_a_head_that_sees_nothing_has_no_products():
    chosen = chosen_of(2)
    none = replace(chosen.products, allowed=np.zeros((5, 5), dtype=bool))
    blind = Chosen(view=chosen.view, products=none, scale=0.5, d_k=4)
    at = drawn_of(chosen.view, lambda: spread(blind))
    assert len(at.info) == 1
    assert [element.key for element in at.get("bidi_component")] == ["spread_random"]


def test_all_products_alike_are_one_bar():
    bars, _ = draw_spread(np.full(9, 2.0, dtype=np.float32), 0.5).data
    assert (bars.y * bars.width).sum() == pytest.approx(1) and bars.x[0] > 1.4 and bars.x[-1] < 2.6


LIMITS = {"float32": math.log(float(np.finfo(np.float32).max)), "float16": math.log(65504)}


@pytest.mark.parametrize("factor", [1.0, 8.0, 200.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_where_exponentials_overflow(factor, sign):
    products = Products(
        products=np.array([[1.0, 0.5, -2.0, 9.0]], dtype=np.float32) * np.float32(factor * sign),
        bias=np.zeros((1, 4), dtype=np.float32),
        allowed=np.array([[True, True, True, False]]),
        scale=0.5,
    )
    scales = {"The model’s": 0.5, "Not scaled": 1.0}
    view = view_of(trace_of(0))
    at = drawn_of(view, lambda: overflow(products, 0, "“cat”", scales))
    table = at.dataframe[0].value
    broken = []
    place = 0
    for name, scale in scales.items():
        row = [scale * float(product) for product in products.products[0, :3]]
        for kind, dtype in (("float32", np.float32), ("float16", np.float16)):
            line = table.iloc[place]
            place += 1
            assert (line["scale"], line["numbers"]) == (f"{scale:.3g}, {name.lower()}", kind)
            assert line["largest score"] == written(dtype(max(row)))
            assert (line["its exponential"] == "inf") == (max(row) > LIMITS[kind])
            shares = softmax(row)
            assert float(line["weight, largest subtracted"]) == pytest.approx(max(shares), abs=2e-3)
            sums = math.fsum(math.exp(value - max(row)) for value in row)
            assert float(line["sum, largest subtracted"]) == pytest.approx(sums, abs=2e-3)
            if max(row) > LIMITS[kind]:
                broken.append(f"{kind} under scale {scale:.3g}")
                assert line["its weight"] == "nan" and line["sum of all"] == "inf"
            elif max(row) < LIMITS[kind] - 2 and max(row) > 0:
                assert float(line["its weight"]) == pytest.approx(max(shares), abs=2e-3)
    sentence = at.markdown[-1].value
    assert sentence.startswith("The row of “cat”")
    assert ("Nothing breaks here" in sentence) == (not broken)
    if broken:
        assert f"it breaks in {', '.join(broken)}." in sentence
    highest = max(float(product) for product in products.products[0, :3])
    for kind, limit in LIMITS.items():
        assert f"for {kind} from scale {limit / highest:.3g} on" in sentence
    first = at.markdown[0].value
    assert f"{LIMITS['float32']:.2f}" in first and f"{LIMITS['float16']:.2f}" in first


def test_no_scale_makes_a_row_below_0_overflow():
    products = Products(
        products=np.array([[-1.0, 5.0]], dtype=np.float32),
        bias=np.zeros((1, 2), dtype=np.float32),
        allowed=np.array([[True, False]]),
        scale=0.5,
    )
    at = drawn_of(view_of(trace_of(0)), lambda: overflow(products, 0, "“cat”", {"Yours": 0.5}))
    assert at.markdown[-1].value.count("under no scale") == 2


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (math.inf, "inf"),
        (math.nan, "nan"),
        (0.0, "0.0000"),
        (1e-3, "0.0010"),
        (99999.5, "99,999.5000"),
        (12345.6789, "12,345.6789"),
        (-0.5, "-0.5000"),
    ],
)
def test_numbers_of_a_machine(number, expected):
    assert written(np.float64(number)) == expected


def test_numbers_of_a_machine_in_powers_of_ten():
    assert "10⁵" in written(np.float64(1e5)) and "10⁻⁴" in written(np.float64(9.4e-4))
    assert "10⁻⁴" in written(np.float64(-9.4e-4))


def test_marks_of_a_sharpness():
    """Names of scales stand on the outer sides; the last is the reader's, in the colour of what is selected."""
    scales = np.array([0.25, 1.0, 4.0])
    figure_ = draw_sharpness(
        scales,
        np.array([0.5, 1.0, 0.25]),
        np.array([0.125, 0.25, 2.0]),
        what="entropy",
        even=0.75,
        marks={"the model’s": 0.5, "yours": 4.0},
        random_mark=2.0,
    )
    dots, diamond = figure_.data[3], figure_.data[1]
    assert list(dots.y) == pytest.approx([0.75, 0.25])  # halfway between two scales on a logarithmic axis
    assert list(diamond.y) == pytest.approx([(0.25 + 2.0) / 2])
    assert list(dots.marker.color) == [LIGHT.quiet, LIGHT.picked]
    names = {annotation.text: (annotation.x, annotation.xanchor) for annotation in figure_.layout.annotations}
    assert names["the model’s"] == (pytest.approx(math.log10(0.5)), "right")
    assert names["yours"] == (pytest.approx(math.log10(4.0)), "left")
    lines = [shape for shape in figure_.layout.shapes if shape.x0 == shape.x1]
    assert [line.x0 for line in lines] == [0.5, 4.0]
    low, high = figure_.layout.yaxis.range
    assert low == 0 and 2.0 < high < 2.5
    axis = figure_.layout.xaxis
    for value, text in zip(axis.tickvals, axis.ticktext, strict=True):
        assert (1 / float(text[2:]) if text.startswith("1/") else float(text)) == value
    assert axis.type == "log" and axis.range[0] < math.log10(0.25) < math.log10(4) < axis.range[1]
    assert SimpleNamespace(what=figure_.layout.title.text).what == "entropy"
