"""The experiment and what is on screen; step 2, the map of the head, with the selected query and with another one."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import streamlit as st

from attnviz.figures import draw_projection
from attnviz.maps.reliability import rank_by_distance
from attnviz.model.catalogue import default_model
from attnviz.records import AttentionPattern, Kind, Projection, bare
from ui.choice.presets import Preset, first_preset
from ui.choice.selection import Selection, first_selection
from ui.rooms.explore.map_settings import MapSettings, link_to_others
from ui.rooms.explore.stage.screen import Screen
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.findings import amount, lines_note, map_note, name, strongest_key
from ui.words.literal import literal
from ui.words.reliability import read, reading_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One sentence, one head, one query."""

    selection: Selection
    preset: Preset

    @classmethod
    def here(cls) -> "Experiment":
        """With bert-base-uncased if its weights are on disk, otherwise with the bundled model and its own head."""
        model = default_model()
        preset = first_preset(model)
        labels = cache.trace(first_selection(model).source).tokens.labels
        query, key = labels.index(preset.query or ""), labels.index(preset.key or "")
        return cls(selection=first_selection(model).but(query=query, key=key), preset=preset)

    def is_shown_in(self, view: View, key: int) -> bool:
        """Whether the screen shows the experiment itself."""
        shown, own = view.selection, self.selection
        return (shown.source, shown.place, view.query, key) == (own.source, own.place, own.query, own.key)


@dataclass(frozen=True, kw_only=True)
class Door:
    """One head on a text, and the experiment that it may be a variation of."""

    view: View
    screen: Screen
    experiment: Experiment

    @classmethod
    def of(cls, view: View) -> "Door":
        """What the view shows."""
        return cls(view=view, screen=Screen.of(view), experiment=Experiment.here())

    @cached_property
    def weights(self) -> AttentionPattern:
        """Whatever the matrix shows: the lines of the maps and the numbers of the experiment are weights."""
        selection = self.view.selection
        return cache.pattern(selection.source, *selection.place, self.view.kind, "weights")


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


def near_and_far(door: Door) -> None:
    """Draws the same map twice: with the selected query and key, and with another query and its strongest key."""
    view, pattern, key = door.view, door.weights, door.screen.key
    selection = view.selection
    st.subheader("2. Are query and key near each other?", anchor=False)
    projection = door_map(selection, view.kind)
    st.markdown(
        "Articles explain this experiment with a map: each query and key of the head is a point, and a query is expected near "
        "the key that it attends to. A flat map cannot keep every distance, so attnviz measures how reliable this one is. "
        + read(reading_of(projection.in_map, projection.chance))
    )
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
                draw_projection(projection, picked=(query, to), theme=view.theme),
                key=chart_key,
                alt=f"Query-key map. {sentence}",
            )
    st.caption(f"{map_note(projection)} {lines_note(selection.show)}")
    link_to_others()
