"""The joint map as it is drawn: its points with the selected token, the highlighted ones, and how reliable it is."""

from functools import partial

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures.joint_map import draw_joint_map, hover_texts
from attnviz.figures.labels import label_at
from attnviz.figures.numbers import counted, percent_text, share_text
from attnviz.maps.collection import Collection
from attnviz.maps.joint_map import JointMap
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.records import Axis, Role
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.components.map_links import Mark, map_links
from ui.components.token_strip import token_strip
from ui.rooms.many_texts.joint_map.laid_out import Screen
from ui.rooms.many_texts.own_corpora import digest
from ui.shell.chart import chart
from ui.shell.navigation import link_to
from ui.shell.table import whole_rows
from ui.words import findings as words
from ui.words.literal import literal, quoted
from ui.words.reliability import read, reading_of

CHART = "joint_map"
N_LINES = 5  # strongest partners that the selected point is joined to
_SPACE_NOTES = {
    "raw": "Vectors are fed in as the model has them.",
    "centred": "Keys are moved so that their mean over all sentences is zero: one shift for all, so the weights within "
    "each sentence stay.",
    "balanced": "Keys are centred over all sentences, then queries and keys scaled to the same median length: every weight "
    "stays.",
    "lifted": "Keys are centred over all sentences and lifted so that a nearer key always has the larger q·k, before "
    "the map flattens that.",
}


def draw(screen: Screen) -> Figure:
    """The map, with the selected point and its lines drawn over it."""
    view, collection, points, token = screen.view, screen.collection, screen.map.points, screen.token
    shown = np.ones(collection.n_tokens, dtype=bool)
    if view.selection.special != "shown":
        shown &= ~np.concatenate([tokens.is_special for tokens in collection.tokens])
    if view.selection.without_first:
        shown &= np.concatenate([np.arange(len(tokens)) > 0 for tokens in collection.tokens])
    drawn = draw_joint_map(
        points,
        collection.tokens,
        hover_texts(collection.tokens),
        tint=screen.chosen.tint,
        lengths=np.linalg.norm(np.concatenate(collection.vectors(screen.head)), axis=1),
        shown=shown,
        matches=found(screen),
        theme=view.theme,
    )
    chart(drawn, key=CHART, alt=f"Map of {len(points):,} query and key vectors. {screen.place}.")
    side, labels = screen.chosen.side, _labels(collection)
    role: Role = "query" if side == "query" else "key"
    other: Role = "key" if side == "query" else "query"

    def mark(token: int, role: Role, weight: float = 1.0) -> Mark:
        x, y = points[token + (role == "key") * collection.n_tokens]
        return Mark(x=float(x), y=float(y), label=labels[token], role=role, weight=weight)

    partners = [] if token is None else links(screen, token, side)
    map_links(
        CHART,
        None if token is None else mark(token, role),
        [mark(partner, other, weight) for partner, weight in partners],
        on_pick=partial(pick, collection),
        theme=view.theme,
    )
    st.caption(literal(notes(screen)))
    return drawn


def _labels(collection: Collection) -> list[str]:
    """A label for each token, distinct within its sentence."""
    return [label_at(label, at) for tokens in collection.tokens for at, label in enumerate(tokens.labels)]


def notes(screen: Screen) -> str:
    """How the map was made, what it leaves out, and how to explore it."""
    made, collection, selection = screen.map, screen.collection, screen.view.selection
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
        "Special tokens are not drawn." if selection.special != "shown" else "",
        "The first token of each sentence is not drawn." if selection.without_first else "",
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


def found(screen: Screen) -> np.ndarray | None:
    """Indices of the tokens that are the highlighted one; None if none is searched for."""
    wanted = screen.chosen.search
    return screen.collection.find(wanted) if wanted.strip() else None


def beside(screen: Screen) -> None:
    """The occurrences of the highlighted token, if any, and how reliable the map is."""
    if (rows := found(screen)) is not None:
        matches(screen, rows)
    reliability(screen)


def matches(screen: Screen, rows: np.ndarray) -> None:
    """The matching tokens, each with its sentence; a row selects its token."""
    collection, wanted = screen.collection, quoted(screen.chosen.search)
    if not len(rows):
        st.caption(f"No token and no word of these sentences is {wanted}.")
        return
    sentences = collection.sentence[rows]
    n_sentence = len(np.unique(sentences))
    st.markdown(f"**{wanted}: {counted(len(rows), 'token')} in {counted(n_sentence, 'sentence')}**")
    side = ("query", "key").index(screen.chosen.side)
    key = f"matches_{digest(screen.chosen.search)[:8]}"
    st.dataframe(
        {
            "sentence": sentences + 1,
            "token": [
                label_at(
                    collection.tokens[sentence].labels[collection.position[at]], int(collection.position[at])
                )
                for sentence, at in zip(sentences, rows, strict=True)
            ],
            "text": [collection.tokens[sentence].text for sentence in sentences],
        },
        hide_index=True,
        height=whole_rows(len(rows)),
        **widgets.tie_row(key, rows.tolist(), screen.token, lambda picked: pick(collection, side, picked)),
    )


def pick(collection: Collection, side: int, token: int) -> None:
    """Selects a token's query (0) or key (1)."""
    if 0 <= token < collection.n_tokens and side in (0, 1):
        state.change(
            joint_sentence=int(collection.sentence[token]),
            joint_token=int(collection.position[token]),
            joint_side=("query", "key")[side],
        )


def links(screen: Screen, token: int, side: str) -> list[tuple[int, float]]:
    """The strongest partners of a token within its sentence, with their weights, which are positive, strongest first."""
    sentence, at = (int(of[token]) for of in (screen.collection.sentence, screen.collection.position))
    weights, start = screen.collection.weights(sentence, screen.head), screen.collection.start(sentence)
    row = weights[at] if side == "query" else weights[:, at]
    strongest = np.argsort(-row, kind="stable")[:N_LINES]
    return [(start + int(place), float(row[place])) for place in strongest if row[place] > 0]


def in_words(collection: Collection, token: int, side: str, partners: list[tuple[int, float]]) -> str:
    """What the head does with the selected token; plain text."""
    number, position = int(collection.sentence[token]), int(collection.position[token])
    axis = Axis.of(collection.tokens[number])
    this = words.name(axis, position)
    listed = ", ".join(
        f"{words.name(axis, int(collection.position[other]))} {share_text(weight)}"
        for other, weight in partners
    )
    if side == "query":
        sentence = f"query {this} attends to {listed}" if partners else f"query {this} sees no key"
    else:
        sentence = (
            f"key {this} gets attention from {listed}" if partners else f"no query gives weight to key {this}"
        )
    return f"Sentence {number + 1}, line {collection.line[number]}: {sentence}"


def sentence(screen: Screen) -> None:
    """The selected token's sentence, what the head does there, and links to it on other pages."""
    token, side, collection = screen.token, screen.chosen.side, screen.collection
    if token is None:
        if screen.chosen.sentence is not None:
            st.caption(":material/info: The token that the link selects is not among these sentences.")
        st.caption("Select a point to see its sentence, with lines to its strongest keys.")
        return
    number, position = int(collection.sentence[token]), int(collection.position[token])
    tokens = collection.tokens[number]
    weights = collection.weights(number, screen.head)
    partners = links(screen, token, side)
    first = int(collection.position[partners[0][0]]) if partners else position
    query, key = (position, first) if side == "query" else (first, position)
    with st.container(key="picked_sentence"):
        st.markdown(f"**{literal(in_words(collection, token, side, partners))}**")
    token_strip(
        tokens,
        query=query,
        key=key,
        weights=weights[query],
        mask_label=None,
        on_pick=lambda position: pick(collection, 0, collection.start(number) + position),
        on_mask=lambda position: None,
        theme=screen.view.theme,
    )
    there = screen.view.selection.alone(
        tokens.text, cut=any(tokens.n_cut), query=query, key=key, layer=collection.layer, head=screen.head
    )
    with st.container(horizontal=True):
        for part, label in (
            ("Together", "Explore"),
            ("Several heads", "Several heads"),
            ("Other maps", "Other maps"),
        ):
            link_to(
                part,
                label=f"Open in {label}",
                selection=there,
                help="Shows this sentence there, with this query and key selected.",
            )


def headline(screen: Screen) -> str:
    """The share of queries whose nearest key has the largest weight, and the share by chance; plain text."""
    made = screen.map
    if not made.in_map.n_query:
        return (
            f"{screen.place}: no query sees two keys, so there is no order of keys to compare with distances"
        )
    sentence = (
        f"{screen.place}: the nearest key of the sentence has the largest weight for {share(made.in_map.nearest_agreement)} of "
        f"{_queries(made)}"
    )
    if reading_of(made.in_map, made.chance).order == "unknown":
        return sentence
    return f"{sentence}; with the key points permuted, at most one map in twenty exceeds {share(made.chance.nearest)}"


def _queries(made: JointMap) -> str:
    """The queries that the figures are over, with what sets them apart if these are not all queries."""
    n_query = made.in_map.n_query
    apart = " that see two keys or more" * (2 * n_query != len(made.points))
    return f"the {counted(n_query, 'query', 'queries')}{apart}"


def reliability(screen: Screen) -> None:
    """How reliable the map is, in numbers and in words."""
    st.markdown("**Reliability**")
    columns = {
        "score and distance": [
            "rank correlation, mean",
            "the same, worst query",
            "nearest has the largest weight",
        ]
    }
    for title, of in (("map", screen.map.in_map), ("vectors", screen.map.in_space)):
        correlations = map(words.correlation_text, (of.order_correlation, of.worst_correlation))
        columns[title] = [*correlations, share(of.nearest_agreement)]
    st.dataframe(columns, hide_index=True, height=whole_rows(3), key="reliability")
    st.caption(note(screen.map))


def note(made: JointMap) -> str:
    """What the figures of a joint map mean for a reader; plain text."""
    reading = reading_of(made.in_map, made.chance)
    sentences = [read(reading)]
    if reading.order != "unknown":
        sentences.append(f"{words.by_chance(made.chance)}; points are permuted within their sentence.")
    if not np.isnan(made.trustworthiness):
        is_sample = made.n_compared < len(made.points)
        sample = f" (a sample of {made.n_compared:,} points)" * is_sample
        sentences.append(
            f"Trustworthiness {made.trustworthiness:.2f}: 1 when all neighbours on the map are neighbours among the vectors, "
            f"about 0.5 by chance{sample}."
        )
    if made.in_map.n_query:
        sentences.append(
            f"Within each sentence, over {_queries(made)}: correlation −1 where a nearer key always has the higher score, 0 "
            "where the ranks of distance and score do not go together."
        )
    return " ".join(sentences)


def share(number: float) -> str:
    """A share in whole percent, or a note that it is undefined."""
    return "none" if np.isnan(number) else percent_text(number)
