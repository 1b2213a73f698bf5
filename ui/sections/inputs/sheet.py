"""All methods on one sheet: a row for each token, a column for each method; the finding, the note, the table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from attnviz.effects.input_attribution import InputAttribution
from attnviz.figures.inputs import draw_attributions
from attnviz.figures.numbers import power_text
from attnviz.records import Axis
from attnviz.records.table import entry_names, table_csv
from ui.choice import state
from ui.page.chart import chart
from ui.sections.inputs.screen import NAMES, Screen
from ui.words.findings import name
from ui.words.literal import literal

_OF_ATTENTION = ("norms", "rollout", "flow")


def finding(screen: Screen, found: Sequence[InputAttribution]) -> str:
    """Which token the methods put first, as Markdown; special tokens aside."""
    among = ~screen.tokens.is_special
    if not among.any():
        return "**The text has special tokens alone**"
    firsts = [int(np.flatnonzero(among)[np.abs(one.values[among]).argmax()]) for one in found]
    first = max(set(firsts), key=firsts.count)
    token = literal(name(Axis.of(screen.tokens), first))
    n_same = firsts.count(first)
    if n_same == len(found):
        return f"**All {len(found)} methods put {token} first: the outcome rests on it most**"
    return f"**{n_same} of {len(found)} methods put {token} first; they do not agree on what the outcome rests on**"


def sheet(screen: Screen, found: Sequence[InputAttribution]) -> Figure:
    """Tokens down, methods across; the figure."""
    drawn = draw_attributions(found, screen.tokens, NAMES, picked=screen.view.query, theme=screen.view.theme)
    chart(
        drawn,
        key="inputs_sheet",
        alt="How much each token counts by each method, tokens down and methods across",
        on_pick=_pick,
        name="Tokens and methods; select one",
    )
    return drawn


def note(screen: Screen, found: Sequence[InputAttribution]) -> str:
    """What the numbers are, relative to what, and what they do not mean."""
    said = [
        f"Outcome: {screen.measured}. Each column has a colour scale of its own; blue-green raises the outcome, orange lowers it."
    ]
    baseline = next((one.baseline for one in found if one.baseline is not None), None)
    if baseline is not None:
        said.append(f"“No token” is {baseline} in its place, special tokens stay.")
    gap = next((one.gap for one in found if one.gap is not None), None)
    if gap is not None:
        said.append(
            "Integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365) sum to the difference of outcomes within "
            f"{power_text(abs(gap))}."
        )
    if any(one.method in _OF_ATTENTION for one in found):
        said.append(
            "Norm-based weights, rollout and attention flow (Abnar and Zuidema 2020, arXiv:2005.00928) have no sign and know "
            "nothing of the outcome: they say what is read, not what matters."
        )
    return " ".join(said)


def as_csv(screen: Screen, found: Sequence[InputAttribution]) -> bytes:
    """A line for every token, a column for every method."""
    names = entry_names(Axis.of(screen.tokens))
    rows = [[at, names[at], *(one.values[at] for one in found)] for at in range(len(screen.tokens))]
    return table_csv(["position", "token", *(one.method for one in found)], rows)


def _pick(clicked: Any) -> None:
    match clicked:
        case [int(token), int()]:
            state.change(query=token)
