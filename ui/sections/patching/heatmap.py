"""The share of the difference that each state accounts for, as a heatmap, a finding and a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from plotly.graph_objects import Figure

from attnviz.effects.patching import PatchEffects
from attnviz.figures.numbers import number_text, percent_text
from attnviz.figures.patching import draw_patching
from attnviz.records import Axis, Head, Tokens
from attnviz.records.table import entry_names, table_csv
from ui.choice import state
from ui.page.chart import chart
from ui.sections.patching.facts import NoShares, largest_share, reads_last
from ui.sections.patching.screen import Screen
from ui.words.extremes import equals
from ui.words.findings import name
from ui.words.literal import literal

_MOST_NAMED = 4
"""Differing tokens that are named."""
CARRIED = {
    "layer": "the residual stream after",
    "attention": "the attention output of",
    "heads": "the output of",
}


def finding(screen: Screen, found: PatchEffects) -> str:
    """Which state moves the outcome most, and where to, in words."""
    largest = largest_share(found)
    if isinstance(largest, NoShares):
        return _no_shares(largest)
    percent = percent_text(abs(largest.share))
    if percent == "0%":
        return "No single state accounts for even 1% of the difference"
    at = name(Axis.of(screen.tokens[0]), largest.token)
    state = (
        f"Swapping in {CARRIED[found.carried]} {_row(found, largest.row)} at {at}{equals(largest.n_equal)}"
    )
    if largest.share < 0:
        return f"{state} moves the outcome away from the other sentence’s, by {percent} of the difference"
    if round(100 * largest.share) > 100:
        return f"{state} moves the outcome beyond the other sentence’s, by {percent} of the difference in all"
    return f"{state} accounts for {percent} of the difference"


def _no_shares(found: NoShares) -> str:
    match found.reason:
        case "unknown":
            return "The outcomes of the two sentences are not numbers: there is no difference to share out"
        case "equal":
            return "The two sentences have the same outcome: there is no difference to carry over"
        case "small":
            difference = number_text(abs(found.donor - found.base))
            return (
                f"The outcomes of the two sentences are only {difference} apart, and single states move the outcome beyond them "
                f"(standard deviation {number_text(found.spread)}): shares of so small a difference mean nothing"
            )


def heatmap(screen: Screen, found: PatchEffects) -> Figure:
    """Each layer, or head, at each token; the figure."""
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
        alt=f"{'Share of the difference' if found.can_be_shared else 'Change of the outcome'} with each state carried over",
        on_pick=pick,
        name="States; select one",
    )
    return drawn


def note(screen: Screen, found: PatchEffects) -> str:
    """What the shares are relative to, where the sentences differ, and what the shares do not mean."""
    said = [
        f"Outcome: {screen.measured}; {number_text(found.base)} for the sentence above, {number_text(found.donor)} for the one "
        "whose states are carried over.",
    ]
    if found.can_be_shared:
        said.append(
            "Share = (outcome with the state − first) / (second − first): 0 for nothing, 1 for all of the difference, above 1 for an "
            "outcome beyond the second, below 0 for one on the other side of the first."
        )
    else:
        said.append(
            "Cells have the change of the outcome with their state, for there is no difference to share out."
        )
    if screen.differing:
        said.append(f"The sentences differ at ▲: {_exchanged(*screen.tokens, screen.differing)}.")
    if screen.differing_in_encoder:
        exchanged = _exchanged(screen.view.trace.tokens, screen.donor.tokens, screen.differing_in_encoder)
        said.append(f"The encoder's sentences differ: {exchanged}.")
    if not screen.differing and not screen.differing_in_encoder:
        said.append("The sentences have the same tokens.")
    if screen.is_shifted:
        said.append("Some words stand at other positions; states are carried by position.")
    if reads_last(found) and found.can_be_shared:
        said.append("The finding leaves out the last layer, whose states are what the outcome reads.")
    said.append(
        "A large share means that the state is sufficient, not that it is necessary: several states can each bring all of it, and "
        "shares do not add up to 1 (Meng et al. 2022, arXiv:2202.05262; Wang et al. 2022, arXiv:2211.00593)."
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


def _exchanged(tokens: Tokens, others: Tokens, differing: Sequence[int]) -> str:
    """The first tokens that differ: "“door” → “window” and 2 more"."""
    where = ", ".join(f"“{tokens.labels[at]}” → “{others.labels[at]}”" for at in differing[:_MOST_NAMED])
    n_more = len(differing) - _MOST_NAMED
    return f"{where} and {n_more} more" if n_more > 0 else where


def _row(found: PatchEffects, row: int) -> str:
    if found.layer is None:
        return f"layer {row}"
    return Head(found.layer, row).words
