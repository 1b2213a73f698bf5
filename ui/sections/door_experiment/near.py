"""Step 2: the map of the head, with the query selected and with another one."""

import numpy as np
import streamlit as st

from attnviz.figures import draw_projection
from attnviz.maps.faithfulness import rank_by_distance
from attnviz.records import AttentionPattern, Kind, Projection, bare
from ui.choice.selection import Selection
from ui.page.chart import chart
from ui.page.view import View
from ui.sections.other_maps import other_maps
from ui.words.findings import amount, lines_note, map_note, name, strongest_key
from ui.words.judgement import Judgement, judge
from ui.words.literal import literal
from ui.work import cache

OTHER = "watching"
"""The query that the articles set beside the first one."""
WORTH: dict[Judgement, str] = {
    "unknown": "here that cannot be told, since no query sees enough keys.",
    "misleads": "here little. Which keys are near is chance; only the lines, the attention weights, show what the head does.",
    "rough": "here something. Near keys tend to have the larger scores, with exceptions; the lines are the attention weights.",
    "fair": "here much. Of two keys that a query sees, the nearer is mostly the stronger.",
}
"""Why a reader looks at the map, by what it is good for; a half-sentence and what follows from it."""


def other_query(pattern: AttentionPattern, query: int, key: int) -> int:
    """Position of "watching"; where the text has none, of the query that gives the key least."""
    tokens, column = pattern.queries.tokens, pattern.keys.index(key)
    labels = [*map(bare, tokens.labels)]
    if OTHER in labels and labels.index(OTHER) != query:
        return labels.index(OTHER)
    given = pattern.weights[:, column if column is not None else 0].copy()
    given[pattern.queries.is_special] = np.inf
    given[pattern.queries.positions == query] = np.inf
    return int(pattern.queries.positions[given.argmin()])


def door_map(selection: Selection, kind: Kind) -> Projection:
    """The map of the articles: t-SNE, cosine distance, perplexity 5."""
    return cache.projection(
        selection.source,
        *selection.place,
        kind,
        metric="cosine",
        perplexity=5.0,
        iterations=selection.maps.iterations,
        seed=selection.seed,
    )


def near_and_far(view: View, pattern: AttentionPattern, key: int) -> str:
    """The same map twice: a query whose strongest key is near, and one whose strongest key is another.

    Returns how the map was made and how reliable it is.
    """
    selection = view.selection
    st.subheader("2. Are query and key near each other?", anchor=False)
    projection = door_map(selection, view.kind)
    chance = cache.chances(selection.source, view.kind)[selection.layer]
    st.markdown(
        "Articles explain this experiment with a map: each query and key of the head is a point, and a query is expected near "
        "the key that it attends to. A flat map cannot keep every distance, so attnviz measures what this one is worth: "
        f"{WORTH[judge(projection.in_map, chance)]}"
    )
    weights = view.trace.weights(*selection.place, view.kind)
    n_key = len(projection.key_tokens)
    queries = (view.query, other_query(pattern, view.query, key))
    for column, query, chart_key in zip(
        st.columns(2, gap="medium"), queries, ("door_map", "door_map_other"), strict=True
    ):
        with column:
            to = key if query == view.query else strongest_key(pattern, query)
            row, at = pattern.queries.index(query), pattern.keys.index(to)
            rank = rank_by_distance(projection, query, to)
            given = f"gives {amount(pattern, row, at)} to" if row is not None and at is not None else "and"
            nearer = (
                "no key is nearer on the map"
                if rank == 1
                else f"{rank - 1} of the {n_key} keys {'is' if rank == 2 else 'are'} nearer on the map"
            )
            said = f"{name(pattern.queries, query)} {given} {name(pattern.keys, to)}; {nearer}."
            with st.container(key=f"{chart_key}_said"):
                st.markdown(f"**{literal(said)}**")
            chart(
                draw_projection(projection, weights, picked=(query, to), theme=view.theme),
                key=chart_key,
                alt=f"Query-key map. {said}",
            )
    note = map_note(projection, chance)
    st.caption(f"{note} {lines_note(selection.show)}")
    other_maps()
    return note
