"""The page Inputs: what is said of attributions, and how much there is to compute."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.input_attribution import METHODS, InputAttribution
from attnviz.effects.outcome import TokenAnswer, TokenState
from attnviz.figures.numbers import number_text, power_text
from attnviz.maths.gradients import FIRST_PANELS, NODES, PathIntegral
from tests.app.screen import drawn, figure
from tests.app.views import LABELS, trace_of, view_of
from tests.drawn_parts import drawn as noted
from ui.rooms.cause.inputs import screen as screen_module
from ui.rooms.cause.inputs import sheet
from ui.rooms.cause.inputs.facts import FirstTokens
from ui.rooms.cause.inputs.screen import NAMES, PARTS, Screen, so_far
from ui.rooms.cause.inputs.sheet import as_csv, note, sum_row

FIRST = FirstTokens(
    n_token=3, n_method=4, n_left_out=0, n_undecided=0, tokens=(1,), n_same=3, direction=1, correlation=0.625
)


def attribution(
    method: str, *, error: float = 0.0, baseline: str | None = None, **changes: Any
) -> InputAttribution:
    values = np.array([0.0, 0.5, -0.25, 0.125, 0.0], dtype=np.float32)
    integral = None
    if method == "integrated_gradients":
        integral = PathIntegral(
            **{"values": values, "difference": 0.5, "error": error, "n_points": 48} | changes
        )
    return InputAttribution(method=method, values=values, baseline=baseline, integral=integral)


def screen_of(outcome: Any = None) -> Screen:
    view = view_of(trace_of(0))
    return Screen(view=view, outcome=outcome or TokenAnswer(position=1, token="cat"))


@pytest.mark.parametrize("error", [0.0, 1e-6, 0.004, 0.4])
def test_whether_integrated_gradients_sum_to_the_difference(error):
    words = sheet._sum(attribution("integrated_gradients", error=error))
    converged = error < 0.1
    assert ("did not converge" in words) == (not converged)
    assert ("rounding of float32" in words) == (error in (0.0, 1e-6))
    assert (f"within {power_text(error)}" in words) == (error == 0.004)
    if converged:
        assert f"difference of outcomes, {number_text(0.5)}," in words
    else:
        assert f"than 48 points follow. They sum to {number_text(0.375)}" in words
        assert f"difference of outcomes is {number_text(0.5)};" in words


@pytest.mark.parametrize("baseline", [None, "zeros", "[PAD]"])
@pytest.mark.parametrize("is_state", [False, True])
@pytest.mark.parametrize(
    "methods",
    [METHODS, METHODS[:3], ("integrated_gradients",), ("token_replaced", "norms"), ("rollout", "flow")],
)
def test_what_is_said_below_the_sheet(baseline, is_state, methods):
    outcome = TokenState(position=1) if is_state else None
    results = [
        attribution(method, baseline=baseline if method == "token_replaced" else None) for method in methods
    ]
    notes = note(screen_of(outcome), results, FIRST)
    assert notes.startswith("Outcome: ") and ("turn of" in notes.split(".")[0]) == is_state
    has_baseline = baseline is not None and "token_replaced" in methods
    assert ("replaced by zeros;" in notes) == (has_baseline and baseline == "zeros")
    assert ("replaced by that of [PAD];" in notes) == (has_baseline and baseline == "[PAD]")
    assert ("is replaced by" in notes) == has_baseline
    assert ("Sundararajan" in notes) == ("integrated_gradients" in methods)
    left_out = "integrated_gradients" in methods and "gradient_times_input" not in methods and not is_state
    assert ("Gradient × input is left out" in notes) == left_out
    assert "ranked first is the one that raises the outcome most" in notes
    unsigned = [name for name in ("norms", "rollout", "flow") if name in methods]
    words = {
        0: "",
        1: "Norm-based weights (Kobayashi",
        2: "Rollout and attention flow (Kobayashi",
        3: "Norm-based weights, rollout and attention flow (Kobayashi",
    }[len(unsigned)]
    assert words in notes and ("Kobayashi" in notes) == bool(unsigned)
    assert ("has no sign and depends" in notes and "it says what is read" in notes) == (len(unsigned) == 1)
    assert ("have no sign and depend on" in notes and "they say what is read" in notes) == (len(unsigned) > 1)


def test_columns_that_did_not_converge_say_so():
    results = [attribution("token_replaced"), attribution("integrated_gradients", error=0.4)]
    screen = screen_of()
    at = drawn(lambda: sheet.sheet(screen, results, complete=False))
    columns = figure(at, "inputs_sheet")["data"][0]["x"]
    assert columns == [NAMES["token_replaced"], f"{NAMES['integrated_gradients']} (not converged)"]
    table = at.table[0].value
    rows = [sum_row(result) for result in results]
    assert table["method"].tolist() == [row["method"] for row in rows]
    assert table["integral"].tolist() == ["–", "did not converge, 48 points"]
    assert rows[1]["difference"] == f"{number_text(0.125)} (25%)"
    assert sum_row(attribution("integrated_gradients"))["integral"] == "converged, 48 points"
    assert sum_row(attribution("norms"))["sum over the tokens"] == "–"
    assert sum_row(attribution("integrated_gradients", difference=0.0))["difference"] == number_text(0.375)


@pytest.mark.parametrize("complete", [True, False])
def test_a_token_is_selected_by_its_cell_once_all_methods_are_done(complete):
    with noted(sheet) as page:
        sheet.sheet(screen_of(), [attribution("norms")], complete=complete)
    pick = page.keyed("inputs_sheet")["on_pick"]
    assert (pick is None) == (not complete)
    if complete:
        assert page.click(pick, [3, 0]) == {"query": 3}
    [table] = page.all("table")
    assert [*table.given[0].values()] == [["Norm-based weights"], *[["–"]] * 4]


def test_how_much_there_is_to_compute():
    """Every token is replaced, and passed with its gradient; a pass with its gradient counts for two."""
    screen = screen_of()
    n = len(LABELS)
    assert screen.n_attributed == 2 * n * n
    assert screen.n_integrated == 2 * n * FIRST_PANELS * NODES
    assert screen.n_deleted == 700 * n
    assert screen.tokens is screen.view.trace.tokens


def test_jobs_of_the_attributions(monkeypatch):
    made = []
    monkeypatch.setattr(Screen, "job", lambda self, name, key, calls: made.append((name, key, calls())))
    monkeypatch.setattr(Screen, "given", property(lambda self: ("m",)))
    there = ("gradient_times_input", "integrated_gradients", "norms")
    monkeypatch.setattr(screen_module, "available_methods", lambda trace, outcome: there)
    screen = screen_of()
    screen.attributions()
    screen.integral()
    screen.chance()
    screen.deletion([attribution("norms")], SimpleNamespace(seed=7))
    attributed, integral, chance, deletion = made
    assert [call[1] for call in attributed[2]] == [("m", "gradient_times_input"), ("m", "norms")]
    assert [call[1] for call in integral[2]] == [("m", "integrated_gradients")] * PARTS
    assert [call[2]["part"] for call in integral[2]] == [(0, 2), (1, 2)]
    assert [call[2]["part"] for call in chance[2]] == [(0, 2), (1, 2)] and chance[1] == (0,)
    assert [call[2]["seed"] for call in chance[2]] == [0, 0]
    assert deletion[1] == (7,) and len(deletion[2]) == 1


@pytest.mark.parametrize("finished", [False, True])
def test_attributions_that_have_come_stand_in_the_order_of_the_methods(finished):
    parts = [attribution("integrated_gradients"), attribution("integrated_gradients")]
    work = SimpleNamespace(results=[attribution("norms"), None, attribution("gradient_times_input")])
    results = so_far(work, SimpleNamespace(finished=finished, results=parts))
    expected = ["gradient_times_input", *(["integrated_gradients"] if finished else []), "norms"]
    assert [result.method for result in results] == [method for method in METHODS if method in expected]
    if finished:
        [whole] = [result for result in results if result.method == "integrated_gradients"]
        np.testing.assert_allclose(whole.values, [0, 1, -0.5, 0.25, 0])
        assert whole.integral.n_points == 96


def test_every_token_has_a_line_with_a_column_for_each_method():
    lines = (
        as_csv(screen_of(), [attribution("norms"), attribution("rollout")]).decode("utf-8-sig").splitlines()
    )
    assert lines[0] == "position,token,norms,rollout" and len(lines) == 1 + len(LABELS)
    assert [line.split(",")[0] for line in lines[1:]] == [str(number) for number in range(5)]
    assert [float(line.split(",")[-1]) for line in lines[1:]] == [0, 0.5, -0.25, 0.125, 0]
