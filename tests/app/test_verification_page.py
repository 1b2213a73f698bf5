"""The Verification page: its numbers are those of the report and of the trace."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.figures.numbers import power_text
from attnviz.model import verification
from attnviz.model.verification import reference_weights
from attnviz.records import FILE
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    errors,
    facts,
    figure,
    numbers,
    open_page,
    unescaped,
)
from ui.choice.presets import PRESETS
from ui.runtime.remembered import NUMBERS
from ui.words.findings import power


@pytest.fixture
def page():
    return open_page("pages/verification.py")


@pytest.fixture(scope="module")
def report(embedded, door_trace):
    return attnviz.verify(embedded, door_trace)


def test_the_table_is_the_report(page, report):
    table = page.table[0].value
    assert len(table) == len(report.checks) == 13
    for check, (_, row) in zip(report.checks, table.iterrows(), strict=True):
        title = check.name[0].upper() + check.name[1:]
        assert row["compared"].startswith(f"**{title}.** ")
        assert row["largest difference"].startswith(power(check.difference))
        assert row["tolerance"] == power(check.tolerance)
        sentences = [row["compared"]] if check.name == FILE else [element.value for element in page.caption]
        assert any(check.reason in unescaped(sentence) for sentence in sentences)
        assert row["result"] == ":green[:material/check_circle: passed]"


def test_where_a_difference_is_largest_is_said(page, report):
    table = page.table[0].value.set_index("compared")
    [difference] = [
        difference
        for name, difference in table["largest difference"].items()
        if name.startswith("**Attention weights")
    ]
    check = report.check("attention weights")
    shares = check.differences["encoder"] / check.tolerances["encoder"]
    layer, head = np.unravel_index(shares.argmax(), shares.shape)
    assert difference.endswith(f"layer {layer}, head {head}")


def test_the_grid_is_every_layer_and_head(page, report):
    grid = figure(page, "errors")["data"][0]
    check = report.check("attention weights")
    cells = numbers(grid["customdata"])
    np.testing.assert_array_equal(cells[..., 0], report.weight_error)
    np.testing.assert_array_equal(cells[..., 1], check.tolerances["encoder"])
    [outline] = figure(page, "errors")["layout"]["shapes"]
    assert (outline["x0"] + 0.5, outline["y0"] + 0.5) == (1, 3)  # head, layer
    assert any(f"{power(report.max_abs_error)}**" in element.value for element in page.markdown)


def test_the_grid_shows_another_comparison(page, report):
    page.selectbox(key="compared").set_value("values").run()
    cells = numbers(figure(page, "errors")["data"][0]["customdata"])
    np.testing.assert_array_equal(cells[..., 0], report.check("values").differences["encoder"])


def test_a_family_whose_w_o_is_not_known_is_told_so(monkeypatch):
    right, reason = verification.verify, "W_O is not known."

    def without(model, trace):
        report = right(model, trace)
        kept = tuple(
            check for check in report.checks if check.name not in ("norm-based weights", "output after W_O")
        )
        return replace(report, checks=kept, not_compared={"norm-based weights": reason})

    monkeypatch.setattr(verification, "verify", without)
    page = open_page("pages/verification.py", text="A door of another family.")
    [sentence] = [
        unescaped(line.value) for line in page.caption if line.value.startswith("**Norm-based weights**")
    ]
    assert sentence.endswith(reason)


def test_the_row_is_the_trace_s_and_the_model_s(page, embedded, door_trace):
    row = page.dataframe[0].value
    scores, weights = door_trace.scores(3, 1)[7], door_trace.weights(3, 1)[7]
    theirs = reference_weights(embedded, door_trace, 3)[1, 7]

    np.testing.assert_array_equal(row["score s"], scores)
    np.testing.assert_array_equal(row["exp(s − m)"], np.exp(scores - scores.max()))
    np.testing.assert_array_equal(row["ours"], weights)
    np.testing.assert_array_equal(row["the model's"], theirs)
    assert row["difference"].tolist() == [power_text(apart) for apart in np.abs(weights - theirs)]
    assert row["key"][5] == "5  door"
    exponentials = row["exp(s − m)"].to_numpy()
    np.testing.assert_allclose(exponentials / exponentials.sum(), weights, rtol=1e-5)


def test_the_row_of_a_decoder_sees_the_keys_up_to_its_own(checkpoint, monkeypatch):
    folder = checkpoint("gpt2")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    at = open_page("pages/verification.py", model=folder.name, text="the door", query=3, layer=1, head=1)
    row = at.dataframe[0].value
    seen = row["score s"][np.isfinite(row["score s"])]
    assert len(seen) == 4 < len(row)
    assert f"the row's largest score m is {seen.max():.4f}" in captions(at)
    np.testing.assert_allclose(row["exp(s − m)"][:4], np.exp(seen - seen.max()), rtol=1e-6)
    assert (row["exp(s − m)"][4:] == 0).all()


def test_the_row_follows_the_picked_query_and_head(door_trace):
    page = open_page("pages/verification.py", layer=2, head=4, query=5)
    np.testing.assert_array_equal(page.dataframe[0].value["ours"], door_trace.weights(2, 4)[5])
    assert any(
        (named.quoted, named.heads, named.numbers[:1]) == (("door",), ((2, 4),), ("5",))
        for named in (facts(line.value) for line in page.markdown)
    )


def n_passed(page) -> str:
    """How many presets passed, in the bold line that says of how many."""
    bold = [facts(line.value).numbers for line in page.markdown if line.value.startswith("**")]
    [counted] = [numbers[0] for numbers in bold if numbers[1:] == (str(len(PRESETS)),)]
    return counted


@pytest.mark.nightly
def test_every_preset_passes(page):
    assert len(page.table) == 1  # not before it is asked for
    page.button(key="verify_presets").click().run()

    assert_no_exception(page)
    assert errors(page) == []
    table = page.table[1].value
    assert [unescaped(row) for row in table["sentence"]] == [preset.text for preset in PRESETS]
    assert list(table["passed"]) == ["yes"] * len(PRESETS)
    assert n_passed(page) == str(len(PRESETS))
    assert not page.get("progress")

    page.number_input(key="field_head").set_value(4).run()
    assert n_passed(page) == str(len(PRESETS))  # it stays while another head is shown


def test_presets_that_fail_are_not_counted_as_passed(page, monkeypatch):
    right = verification.verify

    def failing(model, trace):
        report = right(model, trace)
        wrong = {"encoder": np.full((6, 12), np.nan)}
        checks = tuple(
            replace(check, differences=wrong) if check.name == "attention weights" else check
            for check in report.checks
        )
        return replace(report, checks=checks)

    monkeypatch.setattr(verification, "verify", failing)
    NUMBERS.clear()
    page.button(key="verify_presets").click().run()
    NUMBERS.clear()  # no other test gets these reports

    assert_no_exception(page)
    assert n_passed(page) == "0"
    assert list(page.table[1].value["passed"]) == ["**no**"] * len(PRESETS)
    assert list(page.table[1].value["weights"]) == ["not a number"] * len(PRESETS)


def test_terms_lead_to_the_glossary():
    at = open_page("pages/verification.py", text=DOOR, layer=3, head=1, query=7)
    [caption] = [element.value for element in at.caption if "equation 1" in element.value]
    for term in ("query", "key", "softmax", "weight", "score", "value"):
        assert f"(glossary#{term} " in caption
