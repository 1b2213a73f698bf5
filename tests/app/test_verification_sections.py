"""The page Verification, of reports that are written down, and a row of numbers that is worked out again."""

import math

import numpy as np
import pytest

from attnviz.figures.numbers import power_text
from attnviz.records import VerificationReport
from tests import small_records
from tests.app.screen import facts, figure, numbers, unescaped
from tests.app.views import LABELS, drawn_of, trace_of, view_of
from ui.rooms.verification import comparisons, examples, grid, row
from ui.rooms.verification.comparisons import title


def report_of(*, passes: bool = True) -> VerificationReport:
    big = 1e-6 if passes else 3e-5
    checks = (
        small_records.check([[0.0]], name="tokens"),
        small_records.check([[0.0]], 0.0, name="labels"),
        small_records.check([[1e-6, big, 2e-6], [0.0, 5e-7, 0.0]], name="attention weights"),
        small_records.check([[2.5e-6], [1e-7]], name="output after W_O"),
        small_records.check([[0.0, 0.0], [0.0, 0.0]], name="queries"),
    )
    return VerificationReport(
        checks=checks, provenance=small_records.PROVENANCE, not_compared={"mask": "It has none."}
    )


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("passes", [True, False])
def test_every_comparison_is_a_row(recorded, passes, monkeypatch):
    report = report_of(passes=passes)
    monkeypatch.setattr(comparisons, "report_on", lambda selection: (report, recorded))
    view = view_of(trace_of(0))
    at = drawn_of(view, lambda: comparisons.checks(view))
    table = at.table[0].value
    assert len(table) == 5
    big = 2e-6 if passes else 3e-5
    place = ", layer 0, head 2" if passes else ", layer 0, head 1"
    for (_, line), difference, where, tolerance in zip(
        table.iterrows(),
        [
            "bit-identical",
            "0",
            f"{power_text(big)}{place}",
            f"{power_text(2.5e-6)}, layer 0",
            "bit-identical",
        ],
        [0, 1, 2, 3, 4],
        [1e-5, 0.0, 1e-5, 1e-5, 1e-5],
        strict=True,
    ):
        assert line["largest difference"].replace("\\", "") == difference
        assert line["tolerance"] == power_text(tolerance)
        name = report.checks[where].name
        assert line["compared"].startswith(f"**{name[0].upper()}{name[1:]}.** {comparisons.WHAT[name]}")
        is_good = passes or where != 2
        assert ("passed" in line["result"]) == is_good and ("failed" in line["result"]) != is_good
        assert ("recorded" in line["result"]) == recorded
        assert (":red[" in line["result"]) != is_good
        assert (":green[" in line["result"]) == (is_good and not recorded)
    captions = [unescaped(element.value) for element in at.caption]
    assert (captions[0] == comparisons.SHARED) == (not recorded)
    assert any(
        caption.startswith("**Mask** are not compared") and "It has none." in caption for caption in captions
    )
    assert any(
        caption.startswith("**Tokens, labels, attention weights, output after W_O, queries.** float32")
        for caption in captions
    )
    assert "m, revision r, float32; torch 2." in captions[-1]
    first = at.markdown[0].value
    assert first.startswith(f"**{comparisons.RECORDED}") == recorded
    if recorded:
        assert facts(first).numbers[-2:] == (("5", "5") if passes else ("4", "5"))


def test_a_check_of_another_name_has_its_reason_in_its_row(monkeypatch):
    check = small_records.check([[0.5]], 1.0, name="something")
    report = VerificationReport(checks=(check,), provenance=small_records.PROVENANCE)
    assert comparisons._reasons(report) == {}
    monkeypatch.setattr(comparisons, "report_on", lambda selection: (report, True))
    view = view_of(trace_of(0))
    at = drawn_of(view, lambda: comparisons.checks(view))
    assert at.table[0].value["compared"][0] == "**Something.** float32"


@pytest.mark.parametrize("unit", ["weight", "share of the largest"])
def test_what_a_difference_is_a_share_of(unit):
    from dataclasses import replace

    check = replace(small_records.check([[1e-6, 2e-6]]), unit=unit)
    words = comparisons._largest(check)
    assert words.replace("\\", "") == (
        f"{power_text(2e-6)}{' of the largest' if unit != 'weight' else ''}, layer 0, head 1"
    )


def test_titles():
    assert title("attention mask") == "Attention mask" and title("W_O x") == "W_O x"


@pytest.mark.parametrize("recorded", [False, True])
def test_one_comparison_in_every_head(recorded, monkeypatch):
    monkeypatch.setattr(grid, "report_on", lambda selection: (report_of(), recorded))
    view = view_of(trace_of(0), layer=1, head=1)
    at = drawn_of(view, lambda: grid.grid(view))
    box = at.selectbox(key="compared")
    assert box.options == ["Attention weights", "Queries"] and box.value == "attention weights"
    sentence = at.markdown[0].value
    assert facts(sentence).heads == ((0, 2),) and facts(sentence).numbers == (power_text(2e-6),)
    assert sentence.endswith(" (as recorded)") == recorded
    [cells] = figure(at, "errors")["data"]
    assert numbers(cells["z"]).shape == (2, 3)
    [frame] = figure(at, "errors")["layout"]["shapes"]
    assert (frame["x0"], frame["x1"], frame["y0"], frame["y1"]) == (0.5, 1.5, 0.5, 1.5)
    assert at.caption[0].value.count("weight") == 1
    box.set_value("queries").run()
    assert at.markdown[0].value.startswith("**Queries are bit-identical in every layer and head**")


@pytest.mark.parametrize("scale", [0.5, 0.25])
@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("bundle", ["", "0" * 64])
def test_a_row_from_scores_to_weights(scale, softcap, has_bias, bundle, monkeypatch):
    rng = np.random.default_rng(3)
    bias = rng.integers(-3, 4, (1, 5, 5)).astype(np.float32) if has_bias else None
    allowed = np.ones((1, 5, 5), dtype=bool)
    allowed[0, 2, 3] = False
    trace = trace_of(3, scale=scale, softcap=softcap, bias=bias, allowed=allowed)
    theirs = trace.layer_weights(1) + np.float32(1e-3)
    monkeypatch.setattr(row.cache, "reference_weights", lambda source, layer, kind: theirs)
    view = view_of(trace, bundle=bundle)
    at = drawn_of(view, lambda: row.row(view))
    query, keys = trace.query(1, 2)[2], trace.key(1, 2)
    scores = []
    for key in range(5):
        scaled = scale * math.fsum(float(a) * float(b) for a, b in zip(query, keys[key], strict=True))
        capped = scaled if softcap is None else softcap * math.tanh(scaled / softcap)
        capped += 0.0 if bias is None else float(bias[0, 2, key])
        scores.append(capped if key != 3 else -math.inf)
    raised = [math.exp(score - max(scores)) for score in scores]
    total = math.fsum(raised)
    title_ = facts(at.markdown[0].value)
    assert title_.quoted == ("door",) and title_.heads == ((1, 2),) and title_.numbers == ("2",)
    caption = at.caption[0].value
    assert f"Here i = 2, the row's largest score m is {max(scores):.4f}" in caption
    assert f"exponentials sum to {total:.4f} and the weights to 1.000000" in caption
    assert ("0.5 is 1 / √4" in caption) == (scale == 0.5)
    latex = at.latex[0].value
    assert f"{scale:.4g}" in latex and ("b_{ij}" in latex) == has_bias and ("tanh" in latex) == bool(softcap)
    table = at.dataframe[0].value
    assert table["key"].tolist() == [f"{at_}  {label}" for at_, label in enumerate(LABELS)]
    assert table["score s"].tolist() == pytest.approx(scores, rel=1e-5)
    assert table["exp(s − m)"].tolist() == pytest.approx(raised, rel=1e-5)
    assert table["ours"].tolist() == pytest.approx([exponential / total for exponential in raised], rel=1e-5)
    assert ("the model's" in table.columns) == (not bundle)
    if not bundle:
        assert table["the model's"].tolist() == theirs[2, 2].tolist()
        assert table["difference"].tolist() == ["10⁻³"] * 5
    else:
        assert "does not hold the model" in at.caption[1].value


def test_a_row_of_two_texts_names_the_query_of_one_and_the_keys_of_the_other():
    view = view_of(trace_of(3, kind="cross", targets=["a", "b", "c"]), bundle="0" * 64)
    at = drawn_of(view, lambda: row.row(view))
    assert facts(at.markdown[0].value).quoted == ("c",)
    assert at.dataframe[0].value["key"].tolist() == [f"{at_}  {label}" for at_, label in enumerate(LABELS)]


def test_a_query_that_sees_no_key():
    allowed = np.ones((1, 5, 5), dtype=bool)
    allowed[0, 2] = False
    view = view_of(trace_of(3, allowed=allowed), bundle="0" * 64)
    at = drawn_of(view, lambda: row.row(view))
    assert "Here i = 2; this query may see no key" in at.caption[0].value
    assert at.dataframe[0].value["exp(s − m)"].tolist() == [0.0] * 5


def test_examples_that_passed_are_counted():
    rows = [{"passed": "yes"}, {"passed": "**no**"}, {"passed": "yes"}]

    def draw() -> None:
        examples.of_session(examples.Verified).by_model["m"] = rows
        examples.every_preset(view)

    view = view_of(trace_of(0))
    at = drawn_of(view, draw)
    assert at.markdown[0].value == "**2 of 3 passed.**" and len(at.table[0].value) == 3
    other = view_of(trace_of(0), model="n")

    def draw_another() -> None:
        examples.of_session(examples.Verified).by_model["m"] = rows
        examples.every_preset(other)

    assert not drawn_of(other, draw_another).table
