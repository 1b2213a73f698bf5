"""The comparisons for each example sentence, run by a button."""

from dataclasses import dataclass, field

import streamlit as st

from ui.choice import state
from ui.choice.presets import offered_presets
from ui.choice.selection import Selection
from ui.runtime import cache
from ui.session import of_session
from ui.shell.verdict import largest
from ui.shell.view import View
from ui.words.literal import literal


@dataclass(slots=True)
class Verified:
    """The results of the comparisons for the examples, by model."""

    by_model: dict[str, list[dict[str, object]]] = field(default_factory=dict)


def every_preset(view: View) -> None:
    """The button that runs the comparisons for each example sentence, and their results."""
    model = view.selection.model
    verified = of_session(Verified).by_model
    if st.button(
        "Verify every preset",
        icon=":material/fact_check:",
        key="verify_presets",
        on_click=state.hold,
        help="Makes the same comparisons for each of the example sentences.",
    ):
        progress = st.progress(0.0)
        rows = []
        presets = offered_presets(model, fills_blanks=True)
        for number, preset in enumerate(presets):
            progress.progress(number / len(presets), text=f"{literal(preset.name)} …")
            rows.append(_verify(Selection(model=model, text=preset.text, cut=True)))
        progress.empty()
        verified[model] = rows
    if model in verified:
        n_passed = sum(row["passed"] == "yes" for row in verified[model])
        st.markdown(f"**{n_passed} of {len(verified[model])} passed.**")
        st.table(verified[model])


def _verify(selection: Selection) -> dict[str, object]:
    report = cache.report(selection.source)
    return {
        "sentence": literal(selection.text),
        "tokens": len(cache.trace(selection.source).tokens),
        "comparisons": len(report.checks),
        "weights": largest(report.max_abs_error),
        "last hidden state": largest(report.check("last hidden state").difference),
        "passed": "yes" if report.passed else "**no**",
    }
