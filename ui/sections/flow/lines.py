"""The lines of the flow: which heads they are of, and which of them are drawn."""

import numpy as np

from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.theme import percent_text, share_text
from attnviz.heads.flow import Flow, above_share, above_weight, strongest_lines
from attnviz.records import AttentionPattern
from ui.choice.selection import NUMBERS
from ui.page.view import View
from ui.words.findings import name


def chosen_heads(view: View) -> list[str]:
    """The heads whose lines are asked for, the picked one first, as "3.5"; "3" for all heads of a layer together."""
    picked = f"{view.selection.layer}.{view.selection.head}"
    chosen = [picked, *view.selection.heads]
    if view.measure == "rollout":  # which is of all heads
        chosen = [one.partition(".")[0] for one in chosen]
    return list(dict.fromkeys(chosen))


def pattern_of(drawn: str, view: View) -> AttentionPattern:
    """The matrix of a head, or of all heads of a layer."""
    layer, _, head = drawn.partition(".")
    return view.pattern(int(layer), int(head or 0), together=not head)


def written_out(drawn: str) -> str:
    """A head in words: "Layer 3, head 5"."""
    layer, _, head = drawn.partition(".")
    return f"Layer {layer}, head {head}" if head else f"Layer {layer}, all heads"


def lines_of(matrices: np.ndarray, view: View) -> Flow:
    """The lines above the threshold, those of the picked query before all others."""
    selection = view.selection
    if selection.threshold == "share":
        above = above_share(matrices, selection.share / 100)
    else:
        unit = float(matrices.max()) if view.measure == "norms" else 1.0
        above = above_weight(matrices, selection.least / 100 * unit)
    return strongest_lines(matrices, above, whole_row=view.queries.index(view.query))


def note(flow: Flow, view: View, largest: float) -> str:
    """Which lines are drawn, what they hold, and what is left out."""
    selection, measure = view.selection, MEASURE_NAMES[view.measure]
    of_what = " of the largest" * (view.measure == "norms")
    held = f"{share_text(flow.share)} of the {'sum of all norm-based weights' if view.measure == 'norms' else measure}"
    if view.hides_special or selection.sentences != "all":
        held += " between these tokens"
    if flow.n_left_out:
        said = f"The {len(flow):,} strongest lines, {held}; {flow.n_left_out:,} weaker ones are left out."
        if view.queries.index(view.query) is not None:
            said += f" Those of {name(view.queries, view.query)} are all there."
    else:
        said = f"{len(flow):,} line{'s' * (len(flow) != 1)}, {held}."
    if selection.threshold == "weight":
        said += f" Lines under {selection.least:g}\N{NO-BREAK SPACE}%{of_what} are not drawn."
    elif selection.share < NUMBERS["share"].highest:
        said += (
            f" For each query the strongest keys that hold {percent_text(selection.share / 100)} of its row are drawn "
            "(Hoover et al. 2020, arXiv:1910.05276)."
        )
    if view.measure == "norms":
        said += f" Thickness is relative to the largest, {largest:.3g}: norm-based weights do not sum to 1."
    return said
