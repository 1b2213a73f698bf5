"""The share of the difference that each state accounts for: in a sentence, as a heatmap, beside the gradient's estimate, and as CSV."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.attribution_patching import Comparison, compared
from attnviz.effects.patching import Carried, PatchEffects, PathEnd
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import number_text, percent_text
from attnviz.figures.patching import DIFFERS, draw_patching
from attnviz.records import ROLE_NAMES, Axis, Head, Tokens
from ui.choice import state
from ui.rooms.compare.patching.two_texts import Screen, joined
from ui.shell.chart import chart
from ui.shell.waiting import QUICK, REFUSALS, is_there
from ui.words.extremes import equals, places_of_largest
from ui.words.findings import name
from ui.words.literal import literal

_MOST_NAMED = 4
"""Most differing tokens that are named."""
CARRIED: dict[Carried, str] = {
    "before": "the residual stream before",
    "layer": "the residual stream after",
    "attention": "the attention output of",
    "mlp": "the MLP output of",
    "heads": "the output of",
    "query": "the queries of",
    "key": "the keys of",
    "value": "the values of",
    "pattern": "the attention pattern of",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestShare:
    """The state that moves the outcome most, towards the other sentence's outcome or away from it."""

    row: int
    column: int
    """A head if the map has heads across, otherwise a token."""
    share: float
    n_equal: int
    """Other states that move the outcome as far."""


def reads_last(effects: PatchEffects) -> bool:
    """Whether the outcome is read from the last row, so that a large share there is trivial."""
    return effects.carried == "layer" and len(effects.outcomes) > 1


def _asked(effects: PatchEffects) -> slice:
    """The rows in which a share says something."""
    return slice(None, -1 if reads_last(effects) else None)


def largest_share(effects: PatchEffects) -> LargestShare | None:
    """The share with the largest magnitude, in all rows except one from which the outcome is read; None if there are none."""
    places = places_of_largest(np.abs(effects.shares[_asked(effects)]), percent_text)
    if not places:
        return None
    row, column = places[0]
    return LargestShare(
        row=row, column=column, share=float(effects.shares[row, column]), n_equal=len(places) - 1
    )


def finding(tokens: Tokens, effects: PatchEffects) -> str:
    """Which state, at these tokens, moves the outcome most, and in which direction."""
    if (largest := largest_share(effects)) is None:
        return _no_shares(effects)
    percent = percent_text(abs(largest.share))
    if percent in ("0%", "under 1%"):
        return "No single state accounts for even 1% of the difference"
    swapped = _swapped(Axis.of(tokens), effects, largest)
    if largest.share < 0:
        return f"{swapped} moves the outcome away from sentence B’s, by {percent} of the difference"
    if round(100 * largest.share) > 100:
        return f"{swapped} overshoots: the outcome moves by {percent} of the difference, beyond sentence B’s"
    return f"{swapped} accounts for {percent} of the difference"


def _swapped(tokens: Axis, effects: PatchEffects, largest: LargestShare) -> str:
    """The state that moves the outcome most, as the subject of a sentence."""
    carried = CARRIED[effects.carried]
    if effects.columns == "token":
        place = (
            f"layer {largest.row}" if effects.layer is None else _head(effects, effects.layer, largest.row)
        )
        at = f" at {name(tokens, largest.column)}"
    else:
        place = _head(effects, largest.row, largest.column)
        at = "" if effects.position is None else f" at {name(tokens, effects.position)}"
    others = equals(largest.n_equal)
    if effects.end is not None:
        return f"Swapping in the path from {place}{at}{others} {_to(effects.end)}"
    return f"Swapping in {carried} {place}{at}{others}"


def _head(effects: PatchEffects, layer: int, head: int) -> str:
    if effects.carried in ("key", "value"):
        return f"layer {layer}, key-value head {head}"
    return Head(layer, head).words


def _to(end: PathEnd) -> str:
    """Where a path ends, in words."""
    if end.head is None:
        return "directly to the outcome"
    return f"to the {ROLE_NAMES[end.role]} of {end.head.words}"


def _no_shares(effects: PatchEffects) -> str:
    """Why the difference between the two outcomes is not divided into shares."""
    ends = effects.base, effects.donor
    if not np.isfinite(ends).all() or not np.isfinite(effects.outcomes[_asked(effects)]).any():
        return "The outcomes of the two sentences are not numbers, so there is no difference to explain"
    if not effects.has_difference:
        return "The two sentences have the same outcome, so there is no difference to explain"
    return (
        f"The outcomes of the two sentences are only {number_text(abs(ends[1] - ends[0]))} apart, and single states move the outcome "
        f"beyond them (standard deviation {number_text(effects.spread)}): shares of so small a difference mean nothing"
    )


def heatmap(
    screen: Screen, effects: PatchEffects, *, key: str, scale_of: PatchEffects | None = None
) -> Figure:
    """Draws a cell for each state, coloured as in `draw_patching`; returns the figure."""
    drawn = draw_patching(
        effects,
        scale_of=scale_of,
        picked=screen.view.query,
        differing=screen.differing,
        theme=screen.view.theme,
    )
    what = "Share of the difference" if (scale_of or effects).can_be_shared else "Change of the outcome"
    show(drawn, effects, key=key, of=f"{what} with each state swapped in")
    return drawn


def show(drawn: Figure, effects: PatchEffects, *, key: str, of: str) -> None:
    """Puts a heatmap on the page; a click on a cell selects its state.

    Args:
        of: what the cells are, for its text alternative.
    """

    def pick(clicked: Any) -> None:
        match clicked:
            case [int(row), int(column)]:
                state.change(**picked_place(effects, row, column))

    alt = f"{of}, a cell for each {effects.rows} and {effects.columns}"
    chart(drawn, key=key, alt=alt, on_pick=pick, name="States; select one")


def picked_place(effects: PatchEffects, row: int, column: int) -> dict[str, int]:
    """What a click on a cell selects; no head for keys and values, which heads may share."""
    if effects.columns == "token":
        return {"query": column} | (
            {"layer": row} if effects.layer is None else _of_head(effects, {"head": row})
        )
    return {"layer": row} | _of_head(effects, {"head": column})


def _of_head(effects: PatchEffects, head: dict[str, int]) -> dict[str, int]:
    return {} if effects.carried in ("key", "value") else head


def shares(screen: Screen) -> Figure:
    """Every state, and what the numbers do not mean."""
    drawn = heatmap(screen, screen.shares, key="patching_shares")
    st.caption(note(screen, screen.shares))
    return drawn


def gradient(screen: Screen) -> Figure | tuple[str, ...]:
    """The gradient's estimate and its error on the patched cells, once known; a single pass, for which the page waits."""
    effects = screen.shares
    if effects.end is not None:
        return ()
    work = screen.gradient_job()
    try:
        if not is_there(work, QUICK, "Computing the gradient", key="gradient_act"):
            return ()
    except REFUSALS as refusal:
        st.caption(literal(str(refusal)))
        return ()
    by_gradient: PatchEffects = work.results[0]
    drawn = heatmap(screen, by_gradient, key="patching_gradient", scale_of=effects)
    sentences = [] if (error := compared(effects, by_gradient)) is None else [error_words(effects, error)]
    [cells] = [trace for trace in drawn.data if trace.type == "heatmap"]
    if (largest := float(np.nanmax(np.abs(cells.z), initial=0.0))) > cells.zmax:
        sentences.append(
            f"Colours end where those of the map beside it do, at ±{number_text(float(cells.zmax))}; the estimate goes to "
            f"{number_text(largest)}."
        )
    if sentences:
        st.caption(literal(" ".join(sentences)))
    return drawn


def so_far(screen: Screen) -> None:
    """Draws the states patched so far."""
    if (effects := joined(screen.patching_job())) is not None:
        heatmap(screen, effects, key="patching_so_far")
        n_done = int(np.isfinite(effects.outcomes).sum())
        st.caption(
            f"{n_done:,} of {screen.n_cells:,} cells are patched; hatched cells are not patched yet, which is not the same as 0."
        )


def error_words(effects: PatchEffects, error: Comparison) -> str:
    """The gradient's error on the patched cells, in words."""
    row, column = error.worst
    if effects.columns == "head":
        worst = _head(effects, row, column)
    elif effects.layer is None:
        worst = f"layer {row}, token {column}"
    else:
        worst = f"{_head(effects, effects.layer, row)}, token {column}"
    same = (
        "" if np.isnan(error.correlation) else f" The two maps have a correlation of {error.correlation:.2f}."
    )
    return (
        f"Gradient × difference of the states, one pass for all cells (attribution patching; Nanda 2023; Syed et al. 2023, "
        f"arXiv:2310.10348). On the {error.n_cell:,} cells that were patched, it is off by {number_text(error.mean)} of the outcome on "
        f"average and by {number_text(error.largest)} at most ({worst}).{same}"
    )


def note(screen: Screen, effects: PatchEffects) -> str:
    """What the shares are relative to, where the sentences differ, and what the shares do not mean."""
    sentences = [
        f"Outcome: {screen.measured}; {number_text(effects.base)} for the sentence above, {number_text(effects.donor)} for sentence B, "
        "whose states are swapped in.",
    ]
    if effects.can_be_shared:
        sentences.append(
            "Share = (outcome with the state swapped in − outcome of the sentence above) / (outcome of sentence B − outcome of the "
            "sentence above): 0 is no change, 1 all of the difference."
        )
    else:
        sentences.append(
            "Cells show the change of the outcome with the state swapped in, since there is no difference to share out."
        )
    if effects.end is not None:
        sentences.append(
            "One path at a time: this head has its output for sentence B, every other head its output for the sentence above; "
            "MLPs and norms follow (path patching; Wang et al. 2022, arXiv:2211.00593)."
        )
        if effects.end.head is not None:
            sentences.append("From hatched heads no path leads there.")
    if effects.carried in ("key", "value") and screen.view.trace.attention(0, effects.kind).shares_keys:
        sentences.append(
            "Several heads read the same keys and values (grouped-query attention): a key-value head is one of these groups."
        )
    if screen.differing:
        sentences.append(
            f"The sentences differ at {DIFFERS}: {_exchanged(*screen.tokens, screen.differing)}."
        )
    if screen.differing_in_encoder:
        exchanged = _exchanged(screen.view.trace.tokens, screen.donor.tokens, screen.differing_in_encoder)
        sentences.append(f"The encoder's sentences differ: {exchanged}.")
    if not screen.differing and not screen.differing_in_encoder:
        sentences.append("The sentences have the same tokens.")
    if screen.is_shifted:
        sentences.append("Some words are at other positions; states are swapped in position by position.")
    if reads_last(effects) and effects.can_be_shared:
        sentences.append("The finding leaves out the last layer, whose states are what the outcome reads.")
    sentences.append(
        "A large share means that the state is sufficient, not that it is necessary: several states can each account for all of it, and "
        "shares do not add up to 1 (Meng et al. 2022, arXiv:2202.05262; Wang et al. 2022, arXiv:2211.00593)."
    )
    return literal(" ".join(sentences))


def _exchanged(tokens: Tokens, others: Tokens, differing: Sequence[int]) -> str:
    """The first tokens that differ: "“door” → “window” and 2 more"."""
    where = ", ".join(
        f"“{isolated(tokens.labels[at])}” → “{isolated(others.labels[at])}”" for at in differing[:_MOST_NAMED]
    )
    n_more = len(differing) - _MOST_NAMED
    return f"{where} and {n_more} more" if n_more > 0 else where
