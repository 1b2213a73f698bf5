"""Why divide by the square root of d_k: what is shown are the model's numbers under the scale that is chosen."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    facts,
    figure,
    notices,
    numbers,
    open_page,
    shown,
    unescaped,
)

PAGE = "pages/scaling.py"
SENTENCES = (DOOR, "The committee that met on Monday was small.")
HEADS = ((3, 1), (0, 5), (5, 11))


def words(at) -> str:
    """Words of the page, without Markdown's escapes."""
    return " ".join(unescaped(element.value) for element in [*at.markdown, *at.caption, *at.info])


def lines(at) -> list[tuple[float, ...]]:
    """Scale, entropy, largest weight and norm of each line of numbers: the model's, not scaled, and the reader's own."""
    bullets = [line for part in at.markdown for line in part.value.splitlines() if line.startswith("- **")]
    rows = [numbers for numbers in (facts(bullet).numbers for bullet in bullets) if len(numbers) == 4]
    return [(float(scale), share(entropy), share(weight), norm(j)) for scale, entropy, weight, j in rows]


def share(written: str) -> float:
    return float(written.removesuffix("%")) / 100


def norm(written: str) -> float:
    """A norm as it is written: 0.152, 2.3 × 10⁻⁸ or 10⁻³."""
    factor, _, exponent = written.rpartition("10") if "⁻" in written else (written, "", "0")
    digits = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    return float(factor.removesuffix("\u00a0×\u00a0") or 1) * 10.0 ** int(exponent.translate(digits))


def expected(products: np.ndarray, scale: float) -> tuple[float, ...]:
    """The same, written out in float64."""
    raised = np.exp(scale * (products - products.max()))
    weights = raised / raised.sum()
    jacobian = np.diag(weights) - np.outer(weights, weights)
    return scale, stats.entropy(weights, base=len(weights)), weights.max(), np.linalg.norm(jacobian)


@pytest.mark.parametrize("place", HEADS, ids=str)
@pytest.mark.parametrize("text", SENTENCES)
def test_the_numbers_are_the_models(text, place, embedded):
    at = open_page(PAGE, text=text, layer=place[0], head=place[1], query=4, scale=2)
    assert_no_exception(at)
    trace = embedded.trace(text)
    query, key = (of(*place).astype(np.float64) for of in (trace.query, trace.key))
    products = query @ key.T
    for (scale, *drawn), wanted in zip(lines(at), (1 / math.sqrt(32), 1.0, 2.0), strict=True):
        assert scale == pytest.approx(wanted, rel=5e-3)
        _, *row = expected(products[4], wanted)
        assert drawn[:2] == pytest.approx(row[:2], abs=1e-3)  # as they are rounded
        assert drawn[2] == pytest.approx(row[2], abs=6e-4, rel=0.06)
    for name, at_mark in (("entropy", 0), ("largest", 1), ("jacobian", 2)):
        [row] = [
            curve
            for curve in figure(at, f"sharp_{name}")["data"]
            if curve["mode"] == "lines" and "width" in curve["line"] and curve["name"] == "this row"
        ]
        for scale, height in zip(numbers(row["x"]), numbers(row["y"]), strict=True):
            assert height == pytest.approx(expected(products[4], scale)[1 + at_mark], abs=1e-5)
    [norms] = [facts(line.value).numbers for line in at.markdown if line.value.startswith("Over all ")]
    of_head = [
        np.mean([expected(product, scale)[3] for product in products]) for scale in (1 / math.sqrt(32), 2.0)
    ]
    [random] = [
        curve for curve in figure(at, "sharp_jacobian")["data"] if curve.get("line", {}).get("dash") == "dash"
    ]
    x, y = numbers(random["x"]), numbers(random["y"])
    of_random = [y[np.abs(x - scale).argmin()] for scale in (1 / math.sqrt(32), 1)]
    written = [norm(number) for number in norms if not number.endswith("%")]
    for wanted in (*of_head, *of_random):
        assert any(part == pytest.approx(wanted, rel=0.06, abs=6e-4) for part in written), (wanted, written)
    variance = f"{products.var():.4g}"
    assert facts(captions(at)).has(str(products.size), "32", variance, "2")  # pairs, dimensions, the scale
    bars = (
        numbers(figure(at, "spread_model")["data"][0]["y"]),
        numbers(figure(at, "spread_model")["data"][0]["width"]),
    )
    assert (bars[0] * bars[1]).sum() == pytest.approx(1)


def test_a_scale_is_chosen_by_its_slider():
    at = open_page(PAGE)
    assert len(lines(at)) == 2
    at.select_slider(key="field_scale").set_value(4.0).run()
    assert lines(at)[2][0] == 4
    assert shown(at)["scale"] == "4"
    at.select_slider(key="field_d_k").set_value(256).run()
    assert ("256",) in [facts(line.value).numbers for line in at.markdown]  # dimensions of random vectors
    assert facts(captions(at)).has("256", "4,096")  # what the formula says, times 4²
    first = numbers(figure(at, "sharp_entropy")["data"][0]["y"])
    at.number_input(key="field_seed").set_value(1).run()
    assert "seed 1." in words(at)
    assert not np.allclose(first, numbers(figure(at, "sharp_entropy")["data"][0]["y"]))
    at.number_input(key="field_head").set_value(2).run()
    assert lines(at)[2][0] == 4
    assert_no_exception(at)


def test_what_is_said_of_the_scale_is_a_formula():
    at = open_page(PAGE)
    assert any(r"$\sqrt{d_k}$" in element.value for element in at.markdown)


def test_a_link_is_met_by_the_nearest_scale_and_size():
    at = open_page(PAGE, scale=0.3, d_k=100)
    assert at.select_slider(key="field_scale").value == pytest.approx(2**-1.5)
    assert at.select_slider(key="field_d_k").value == 128
    beyond = open_page(PAGE, scale=1e9, d_k=0)
    assert (beyond.select_slider(key="field_scale").value, beyond.select_slider(key="field_d_k").value) == (
        16,
        1,
    )
    assert len(notices(beyond)) == 2
    assert "with 1 dimension " in words(beyond).replace("**", " ")


def test_random_rows_have_as_many_keys_as_the_row():
    at = open_page(PAGE, text=DOOR, d_k=64)
    [dashed] = [
        curve for curve in figure(at, "sharp_entropy")["data"] if curve.get("line", {}).get("dash") == "dash"
    ]
    heights = numbers(dashed["y"])
    assert heights[0] == pytest.approx(1, abs=0.003)
    assert heights[-1] < 0.2


def test_what_overflows_is_shown_as_such(embedded):
    at = open_page(PAGE, text=DOOR, query=7, scale=8)
    row = embedded.trace(DOOR).scores(3, 1)[7].astype(np.float64) * math.sqrt(32)
    table = at.dataframe[0].value
    assert table["scale"].tolist() == [
        *["0.177, the model’s"] * 2,
        *["1, not scaled"] * 2,
        *["8, yours"] * 2,
    ]
    for number, (scale, kind) in enumerate(
        (scale, kind) for scale in (32**-0.5, 1.0, 8.0) for kind in (np.float32, np.float16)
    ):
        cells = table.iloc[number]
        assert cells["numbers"] == np.dtype(kind).name
        largest = math.exp(scale * row.max())
        fits = largest < float(np.finfo(kind).max)
        assert (cells["its exponential"] == "inf") == (not fits)
        assert (cells["its weight"] == "nan") == (not fits)
        weight = expected(row, scale)[2]
        tolerance = 0.02 if kind is np.float16 else 2e-3  # of scores up to 188, whose float16 are 1/8 apart
        if scale < 8 or kind is np.float32:
            assert float(cells["weight, largest subtracted"]) == pytest.approx(weight, abs=tolerance)
    note, *_ = (line.value for line in at.markdown if "float16" in line.value)
    assert re.findall(r"(float\d+)\D+([\d.]+\d|\d)", note) == [
        *[("float16", "1"), ("float32", "8"), ("float16", "8")],  # what breaks under these scales
        *[("float32", f"{88.7228 / row.max():.3g}"), ("float16", f"{11.0899 / row.max():.3g}")],  # from here
    ]


@pytest.mark.parametrize(
    ("family", "kind", "second", "query", "seen"),
    [
        ("gpt2", "decoder", "", 0, 1),
        ("gpt2", "decoder", "", 2, 3),
        ("bart", "cross", "a door", 1, 5),
        ("t5", "decoder", "a door", 1, 2),
    ],
)
def test_other_kinds(family, kind, second, query, seen, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(family)))
    from attnviz.model.catalogue import offers

    own = [offer.name for offer in offers() if family in offer.name][-1]
    at = open_page(PAGE, model=own, text="the cat sat", second=second, kind=kind, query=query)
    assert_no_exception(at)
    assert [element.value for element in at.error] == []
    [listed] = [line.value.splitlines() for line in at.markdown if "\n- **" in line.value]
    assert facts(listed[0]).numbers[-1] == str(seen)  # keys that the query sees
    assert facts(listed[-1]).numbers[0] == f"{100 * float(seen > 1):.1f}%"  # entropy of equal weights
    is_told = any(facts(line.value).numbers[-2:] == ("1", "1") for line in at.caption)
    assert is_told == (family == "t5")  # which multiplies with 1 and not with 1 / sqrt(d_k)
