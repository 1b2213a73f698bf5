"""The lines of the flow: their heads, and which lines are drawn."""

import numpy as np

from attnviz.figures.heatmap import MEASURE_NAMES, MOST_COUNTED
from attnviz.figures.numbers import counted, percent_text, share_text
from attnviz.heads.flow import MOST_LINES, Flow, above_share, above_weight, strongest_lines
from attnviz.records import AllHeads, AttentionPattern, Head
from ui.rooms.explore.several_heads.choices import FlowSettings
from ui.shell.view import View
from ui.words.findings import name


def chosen_heads(view: View) -> list[Head | AllHeads]:
    """The heads whose lines are requested, the selected one first."""
    chosen = [view.selection.place, *view.selection.of(FlowSettings).heads]
    if view.measure == "rollout":  # combines all heads
        chosen = [AllHeads(head.layer) for head in chosen]
    return list(dict.fromkeys(chosen))


def pattern_of(drawn: Head | AllHeads, view: View) -> AttentionPattern:
    """The matrix of a head, or of all heads of a layer."""
    if isinstance(drawn, AllHeads):
        return view.pattern(drawn.layer, together=True)
    return view.pattern(*drawn)


def lines_of(matrices: np.ndarray, view: View) -> Flow:
    """The lines above the threshold, those of the selected query first."""
    selection = view.selection
    if selection.of(FlowSettings).threshold == "share":
        above = above_share(matrices, selection.of(FlowSettings).share / 100)
    else:
        unit = float(matrices.max()) if view.measure == "norms" else 1.0
        above = above_weight(matrices, selection.of(FlowSettings).weakest / 100 * unit)
    return strongest_lines(matrices, above, whole_row=view.queries.index(view.query))


def at_once(view: View) -> int:
    """How many lines are drawn besides the selected pair's until a token is hovered over."""
    is_long = max(len(view.queries), len(view.keys)) > MOST_COUNTED
    chosen = view.selection.of(FlowSettings).at_once
    return (0 if is_long else MOST_LINES) if chosen is None else chosen


def drawn_at_once(flow: Flow, view: View, key: int) -> np.ndarray:
    """True for lines drawn at once: all lines of the selected query and key, and the strongest others."""
    of_pair = (flow.query == view.queries.index(view.query)) | (flow.key == view.keys.index(key))
    drawn: np.ndarray = of_pair.copy()
    others = np.flatnonzero(~of_pair)[::-1]  # the strongest first
    drawn[others[: at_once(view)]] = True
    return drawn


def hidden_lines(drawn: np.ndarray, more: str = "More") -> str:
    """How many lines appear only on hover, and how to see more; empty if all are drawn.

    Args:
        more: name of the place with “Lines at once”.
    """
    if drawn.all():
        return ""
    return (
        f"{np.count_nonzero(~drawn):,} of these lines, of other queries and keys, are hidden: hover over a token or tap it for all of its lines, or "
        f"raise “Lines at once” under {more}."
    )


def drawn_words(flow: Flow, held: str, query: str | None) -> str:
    """Which lines are drawn if there are too many.

    Args:
        held: total weight of the lines, in words.
        query: name of the selected query, whose lines take precedence; None if it is not shown.
    """
    lines = counted(len(flow), "line")
    if not flow.n_left_out:
        return f"{lines}, {held}."
    if query is None:
        strongest = counted(len(flow), "strongest line")
        rest = f"{counted(flow.n_left_out, 'weaker one')} {'is' if flow.n_left_out == 1 else 'are'} left out"
        return f"The {strongest}, {held}; {rest}."
    drawn = "all of {} and the strongest of the others" if flow.row_is_whole else "the strongest of {}"
    return f"{lines}, {held}, and {flow.n_left_out:,} left out: drawn are {drawn.format(query)}."


def note(flow: Flow, view: View, largest: float) -> str:
    """Which lines are drawn, their total weight, and what is left out."""
    selection, measure = view.selection, MEASURE_NAMES[view.measure]
    of_what = " of the largest" * (view.measure == "norms")
    held = f"{share_text(flow.share)} of the {'sum of all norm-based weights' if view.measure == 'norms' else measure}"
    if view.hides_special or view.hides_first or selection.sentences != "all":
        held += " between these tokens"
    is_shown = view.queries.index(view.query) is not None
    sentence = drawn_words(flow, held, name(view.queries, view.query) if is_shown else None)
    if selection.of(FlowSettings).threshold == "weight":
        sentence += f" Lines under {selection.of(FlowSettings).weakest:g}%{of_what} are not drawn."
    elif selection.of(FlowSettings).share < 100:
        sentence += (
            f" For each query the strongest keys that hold {percent_text(selection.of(FlowSettings).share / 100)} of its row are drawn "
            "(Hoover et al. 2020, arXiv:1910.05276)."
        )
    if view.measure == "norms":
        sentence += (
            f" Thickness is relative to the largest, {largest:.3g}: norm-based weights do not sum to 1."
        )
    return sentence
