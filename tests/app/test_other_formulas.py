"""Models whose scores are more than scaled products: softcapped (Gemma 2), or with a bias of contents (DeBERTa)."""

import numpy as np
import pytest

from attnviz.figures.numbers import number_text
from tests.app.screen import assert_no_exception, component, errors, facts, open_page
from tests.tiers import first_gates

TEXT = "the cat sat on it"
AT = {"text": TEXT, "layer": 1, "head": 1, "query": 4, "key": 2}


@pytest.fixture
def shown(checkpoint, monkeypatch):
    def show(page: str, family: str, **choices):
        monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(family)))
        at = open_page(f"pages/{page}.py", model=family, **AT | choices)
        assert_no_exception(at)
        assert errors(at) == []
        return at

    return show


@pytest.mark.parametrize("family", first_gates("gemma2", "deberta-v2"))
def test_step_by_step_makes_the_model_s_own_scores(family, shown):
    at = shown("step_by_step", family, step=0)
    lines = [line.value for line in at.markdown if line.value.startswith(":material/calculate:")]
    assert len(lines) >= 3  # the score, its row, its weights
    assert not [line.value for line in at.markdown if ":red[" in line.value]  # which says that it differs
    formulas = [
        formula
        for formula in (element.value.strip("$\n ") for element in at.latex)
        if formula.startswith(("s_{", "S ="))
    ]
    assert len(formulas) == 2
    assert all((r"3 \tanh" in formula) == (family == "gemma2") for formula in formulas)
    assert all(("b_{4,2}" in formula or "+ B" in formula) == (family == "deberta-v2") for formula in formulas)


@pytest.mark.parametrize("family", first_gates("gemma2", "deberta-v2"))
def test_the_film_says_what_is_done_to_a_product(family, shown, tiny_model):
    drawn = component(shown("step_by_step", family, step=0), "head_film")
    trace = tiny_model(family).trace(TEXT)
    score = number_text(float(trace.scores(1, 1)[4, 2]))
    in_stage = facts(drawn["stages"][3]["caption"]).numbers
    assert in_stage[-1] == score
    if family == "gemma2":
        assert drawn["score"] == "3 tanh(q · k × 0.378 / 3)"
        assert in_stage[-2] == "3"
    else:
        assert drawn["score"].endswith("+ bias")
        assert in_stage[-2] == number_text(float(trace.attention(1).bias[1, 4, 2]))


@pytest.mark.parametrize(
    ("family", "page", "numbers"),
    first_gates(
        ("gemma2", "kinds_of_attention", ("1", "0.378", "3")),  # the layer, the scale, the softcap
        ("gemma2", "history", ("2017", "0.378", "3")),
        ("deberta-v2", "kinds_of_attention", ("1", "0.258")),  # 1 / sqrt(3 x 5)
        ("deberta-v2", "history", ("2017", "0.258")),
    ),
)
def test_pages_with_a_general_formula_say_where_the_model_departs(family, page, numbers, shown):
    at = shown(page, family)
    sentences = [
        element.value
        for element in [*at.markdown, *at.caption]
        if "departs from the formula" in element.value
    ]
    assert len(sentences) == 1
    assert facts(sentences[0]).numbers[: len(numbers)] == numbers
    assert ("softcap" in sentences[0], "bias" in sentences[0]) == (family == "gemma2", family == "deberta-v2")


def test_scaling_keeps_the_cap_under_every_scale(shown, tiny_model):
    at = shown("scaling", "gemma2", scale=16.0)
    rows = at.dataframe[0].value
    largest = rows["largest score"][rows["scale"].str.startswith("16")].astype(float)
    assert (largest <= 3).all() and (largest > 2.9).all()
    assert "under no scale" in " ".join(line.value for line in at.markdown)  # 3 is no overflow in any type


def test_the_row_of_verification_and_a_picked_pair_are_capped(shown, tiny_model):
    assert any(r"3 \tanh" in element.value for element in shown("verification", "gemma2").latex)
    score = float(tiny_model("gemma2").trace(TEXT).scores(1, 1)[4, 2])
    headings = [line.value for line in shown("query_key_map", "gemma2").markdown if "tanh" in line.value]
    assert len(headings) == 1
    assert facts(headings[0]).numbers[-1] == f"{score:.2f}".replace("-", "−")
    assert np.abs(score) < 3
