"""Which heads the lines are of, and what they are chosen by."""

from dataclasses import replace

import streamlit as st

from attnviz.figures.theme import LIGHT
from ui.choice import widgets
from ui.choice.selection import CHOICES, NUMBERS
from ui.page.view import View
from ui.sections.flow.lines import written_out
from ui.words.findings import MEASURES_HELP, SHOWN_NAMES

MOST_HEADS = len(LIGHT.heads)  # as many as there are colours that can be told apart


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
        **widgets.field("show", selection.but(show=view.measure)),
    )
    middle.multiselect(
        "Beside the picked head",
        [one for one in options if one != heads[0]],
        max_selections=MOST_HEADS - 1,
        format_func=written_out,
        placeholder="More heads, each in its own colour",
        help="Draws the lines of these heads too, each in a colour of its own.",
        **widgets.field("heads", selection.but(heads=tuple(heads[1:]))),
    )
    with right.container(horizontal=True, vertical_alignment="bottom"):
        if selection.flow.threshold == "share":
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
