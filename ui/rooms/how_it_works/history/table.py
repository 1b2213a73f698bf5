"""The numbers of all scoring functions, and those of the last one compared with attnviz's own."""

import numpy as np
import streamlit as st

# isort: split
from attnviz.figures.numbers import share_text
from attnviz.lessons.history import Departure, Step, StepName
from attnviz.records import Axis
from attnviz.records.table import entry_names, table_csv
from ui.rooms.how_it_works.history.steps import NAMES
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import name, power
from ui.words.score_formula import departures


def table(view: View, steps: dict[StepName, Step]) -> None:
    """The numbers of each scoring function."""
    alone = len(view.query_tokens) == 1
    st.dataframe(
        [row_of(step, Axis.of(view.key_tokens), alone=alone) for step in steps.values()],
        hide_index=True,
        height=whole_rows(len(NAMES)),
        key="history_table",
        alt="Each way's strongest key, how its weights change with the query, and what it costs",
    )
    st.caption(
        "Changes for the next query: the most that any weight changes when the next token of the text asks instead. To "
        "learn: parameters of the score. Multiplications: for the scores of all queries with all keys of this text."
    )


def row_of(step: Step, keys: Axis, *, alone: bool) -> dict[str, str]:
    """The numbers of one scoring function.

    Args:
        alone: whether the text has a single query, and so no next one.
    """
    at = int(step.weights.argmax())
    return {
        "way": NAMES[step.name],
        "strongest key": "all the same" if step.name == "fixed" else name(keys, at),
        "its weight": share_text(float(step.weights[at])),
        "changes for the next query": "–"
        if alone
        else share_text(float(np.abs(step.weights - step.other_weights).max())),
        "to learn": f"{step.n_parameters:,}",
        "multiplications": f"{step.n_multiplications:,}",
    }


ROUNDING = 1e-4
"""Difference between two weights that float32 explains, since a row's scores are summed in another order."""


def departure_words(facts: Departure) -> str:
    """Whether the last row matches the head's row in the trace, and if not, why, in Markdown."""
    if facts.difference < ROUNDING:
        return (
            ":material/calculate: Recomputed here: the last row. Largest difference from the trace's weights: "
            f"{power(facts.difference)}."
        )
    departs = departures(facts.scale, facts.softcap, has_bias=facts.has_bias)
    why = f": it {departs}" if departs else ""
    return (
        f"This model departs from the formula of 2017{why}. The weights of its trace differ from the last row by up to "
        f"{share_text(facts.difference)}."
    )


def as_csv(view: View, steps: dict[StepName, Step]) -> bytes:
    """A line for each scoring function: its weight on every key."""
    keys = Axis.of(view.key_tokens)
    rows = ([NAMES[name], *step.weights] for name, step in steps.items())
    return table_csv(["way \\ key", *entry_names(keys)], rows)
