"""The selected token, what is searched, and the found tokens, each in its text."""

import streamlit as st

from attnviz.corpus.token_index import N_NEAREST, Nearest, TokenIndex
from attnviz.figures.numbers import cell_text, counted, percent_text, power_text
from attnviz.records import Head
from ui.choice import state, widgets
from ui.components.example_arcs import example_arcs
from ui.components.token_strip import token_strip
from ui.rooms.many_texts.find_tokens.choices import FindTokensSettings
from ui.rooms.many_texts.find_tokens.offered import offered, read
from ui.rooms.many_texts.find_tokens.screen import Screen, corpora, corpus_of, own_tokens
from ui.rooms.many_texts.joint_map.lines import own_lines
from ui.rooms.many_texts.profiles.offered import corpus_name
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.found_tokens import found_words


def selected_token(view: View) -> None:
    """The tokens of the visitor's text, for selecting one."""
    tokens, position = own_tokens(view)
    token_strip(
        tokens,
        query=position,
        key=position,
        weights=None,
        mask_label=None,
        on_pick=lambda picked: state.change(query=picked, key=None),
        on_mask=lambda _: None,
        theme=view.theme,
    )


def controls(view: View) -> None:
    """The controls for the texts, and for the vectors that are compared."""
    names = corpora(view.selection.model)
    with st.container(horizontal=True, vertical_alignment="bottom", key="found_controls"):
        own_lines()
        if len(names) > 1:
            st.selectbox(
                **widgets.field(
                    "found_corpus",
                    view.selection.but(found_corpus=corpus_of(view)),
                    take=_take_corpus,
                    options=names,
                    format_func=corpus_name,
                    width=190,
                )
            )
        st.segmented_control(**widgets.field("found_vectors", required=True))


def _take_corpus(found_corpus: str) -> None:
    """Shows other texts, in their index's layer."""
    folders = offered(state.chosen().model)
    layer = {"layer": read(folders[found_corpus]).layer} if found_corpus in folders else {}
    state.change(found_corpus=found_corpus, **layer)


def is_of_layer(view: View, opened: TokenIndex) -> bool:
    """Whether an index is of the selected layer; if not, says so and offers the index's layer."""
    if opened.layer == view.selection.layer:
        return True
    st.markdown(f"These texts are indexed in layer {opened.layer}; layer {view.selection.layer} is selected.")
    st.button(
        f"Show layer {opened.layer}",
        on_click=state.change,
        kwargs={"layer": opened.layer},
        key="found_layer",
        help="Selects the layer of the index.",
    )
    return False


def headline(screen: Screen) -> str:
    """What the found tokens have in common; plain text."""
    place = Head(screen.index.layer, screen.head).title
    return f"{place}: {found_words(screen.token, screen.view.selection.of(FindTokensSettings).vectors, screen.facts)}"


def results(screen: Screen) -> None:
    """The found tokens, each in its text with an arc to the token that the head attends to most."""
    for number, near in enumerate(screen.nearest):
        _line(screen, near, number)


def _line(screen: Screen, near: Nearest, number: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"found_line_{number}"):
        part = f" :small[{near.part}]" if near.part else ""
        st.markdown(cell_text(near.similarity) + part, width=104)
        example_arcs(
            near.labels,
            [near.weight if position == near.key else 0.0 for position in range(len(near.labels))],
            query=near.position,
            query_label=near.token,
            marks_key=True,
            theme=screen.view.theme,
            key=f"found_arcs_{number}",
        )
        link_to(
            "Together",
            label="Open",
            icon="open_in_new",
            selection=screen.view.selection.alone(
                near.text,
                kind="",
                layer=screen.index.layer,
                head=screen.head,
                query=near.position,
                key=near.key,
            ),
            help="Shows this text on the stage, with this head and token.",
        )


def about(screen: Screen) -> str:
    """What the numbers are, what was searched, and how exactly."""
    index, kind = screen.index, screen.view.selection.of(FindTokensSettings).vectors
    searched = f"{counted(index.n_token, 'token')} of {counted(index.n_text, 'text')}"
    words = [
        "The number is the cosine similarity to the selected token, 1 for the same direction.",
        f"The arc leads to the token that {Head(index.layer, screen.head).words} attends to most, with its weight.",
    ]
    if kind in index.recalls:
        words.append(
            f"Approximate search of {searched}: it finds {percent_text(index.recalls[kind])} of the ten nearest (recall)."
        )
    else:
        words.append(f"Exact search: all {searched} were compared.")
    words.append("Special tokens that are added to a text, such as [CLS], are not searched.")
    if screen.leaves_out:
        words.append("The selected token itself is left out.")
    if kind != "hidden":
        words.append("Queries and keys are compared as the head multiplies them, with their positions.")
    if index.n_passed == index.n_verified:
        by = (
            f"differ by at most {power_text(index.worst_error)}" if index.worst_error else "are bit-identical"
        )
        words.append(
            f"{index.n_verified:,} of the texts {'was' if index.n_verified == 1 else 'were'} compared with the model’s own attention: weights {by}."
        )
    else:
        words.append(
            f"{index.n_verified - index.n_passed:,} of {index.n_verified:,} texts that were compared do not match the model’s own "
            f"attention: weights differ by up to {power_text(index.worst_error)}."
        )
    if index.n_failed:
        words.append(f"{counted(index.n_failed, 'text')} could not be read.")
    return " ".join(words)


def as_csv_rows(screen: Screen) -> tuple[list[str], list[list[object]]]:
    """A row for each found token."""
    names = ["similarity", "token", "part", "position", "attends to", "its position", "weight", "text"]
    return names, [
        [
            near.similarity,
            near.token,
            near.part or "",
            near.position,
            near.labels[near.key],
            near.key,
            near.weight,
            near.text,
        ]
        for near in screen.nearest
    ]


def python_lines(screen: Screen) -> str:
    """Python that makes an index and finds the shown tokens."""
    selection, kind = screen.view.selection, screen.view.selection.of(FindTokensSettings).vectors
    call = f"index.find(vector, {kind!r}, head)"
    if screen.leaves_out:  # the selected token itself
        call = f"""[near for near in index.find(vector, {kind!r}, head, {N_NEAREST + 1}) if (near.text, near.position) != (text, position)]"""
    return f"""from pathlib import Path

import attnviz
from attnviz.corpus.contexts import contexts
from attnviz.corpus.indexing import index_corpus

model = attnviz.load_model({selection.model!r})
index = index_corpus(["texts.txt"], {selection.model!r}, Path("profiles/mine"), layer={screen.index.layer})
text = {screen.tokens.text!r}
read = model.read(text)
[of_text] = contexts(model, [read], index.layer)
head, position = {screen.head}, {screen.position}  # {screen.token}
vectors = of_text.vectors({kind!r})
vector = vectors[head * len(vectors) // index.n_head, position]
nearest = {call}
for near in nearest[:{N_NEAREST}]:
    print(f"{{near.similarity:.3f}} {{near.token}} -> {{near.labels[near.key]}} {{near.weight:.2f}}  {{near.text}}")
"""
