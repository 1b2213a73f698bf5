"""Step 2: the map of the head, with the selected query and with another one."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.figures import draw_projection
from attnviz.maps.reliability import rank_by_distance
from attnviz.records import AttentionPattern, Kind, Projection, bare
from ui.choice.selection import Selection
from ui.rooms.explore.map_settings import MapSettings, link_to_others
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import amount, lines_note, map_note, name, strongest_key
from ui.words.literal import literal
from ui.words.reliability import read, reading_of

OTHER = "watching"
"""The query that the articles compare with the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A key's rank among all keys by distance from a query."""

    n_nearer: int
    n_key: int


def near(projection: Projection, query: int, key: int) -> Near:
    """How many keys of a map are nearer to the query than this key."""
    rank = rank_by_distance(projection, query, key)
    return Near(n_nearer=rank - 1, n_key=len(projection.key_tokens))


def in_words(facts: Near) -> str:
    """How many keys are nearer on the map, in words."""
    if not facts.n_nearer:
        return "no key is nearer on the map"
    return f"{facts.n_nearer} of the {facts.n_key} keys {'is' if facts.n_nearer == 1 else 'are'} nearer on the map"


def other_query(pattern: AttentionPattern, query: int, key: int) -> int:
    """Position of "watching"; if the text lacks it, of the query with the smallest weight on the key."""
    tokens, column = pattern.queries.tokens, pattern.keys.index(key)
    labels = [*map(bare, tokens.labels)]
    if OTHER in labels and labels.index(OTHER) != query:
        return labels.index(OTHER)
    given = pattern.weights[:, column if column is not None else 0].copy()
    given[pattern.queries.is_special] = np.inf
    if (row := pattern.queries.index(query)) is not None:
        given[row] = np.inf
    return int(pattern.queries.positions[given.argmin()])


def door_map(selection: Selection, kind: Kind) -> Projection:
    """The map of the articles: t-SNE, cosine distance, perplexity 5."""
    return cache.projection(
        selection.source,
        *selection.place,
        kind,
        metric="cosine",
        perplexity=5.0,
        iterations=selection.of(MapSettings).iterations,
        seed=selection.seed,
    )


def near_and_far(view: View, pattern: AttentionPattern, key: int) -> str:
    """Draws the same map twice: with the selected query and key, and with another query and its strongest key.

    Returns how the map was made and how reliable it is.
    """
    selection = view.selection
    st.subheader("2. Are query and key near each other?", anchor=False)
    projection = door_map(selection, view.kind)
    st.markdown(
        "Articles explain this experiment with a map: each query and key of the head is a point, and a query is expected near "
        "the key that it attends to. A flat map cannot keep every distance, so attnviz measures how reliable this one is. "
        + read(reading_of(projection.in_map, projection.chance))
    )
    weights = view.trace.weights(*selection.place, view.kind)
    queries = (view.query, other_query(pattern, view.query, key))
    for column, query, chart_key in zip(
        st.columns(2, gap="medium"), queries, ("door_map", "door_map_other"), strict=True
    ):
        with column:
            to = key if query == view.query else strongest_key(pattern, query)
            row, at = pattern.queries.index(query), pattern.keys.index(to)
            given = f"gives {amount(pattern, row, at)} to" if row is not None and at is not None else "and"
            sentence = f"{name(pattern.queries, query)} {given} {name(pattern.keys, to)}; {in_words(near(projection, query, to))}."
            with st.container(key=f"{chart_key}_said"):
                st.markdown(f"**{literal(sentence)}**")
            chart(
                draw_projection(projection, weights, picked=(query, to), theme=view.theme),
                key=chart_key,
                alt=f"Query-key map. {sentence}",
            )
    note = map_note(projection)
    st.caption(f"{note} {lines_note(selection.show)}")
    link_to_others()
    return note
