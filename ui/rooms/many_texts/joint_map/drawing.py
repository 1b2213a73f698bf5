"""The joint map with its highlights, its notes, and the points as CSV."""

from functools import partial

import numpy as np
import streamlit as st

from attnviz.figures.joint_map import draw_joint_map, hover_texts
from attnviz.figures.labels import label_at
from attnviz.figures.numbers import counted
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.records import Role
from attnviz.records.table import table_csv
from ui.components.map_links import Mark, map_links
from ui.rooms.many_texts.joint_map.choices import JointMapSettings
from ui.rooms.many_texts.joint_map.joint_map import Screen
from ui.rooms.many_texts.joint_map.picked_token import links, pick
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words import findings as words
from ui.words.literal import literal

CHART = "joint_map"


_SPACE_NOTES = {
    "raw": "Vectors are fed in as the model has them.",
    "centred": "Keys are moved so that their mean over all sentences is zero: one shift for all, so the weights within "
    "each sentence stay.",
    "balanced": "Keys are centred over all sentences, then queries and keys scaled to the same median length: every weight "
    "stays.",
    "lifted": "Keys are centred over all sentences and lifted so that a nearer key always has the larger q·k, before "
    "the map flattens that.",
}


def draw(view: View, screen: Screen, matches: np.ndarray | None, token: int | None) -> None:
    """The map, with the selected point and its lines drawn over it."""
    collection, points = screen.collection, screen.map.points
    vectors = collection.vectors(screen.head)
    shown = np.ones(collection.n_tokens, dtype=bool)
    if view.selection.special != "shown":
        shown &= ~np.concatenate([token.is_special for token in collection.tokens])
    if view.selection.without_first:
        shown &= np.concatenate([np.arange(len(token)) > 0 for token in collection.tokens])
    chart(
        draw_joint_map(
            points,
            collection.tokens,
            hover_texts(collection.tokens),
            tint=view.selection.of(JointMapSettings).tint,
            lengths=np.linalg.norm(np.concatenate(vectors), axis=1),
            shown=shown,
            matches=matches,
            theme=view.theme,
        ),
        key=CHART,
        alt=f"Map of {len(points):,} query and key vectors. {screen.place}.",
    )
    side = view.selection.of(JointMapSettings).side
    labels = [
        label_at(label, position)
        for token in collection.tokens
        for position, label in enumerate(token.labels)
    ]

    def mark(token: int, role: Role, weight: float = 1.0) -> Mark:
        x, y = points[token + (role == "key") * collection.n_tokens]
        return Mark(x=float(x), y=float(y), label=labels[token], role=role, weight=weight)

    other: Role = "key" if side == "query" else "query"
    map_links(
        CHART,
        None if token is None else mark(token, "query" if side == "query" else "key"),
        []
        if token is None
        else [mark(link.token, other, link.weight) for link in links(screen, token, side)],
        on_pick=partial(pick, collection),
        theme=view.theme,
    )
    st.caption(literal(notes(view, screen)))


def notes(view: View, screen: Screen) -> str:
    """How the map was made, what it leaves out, and how to explore it."""
    made, collection = screen.map, screen.collection
    with_settings = "".join(
        f", {name.replace('_', ' ')} {value:g}"
        for name, value in made.parameters.items()
        if name != "iterations"
    )
    sentences = [
        f"{METHOD_NAMES[made.method]}{with_settings}: {counted(len(made.points), 'point')} of "
        f"{counted(collection.n_tokens, 'token')} in {counted(len(collection.tokens), 'sentence')}.",
        made.remark,
        *collection.remarks(),
        _SPACE_NOTES[made.space],
        words.BIASED if collection.attention[0].is_biased else "",
        "Each sentence was read by itself: between two sentences there is no attention, only similarity of vectors. That "
        "is why there is no attention map here.",
        "Special tokens are not drawn." if view.selection.special != "shown" else "",
        "The first token of each sentence is not drawn." if view.selection.without_first else "",
        "Circles are queries, diamonds keys. Drag over a part to enlarge it; double-click or double-tap to show all.",
    ]
    return " ".join(filter(None, sentences))


def as_csv(screen: Screen) -> bytes:
    """A line for every point."""
    collection = screen.collection
    labels = [
        f"{position} {label}" for token in collection.tokens for position, label in enumerate(token.labels)
    ]
    vectors = np.concatenate(collection.vectors(screen.head))
    lengths = np.linalg.norm(vectors, axis=1)
    lines = collection.line[collection.sentence]
    rows = (
        [("query", "key")[side], lines[token], labels[token], *screen.map.points[row], lengths[row]]
        for row in range(len(vectors))
        for side, token in [divmod(row, collection.n_tokens)]
    )
    return table_csv(["role", "line", "token", "x", "y", "length"], rows)
