"""The numbers of all ways, and the last of them beside attnviz's own."""

import numpy as np
import streamlit as st

# isort: split
from attnviz.effects.history import Departure, Step, StepName
from attnviz.figures.numbers import share_text
from attnviz.records import Axis
from attnviz.records.table import entry_names, table_csv
from ui.page.table import whole_rows
from ui.page.view import View
from ui.sections.history.steps import NAMES
from ui.words.findings import name, power
from ui.words.score_formula import departures


def table(view: View, steps: dict[StepName, Step]) -> None:
    """The numbers of each way."""
    keys = Axis.of(view.trace.key_tokens(view.kind))
    alone = len(view.trace.query_tokens(view.kind)) == 1
    strongest = {one: int(step.weights.argmax()) for one, step in steps.items()}
    st.dataframe(
        {
            "way": list(NAMES.values()),
            "strongest key": [
                "all the same" if one == "fixed" else name(keys, at) for one, at in strongest.items()
            ],
            "its weight": [share_text(float(steps[one].weights[at])) for one, at in strongest.items()],
            "changes for the next query": [
                "–" if alone else share_text(float(np.abs(one.weights - one.other_weights).max()))
                for one in steps.values()
            ],
            "to learn": [f"{one.n_parameters:,}" for one in steps.values()],
            "multiplications": [f"{one.n_multiplications:,}" for one in steps.values()],
        },
        hide_index=True,
        height=whole_rows(len(NAMES)),
        key="history_table",
        alt="Each way's strongest key, how its weights change with the query, and what it costs",
    )
    st.caption(
        "Changes for the next query: the most that any weight changes when the next token of the text asks instead. To "
        "learn: parameters of the score. Multiplications: for the scores of all queries with all keys of this text."
    )


ROUNDING = 1e-4
"""Difference of two weights that float32 explains: the scores of a row go through other sums."""


def departure_words(found: Departure) -> str:
    """Whether the last row is the head's, as its trace has it, and why not, in Markdown."""
    if found.difference < ROUNDING:
        return (
            ":material/calculate: Recomputed here: the last row. Largest difference from the trace's weights: "
            f"{power(found.difference)}."
        )
    departs = departures(found.scale, found.softcap, has_bias=found.has_bias)
    why = f": it {departs}" if departs else ""
    return (
        f"This model departs from the formula of 2017{why}. The weights of its trace differ from the last row by up to "
        f"{share_text(found.difference)}."
    )


def as_csv(view: View, steps: dict[StepName, Step]) -> bytes:
    """A line for each way: its weight on every key."""
    keys = Axis.of(view.trace.key_tokens(view.kind))
    rows = ([NAMES[name], *one.weights] for name, one in steps.items())
    return table_csv(["way \\ key", *entry_names(keys)], rows)
