"""Where does attention go? Queries and keys in two columns, joined by lines, for one head or several."""

from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.theme import LIGHT, percent_text, share_text
from attnviz.heads.flow import Flow, above_share, above_weight, lines_csv, strongest_lines
from attnviz.records import AttentionPattern
from ui.choice import state, widgets
from ui.choice.selection import CHOICES, NUMBERS
from ui.components.token_flow import token_flow
from ui.export.take import take
from ui.page import verdict
from ui.page.frame import frame
from ui.page.view import View, hidden_note
from ui.words.findings import MEASURE_NOTES, MEASURES_HELP, SHOWN_NAMES, finding, name, place, strongest_key
from ui.words.literal import literal

MOST_HEADS = len(LIGHT.heads)  # as many as there are colours that can be told apart


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


def controls(view: View, heads: list[str]) -> None:
    """What is drawn, of which heads, and from which threshold on."""
    trace, kind, selection = view.trace, view.kind, view.selection
    of_layers = [str(layer) for layer in range(trace.n_layers(kind))]
    of_heads = [f"{layer}.{head}" for layer in of_layers for head in range(trace.n_heads(kind))]
    options = of_layers if view.measure == "rollout" else [*of_heads, *of_layers]
    left, middle, right = st.columns(3)
    left.segmented_control(
        "Lines show",
        trace.measures(kind),
        required=True,
        format_func=SHOWN_NAMES.__getitem__,
        help=f"Weights after the softmax; {MEASURES_HELP}",
        **widgets.field("show", replace(selection, show=view.measure)),
    )
    middle.multiselect(
        "Beside the picked head",
        [one for one in options if one != heads[0]],
        max_selections=MOST_HEADS - 1,
        format_func=written_out,
        placeholder="More heads, each in its own colour",
        help="Draws the lines of these heads too, each in a colour of its own.",
        **widgets.field("heads", replace(selection, heads=tuple(heads[1:]))),
    )
    with right.container(horizontal=True, vertical_alignment="bottom"):
        if selection.threshold == "share":
            lowest, highest = NUMBERS["share"].lowest, NUMBERS["share"].highest
            st.slider(
                "Share of each row",
                min_value=int(lowest),
                max_value=int(highest),
                step=5,
                format="%d\N{NO-BREAK SPACE}%%",
                help="Draws the strongest lines of each query until they hold this share of its row.",
                **widgets.field("share"),
            )
        else:
            lowest, highest = NUMBERS["least"].lowest, NUMBERS["least"].highest
            st.number_input(
                "Weakest line, in percent",
                min_value=float(lowest),
                max_value=float(highest),
                step=1.0,
                format="%g",
                help="Draws lines of this weight and above; of norm-based weights, in percent of the largest.",
                **widgets.field("least"),
            )
        with st.popover("More", icon=":material/tune:", key="flow_more"):
            st.segmented_control(
                "Threshold",
                CHOICES["threshold"],
                required=True,
                format_func={"share": "Share of each row", "weight": "Weight"}.__getitem__,
                help="Leaves out weak lines by how much of their row stronger ones hold, or by their weight alone.",
                **widgets.field("threshold"),
            )


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


view = frame("Token flow")
selection = view.selection
chosen = chosen_heads(view)
heads = chosen[:MOST_HEADS]
patterns = [pattern_of(one, view) for one in heads]
matrices = np.stack([one.weights for one in patterns])
flow = lines_of(matrices, view)
largest = float(matrices.max()) if view.measure == "norms" else 1.0

numbers = view.pattern(renormalise=False)  # what is said are the model's numbers
key = strongest_key(numbers, view.query) if selection.key is None else selection.key
with st.container(key="finding"):
    st.markdown(f"**{place(numbers)}: {literal(finding(numbers, view.query, key))}**")
controls(view, heads)

kept_entry = {
    "query": view.queries.index(view.query),
    "key": None if selection.key is None else view.keys.index(selection.key),
}.get(selection.kept)
axis = view.keys if selection.kept == "key" else view.queries


def keep(side: str, position: int) -> None:
    """Takes the token whose lines are kept as the picked one."""
    match side:
        case "query":
            state.change(kept=side, query=position, key=None)
        case "key":
            state.change(kept=side, key=position)
        case _:
            state.change(kept="")


token_flow(
    flow,
    view.queries,
    view.keys,
    heads=[(one, written_out(one)) for one in heads],
    largest=max(largest, 1e-9),
    query=view.query,
    kept=None if kept_entry is None else (selection.kept, int(axis.positions[kept_entry])),
    on_keep=keep,
    theme=view.theme,
)
said = [literal(note(flow, view, largest)), MEASURE_NOTES[view.measure], hidden_note(view)]
if len(chosen) > len(heads):
    left_out = "; ".join(written_out(one).lower() for one in chosen[MOST_HEADS:])
    said.append(f"Lines of {MOST_HEADS} heads at most are drawn, each in its own colour: without {left_out}.")
st.caption(" ".join(filter(None, said)))
take(
    view,
    {"token_flow": "Token flow"},
    csv=partial(lines_csv, flow, heads, view.queries, view.keys),
    numbers="Lines",
)
verdict.in_sidebar(view.selection)
