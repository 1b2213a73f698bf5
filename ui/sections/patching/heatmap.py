"""The share of the difference that each state brings, as a heatmap, a finding and a table."""

from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from attnviz.effects.patching import PatchEffects
from attnviz.figures.numbers import number_text, percent_text
from attnviz.figures.patching import draw_patching
from attnviz.records import Axis, Head
from attnviz.records.table import entry_names, table_csv
from ui.choice import state
from ui.page.chart import chart
from ui.sections.patching.screen import Screen
from ui.words.findings import name
from ui.words.literal import literal

CARRIED = {
    "layer": "the residual stream after",
    "attention": "the attention output of",
    "heads": "the output of",
}


def finding(screen: Screen, found: PatchEffects) -> str:
    """Which state brings the largest share, in words."""
    if not found.has_difference:
        return "The two sentences have the same outcome: there is no difference to carry over"
    row, token = np.unravel_index(np.nanargmax(found.shares), found.shares.shape)
    place = _row(found, int(row))
    at = name(Axis.of(screen.tokens[0]), int(token))
    share = percent_text(float(found.shares[row, token]))
    return f"Carrying over {CARRIED[found.carried]} {place} at {at} brings {share} of the difference"


def heatmap(screen: Screen, found: PatchEffects) -> Figure:
    """Layers or heads up, tokens across; the figure."""
    view = screen.view

    def pick(clicked: Any) -> None:
        match clicked:
            case [int(row), int(token)]:
                place = {"head": row} if found.carried == "heads" else {"layer": row}
                state.change(query=token, **place)

    drawn = draw_patching(
        found, *screen.tokens, picked=view.query, differing=screen.differing, theme=view.theme
    )
    chart(
        drawn,
        key="patching_shares",
        alt="Share of the difference that each state brings, layers up and tokens across",
        on_pick=pick,
        name="States; select one",
    )
    return drawn


def note(screen: Screen, found: PatchEffects) -> str:
    """What the shares are relative to, where the sentences differ, and what the shares do not mean."""
    said = [
        f"Outcome: {screen.measured}; {number_text(found.base)} for the sentence above, {number_text(found.donor)} for the one "
        "whose states are carried over.",
        "Share = (outcome with the state − first) / (second − first): 0 for nothing, 1 for all of the difference.",
    ]
    if screen.differing:
        where = ", ".join(
            f"“{screen.tokens[0].labels[at]}” → “{screen.tokens[1].labels[at]}”"
            for at in screen.differing[:4]
        )
        more = f" and {len(screen.differing) - 4} more" if len(screen.differing) > 4 else ""
        said.append(f"The sentences differ at ▲: {where}{more}.")
    else:
        said.append("The sentences have the same tokens.")
    if screen.is_shifted:
        said.append("Some words stand at other positions; states are carried by position.")
    said.append(
        "A state that brings much is enough here, not necessary: several states can each bring all of it, and shares do not add "
        "up to 1 (Meng et al. 2022, arXiv:2202.05262; Wang et al. 2022, arXiv:2211.00593)."
    )
    return literal(" ".join(said))


def as_csv(screen: Screen, found: PatchEffects) -> bytes:
    """A line for every state that was carried over."""
    tokens = [entry_names(Axis.of(one)) for one in screen.tokens]
    row = "head" if found.carried == "heads" else "layer"
    lines = [
        [number, at, tokens[0][at], tokens[1][at], found.outcomes[number, at], found.shares[number, at]]
        for number, at in np.ndindex(*found.outcomes.shape)
    ]
    return table_csv([row, "position", "token", "other token", "outcome", "share"], lines)


def _row(found: PatchEffects, row: int) -> str:
    if found.layer is None:
        return f"layer {row}"
    return Head(found.layer, row).words
