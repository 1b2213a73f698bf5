"""The first screen: a sentence, the attention of one head on it, and whether the numbers are the model's."""

import streamlit as st

from attnviz.figures import draw_pattern, draw_projection, draw_ranking
from attnviz.figures.ranking import MOST_BARS
from attnviz.figures.theme import share_text
from attnviz.projection import FEWEST_ITERATIONS, MOST_ITERATIONS
from ui import cache, errors, state, verdict
from ui.components.heatmap_events import heatmap_events
from ui.components.token_strip import token_strip
from ui.frame import frame
from ui.text import literal, quoted
from ui.words import finding, map_note, strongest_key

view = frame("Attention")
selection, trace, kind, theme = view.selection, view.trace, view.kind, view.theme
pattern = trace.pattern(selection.layer, selection.head, kind)
query = view.query
key = strongest_key(pattern, query) if selection.key is None else selection.key
said = finding(pattern, query, key)

token_strip(
    pattern.query_tokens,
    query=query,
    key=key,
    weights=pattern.weights[query] if kind != "cross" else None,
    on_pick=lambda position: state.change(query=position, key=None),
    theme=theme,
)
found, checked = st.columns([5, 3], vertical_alignment="center")
with found.container(key="finding"):
    st.markdown(f"**Layer {selection.layer}, head {selection.head}: {literal(said)}**")
verdict_place = checked.empty()

matrix_column, map_column = st.columns(2, gap="medium")

with matrix_column:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Cells",
            state.CHOICES["show"],
            required=True,
            label_visibility="collapsed",
            format_func=str.capitalize,
            help="Weights after the softmax, or the scaled scores before it.",
            **state.field("show"),
        )
        with st.popover("More", icon=":material/tune:", key="matrix_more"):
            st.segmented_control(
                "Colours",
                state.CHOICES["colour"],
                required=True,
                format_func=str.capitalize,
                help="Logarithmic colours tell small weights apart; the numbers, and scores, stay the same.",
                disabled=selection.show == "scores",
                **state.field("colour"),
            )
            st.segmented_control(
                "Special tokens",
                state.CHOICES["special"],
                required=True,
                format_func=str.capitalize,
                help="Hides the rows and columns of [CLS], [SEP] and their like; renormalised rows sum to 1 again.",
                **state.field("special"),
            )
    only_special = pattern.query_tokens.is_special.all() or pattern.key_tokens.is_special.all()
    hiding = selection.special != "shown" and not only_special
    shown = pattern
    if hiding:
        shown = pattern.without_special(renormalise=selection.special == "renormalised")
    st.plotly_chart(
        draw_pattern(shown, show=selection.show, colour=selection.colour, picked=(query, key), theme=theme),
        theme=None,
        key="matrix",
        config={"displayModeBar": False, "scrollZoom": False},
        alt=f"Attention matrix of layer {selection.layer}, head {selection.head}: {said}",
    )
    heatmap_events(
        shown,
        chart="matrix",
        show=selection.show,
        picked=(query, key),
        on_pick=lambda query, key: state.change(query=query, key=key),
        theme=theme,
    )
    if selection.special != "shown" and only_special:
        st.caption("Special tokens are shown: without them nothing would be left.")
    if hiding:
        st.caption(
            f"Special tokens are hidden; behind each query stands the share of its weight that lies on them, "
            f"{share_text(float(shown.hidden_weight.mean()))} on average."
            + (
                " In the matrix the rest is divided by what remains, so that rows sum to 1; elsewhere the weights "
                "are the model's." * (selection.special == "renormalised")
            )
        )
    st.plotly_chart(
        draw_ranking(pattern, query, picked_key=key, theme=theme),
        theme=None,
        key="ranking",
        config={"displayModeBar": False},
        alt=f"Keys ranked by their weight: {said}",
    )
    rest = len(pattern.key_position) - MOST_BARS
    st.caption(
        f"Keys of {quoted(pattern.query_tokens.labels[query])}, strongest first"
        + (f"; {rest:,} weaker ones are not listed." if rest > 0 else ".")
    )

with map_column:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Distance",
            state.CHOICES["metric"],
            required=True,
            label_visibility="collapsed",
            format_func=str.capitalize,
            help="Cosine compares the directions of the vectors, euclidean also their lengths.",
            **state.field("metric"),
        )
        with st.popover("More", icon=":material/tune:", key="map_more"):
            st.number_input(
                "Perplexity",
                min_value=1.0,
                max_value=100.0,
                step=1.0,
                format="%g",
                help="How many neighbours each point minds: low shows small groups, high the whole.",
                **state.field("perplexity"),
            )
            st.number_input(
                "Iterations",
                min_value=FEWEST_ITERATIONS,
                max_value=MOST_ITERATIONS,
                step=250,
                help="Steps of the optimiser; more let the points settle.",
                **state.field("iterations"),
            )
            st.number_input(
                "Seed",
                min_value=0,
                max_value=state.LARGEST_SEED,
                step=1,
                help="Seed of the noise that the points start with; the same seed gives the same picture.",
                **state.field("seed"),
            )
        waiting = st.empty()
    with errors.explained():
        with waiting, st.spinner("Laying out the map …", show_time=True):  # the last map stays until then
            projection = cache.projection(
                selection.source,
                selection.layer,
                selection.head,
                kind,
                metric=selection.metric,
                perplexity=selection.perplexity,
                iterations=selection.iterations,
                seed=selection.seed,
            )
        st.plotly_chart(
            draw_projection(projection, pattern.weights, picked=(query, key), theme=theme),
            theme=None,
            key="map",
            config={"displayModeBar": False},
            alt=f"Map of the {len(projection.points)} query and key vectors of this head: {map_note(projection)}",
        )
        st.caption(map_note(projection))

with verdict_place, errors.explained():
    verdict.show(cache.report(selection.source), selection)
