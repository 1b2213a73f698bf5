"""What does a head do over many sentences? All their queries and keys in one map."""

from functools import partial

import numpy as np
import streamlit as st

from attnviz.figures.collection import TINTS, draw_collection, hover_texts
from attnviz.figures.theme import percent_text
from attnviz.maps.joint_map import METHOD_NAMES
from attnviz.records import Role
from attnviz.records.table import table_csv
from ui.choice import widgets
from ui.components.map_links import Mark, map_links
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View
from ui.sections.collection import joint_map, lines
from ui.sections.collection.joint_map import Screen
from ui.sections.collection.picked_token import links, pick, picked_token, sentence
from ui.sections.space import belief
from ui.words import findings as words
from ui.words.literal import literal, quoted

CHART = "collection_map"
_TINT_NAMES = {"token": "Frequent tokens", "norm": "Length of vector", "special": "Special or not"}
_SPACE_NOTES = {
    "raw": "Vectors are fed in as the model has them.",
    "centred": "Keys are moved so that their mean over all sentences is zero: one shift for all, so the weights within "
    "each sentence stay.",
    "balanced": "Keys are centred over all sentences, then queries and keys scaled to the same median length: every weight "
    "stays.",
    "lifted": "Keys are centred over all sentences and lifted so that a nearer key always has the larger q·k, before "
    "the map flattens that.",
}


def controls(view: View) -> None:
    """How the map is made and coloured, and the token that stands out."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        lines.own_lines()
        joint_map.method()
        st.selectbox(
            "Colour by",
            TINTS,
            format_func=lambda one: _TINT_NAMES.get(one, one.capitalize()),
            help="What the colour of a point says; its shape always says whether it is a query or a key.",
            width=190,
            **widgets.field("lines_tint"),
        )
        st.text_input(
            "Find a token",
            help="Lets every token or word that is exactly this stand out; upper and lower case are one.",
            width=190,
            **widgets.field("found"),
        )
        with st.popover("More", icon=":material/tune:", key="collection_more"):
            joint_map.parameters(view.selection)


def draw(view: View, screen: Screen, found: np.ndarray | None, token: int | None) -> None:
    """The map, with the picked point and its lines laid over it."""
    collection, points = screen.collection, screen.map.points
    vectors = collection.vectors(screen.head)
    shown = None
    if view.selection.special != "shown":
        shown = ~np.concatenate([one.is_special for one in collection.tokens])
    st.plotly_chart(
        draw_collection(
            points,
            collection.tokens,
            hover_texts(collection.tokens),
            tint=view.selection.lines_tint,
            lengths=np.linalg.norm(np.concatenate(vectors), axis=1),
            shown=shown,
            found=found,
            theme=view.theme,
        ),
        theme=None,
        key=CHART,
        config={"displayModeBar": False, "scrollZoom": False},
        alt=f"Map of {len(points):,} query and key vectors. {screen.place}.",
    )
    side = view.selection.at_side
    labels = [f"{label}·{position}" for one in collection.tokens for position, label in enumerate(one.labels)]

    def mark(token: int, role: Role, weight: float = 1.0) -> Mark:
        x, y = points[token + (role == "key") * collection.n_tokens]
        return Mark(x=float(x), y=float(y), label=labels[token], role=role, weight=weight)

    other: Role = "key" if side == "query" else "query"
    map_links(
        CHART,
        None if token is None else mark(token, "query" if side == "query" else "key"),
        [] if token is None else [mark(one.token, other, one.weight) for one in links(screen, token, side)],
        on_pick=partial(pick, collection),
        theme=view.theme,
    )
    st.caption(literal(notes(view, screen)))


def notes(view: View, screen: Screen) -> str:
    """How the map was made, what it leaves out, and how to look into it."""
    made, collection = screen.map, screen.collection
    with_settings = "".join(
        f", {name.replace('_', ' ')} {value:g}"
        for name, value in made.parameters.items()
        if name != "iterations"
    )
    said = [
        f"{METHOD_NAMES[made.method]}{with_settings}: {len(made.points):,} points of {collection.n_tokens:,} tokens in "
        f"{len(collection.tokens):,} sentences.",
        made.remark,
        *collection.remarks(),
        _SPACE_NOTES[made.space],
        words.BIASED if belief.is_biased(collection.attention[0]) else "",
        "Each sentence was read by itself: between two sentences there is no attention, only likeness of vectors. That "
        "is why there is no attention map here.",
        "Special tokens are not drawn." if view.selection.special != "shown" else "",
        "Circles are queries, diamonds keys. Drag over a part to enlarge it; two clicks show all.",
    ]
    return " ".join(filter(None, said))


# What `ui.sections.space.belief.judge` says, for a reader of many sentences.
JUDGED = {
    "unknown": "No query sees keys enough to judge this map.",
    "misleads": "This map misleads about attention: its distances follow the scores too little to be told from chance. Read it "
    "for groups of similar vectors only.",
    "rough": "A near key is often a strong one, and often not: trust the lines, not the distances.",
    "fair": "Mostly, a nearer key of the same sentence is a stronger one.",
}


def reliability(screen: Screen) -> None:
    """How reliable the map is, in numbers and in one sentence."""
    made = screen.map
    inside, plane = made.in_space, made.in_map
    sample = f" (a sample of {made.n_compared:,} points)" if made.n_compared < len(made.points) else ""
    st.markdown("**Reliability**")
    st.dataframe(
        {
            "score and distance": [
                "rank correlation, mean",
                "the same, worst query",
                "nearest is strongest",
            ],
            "map": [
                words.correlation_text(plane.order_correlation),
                words.correlation_text(plane.worst_correlation),
                _share(plane.nearest_agreement),
            ],
            "vectors": [
                words.correlation_text(inside.order_correlation),
                words.correlation_text(inside.worst_correlation),
                _share(inside.nearest_agreement),
            ],
        },
        hide_index=True,
        key="belief",
    )
    trust = (
        ""
        if np.isnan(made.trustworthiness)
        else (
            f" Trustworthiness {made.trustworthiness:.2f}: 1 when all neighbours on the map are neighbours among the vectors, "
            f"about 0.5 by chance{sample}."
        )
    )
    st.caption(
        f"{JUDGED[belief.judge(plane, made.chance)]}{trust} Within each sentence, over all {screen.collection.n_tokens:,} "
        "queries: correlation −1 where a nearer key is always the stronger one, 0 where distance says nothing."
    )


def _share(number: float) -> str:
    return "none" if np.isnan(number) else percent_text(number)


def matches(view: View, screen: Screen, found: np.ndarray, token: int | None) -> None:
    """The tokens that were looked for, each with its sentence; a row picks its token."""
    collection, wanted = screen.collection, quoted(view.selection.found)
    if not len(found):
        st.caption(f"No token and no word of these sentences is {wanted}.")
        return
    sentences = collection.sentence[found]
    n_sentence = len(np.unique(sentences))
    st.markdown(
        f"**{wanted}: {len(found):,} token{'s' * (len(found) != 1)} in {n_sentence:,} sentence{'s' * (n_sentence != 1)}**"
    )
    side = ("query", "key").index(view.selection.at_side)
    key = f"matches_{lines.digest(view.selection.found)[:8]}"
    st.dataframe(
        {
            "sentence": sentences + 1,
            "token": [
                f"{collection.tokens[one].labels[collection.position[at]]}·{collection.position[at]}"
                for one, at in zip(sentences, found, strict=True)
            ],
            "text": [collection.tokens[one].text for one in sentences],
        },
        hide_index=True,
        height=min(300, 38 + 35 * len(found)),
        **widgets.tie_row(key, found.tolist(), token, lambda picked: pick(collection, side, picked)),
    )


def as_csv(screen: Screen) -> bytes:
    """A line for every point."""
    collection = screen.collection
    labels = [f"{position} {label}" for one in collection.tokens for position, label in enumerate(one.labels)]
    vectors = np.concatenate(collection.vectors(screen.head))
    lengths = np.linalg.norm(vectors, axis=1)
    lines = collection.line[collection.sentence]
    rows = (
        [("query", "key")[side], lines[token], labels[token], *screen.map.points[row], lengths[row]]
        for row in range(len(vectors))
        for side, token in [divmod(row, collection.n_tokens)]
    )
    return table_csv(["role", "line", "token", "x", "y", "length"], rows)


view = frame("Many sentences")
title = st.container(key="finding")
controls(view)
screen: Screen | None = None
with errors.explained():
    text = lines.chosen_lines(view)
    collection = lines.read(view, text)
    made = None if collection is None else joint_map.lay_out(view, text, collection)
    screen = made or st.session_state.get("collection_screen")
    st.session_state.collection_screen = screen
    if screen is not None:
        agreement = _share(screen.map.in_map.nearest_agreement)
        title.markdown(
            f"**{screen.place}: the nearest key of the sentence is the strongest for {agreement} of the queries**"
        )
        token = picked_token(view, screen)
        found = screen.collection.find(view.selection.found) if view.selection.found.strip() else None
        left, right = st.columns([5, 2], gap="medium")
        with left:
            draw(view, screen, found, token)
        with right:
            if found is not None:
                matches(view, screen, found, token)
            reliability(screen)
        if token is None:
            st.caption("Click a point to see its sentence, with lines to its strongest keys.")
        else:
            sentence(view, screen, token)
take(
    view,
    {CHART: "Map of many sentences"} if screen else {},
    csv=partial(as_csv, screen) if screen else None,
    numbers="Points" if screen else "Matrix",
)
verdict.in_sidebar(view.selection)
