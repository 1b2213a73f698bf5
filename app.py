"""The first screen: a sentence, the attention of one head on it, and whether the numbers are the model's."""

import streamlit as st

from attnviz.figures import draw_pattern, draw_projection, draw_ranking
from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.projection import hides_labels
from attnviz.figures.ranking import MOST_BARS
from attnviz.figures.theme import share_text
from attnviz.maps.layouts import FEWEST_ITERATIONS, LARGEST_SEED, MOST_ITERATIONS
from ui.choice import state, widgets
from ui.choice.selection import CHOICES
from ui.components.heatmap_events import heatmap_events
from ui.components.label_room import label_room
from ui.components.token_strip import token_strip
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.chart import chart
from ui.page.frame import frame_around
from ui.page.view import hidden_note
from ui.words.findings import (
    MEASURE_NOTES,
    MEASURES_HELP,
    SHOWN_NAMES,
    WITHOUT_NORMS,
    WITHOUT_ROOM,
    finding,
    map_note,
    name,
    place,
    strongest_key,
)
from ui.words.glossary import linked, terms
from ui.words.literal import literal
from ui.work import cache

with frame_around("Attention") as view:
    selection, trace, kind, theme = view.selection, view.trace, view.kind, view.theme
    weights = trace.weights(selection.layer, selection.head, kind)
    pattern = view.pattern(renormalise=False)  # what is said are the model's numbers
    query = view.query
    key = strongest_key(pattern, query) if selection.key is None else selection.key
    said = finding(pattern, query, key)

    token_strip(
        trace.query_tokens(kind),
        query=query,
        key=key,
        weights=weights[query] if kind != "cross" else None,
        mask_label=cache.mask_label(selection.source) if kind == "encoder" else None,
        on_pick=lambda position: state.change(query=position, key=None),
        on_mask=state.mask,
        theme=theme,
    )
    if selection.masked and not selection.bundle:
        st.page_link(
            "pages/compare.py",
            label="Compare with the text before it was masked",
            icon=":material/compare_arrows:",
            query_params=selection.to_params(),
            help="Lays this head beside itself without the mask token, with every difference.",
        )
    found, checked = st.columns([5, 3], vertical_alignment="center")
    with found.container(key="finding"):
        st.markdown(f"**{place(pattern)}: {literal(said)}**")
    verdict_place = checked.empty()

    matrix_column, map_column = st.columns(2, gap="medium")

    with matrix_column:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.segmented_control(
                "Cells",
                [one for one in CHOICES["show"] if one == "scores" or one in trace.measures(kind)],
                required=True,
                label_visibility="collapsed",
                format_func=SHOWN_NAMES.__getitem__,
                help=f"Weights after the softmax; scores before it; {MEASURES_HELP}",
                **widgets.field("show"),
            )
            with st.popover("More", icon=":material/tune:", key="matrix_more"):
                st.segmented_control(
                    "Colours",
                    CHOICES["colour"],
                    required=True,
                    format_func=str.capitalize,
                    help="Logarithmic colours tell small weights apart; the numbers, and scores, stay the same.",
                    disabled=selection.show == "scores",
                    **widgets.field("colour"),
                )
        shown = view.pattern() if selection.special == "renormalised" else pattern
        chart(
            draw_pattern(
                shown, show=selection.show, colour=selection.colour, picked=(query, key), theme=theme
            ),
            key="matrix",
            alt=f"Attention matrix, {place(pattern)}: {said}",
        )
        heatmap_events(
            shown,
            chart="matrix",
            show=selection.show,
            picked=(query, key),
            on_pick=lambda query, key: state.change(query=query, key=key),
            theme=theme,
        )

with matrix_column:
    without = "" if "norms" in trace.measures(kind) else WITHOUT_NORMS
    if note := " ".join(filter(None, [MEASURE_NOTES[shown.measure], without, hidden_note(view)])):
        if shown.hidden_weight.any() and shown.measure != "norms":
            note += (
                f" Behind each query stands the share of its weight that lies on what is hidden, "
                f"{share_text(float(shown.hidden_weight.mean()))} on average."
            )
        if selection.special == "renormalised" and view.hides_special:
            note += (
                " In the matrix the rest is divided by what remains, so that rows sum to 1; elsewhere the weights "
                "are the model's."
            )
        st.caption(note)
    if pattern.queries.index(query) is not None:
        chart(
            draw_ranking(pattern, query, picked_key=key, theme=theme),
            key="ranking",
            alt=f"Keys ranked by their weight: {said}",
        )
        rest = len(pattern.keys) - MOST_BARS
        st.caption(
            f"{linked('Key', 'Keys')} of the {linked('Query')} {literal(name(pattern.queries, query))}, largest "
            f"{linked('Weight') if pattern.measure == 'weights' else MEASURE_NAMES[pattern.measure]} first"
            + (f"; {rest:,} weaker ones are not listed." if rest > 0 else ".")
        )

with map_column:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "Distance",
            CHOICES["metric"],
            required=True,
            label_visibility="collapsed",
            format_func=str.capitalize,
            help="Cosine compares the directions of the vectors, euclidean also their lengths.",
            **widgets.field("metric"),
        )
        with st.popover("More", icon=":material/tune:", key="map_more"):
            st.number_input(
                "Perplexity",
                min_value=1.0,
                max_value=100.0,
                step=1.0,
                format="%g",
                help="How many neighbours each point minds: low shows small groups, high the whole.",
                **widgets.field("perplexity"),
            )
            st.number_input(
                "Iterations",
                min_value=FEWEST_ITERATIONS,
                max_value=MOST_ITERATIONS,
                step=250,
                help="Steps of the optimiser; more let the points settle.",
                **widgets.field("iterations"),
            )
            st.number_input(
                "Seed",
                min_value=0,
                max_value=LARGEST_SEED,
                step=1,
                help="Seed of the noise that the points start with; the same seed gives the same picture.",
                **widgets.field("seed"),
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
        drawn_map = draw_projection(projection, weights, picked=(query, key), theme=theme)
        chart(
            drawn_map,
            key="map",
            alt=f"Map of the {len(projection.points)} query and key vectors of this head: {map_note(projection)}",
        )
        st.caption(map_note(projection) + f" {WITHOUT_ROOM}" * hides_labels(drawn_map))
        label_room("map", note="" if hides_labels(drawn_map) else WITHOUT_ROOM, theme=theme)
        st.page_link(
            "pages/space.py",
            label="More maps of these vectors",
            icon=":material/scatter_plot:",
            query_params=selection.to_params(),
            help="Other methods, one of them fitted to the attention itself, and how reliable each is.",
        )

with verdict_place, errors.explained():
    verdict.show(selection)

terms("Token", "Special token", "Attention matrix", "Norm-based weight", "Rollout", "t-SNE", "Perplexity")
st.page_link(
    "pages/claims.py",
    label="What weights do not say",
    icon=":material/forum:",
    query_params=selection.to_params(),
    help="A weight says where a head takes its mixture from, not what the answer rests on: four claims, measured.",
)
pictures = {"matrix": "Attention matrix", "ranking": "Ranked keys", "map": "Map of queries and keys"}
take(view, pictures)
