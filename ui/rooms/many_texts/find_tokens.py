"""Which tokens in other texts are most like the selected one? Those with the nearest vectors, and what the head attends to there."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

import streamlit as st

import attnviz.corpus
from attnviz.corpus.contexts import Vectors, group_of
from attnviz.corpus.texts import Entry, read_entries
from attnviz.corpus.token_index import (
    N_NEAREST,
    TOKENS,
    FoundFacts,
    Nearest,
    TokenIndex,
    found_facts,
    read_index,
)
from attnviz.errors import CorpusError
from attnviz.figures.numbers import cell_text, counted, percent_text, power_text
from attnviz.maps.collection import sentences
from attnviz.model.catalogue import offer
from attnviz.records import Head, Tokens
from attnviz.records.table import table_csv
from ui.choice import state, widgets
from ui.choice.fields import Text, Word
from ui.choice.selection import choices
from ui.components.example_arcs import example_arcs
from ui.components.token_strip import token_strip
from ui.limits import folders_with
from ui.part import Part, Sheet
from ui.rooms.many_texts.own_corpora import OWN, OwnSentences, corpus_name, digest, own_lines
from ui.runtime import cache, with_model
from ui.runtime.jobs import TELLS_PROGRESS, job
from ui.session import of_session
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.found_tokens import found_words
from ui.words.literal import literal

BUNDLED = Path(attnviz.corpus.__file__).with_name("sentences.conllu")
"""The bundled sentences with their parts of speech."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class FindTokensSettings:
    """The texts that are searched for tokens similar to the selected one, and the vectors compared."""

    PREFIX: ClassVar = "found_"

    corpus: Annotated[str, Text(title="Texts", help="Looks for tokens in these texts.")] = ""
    """Name of the index's folder; empty for the bundled sentences."""
    vectors: Annotated[
        Vectors,
        Word(
            names={"hidden": "Hidden state", "query": "Query", "key": "Key"},
            title="Compare by",
            help="Finds the tokens with the most similar hidden state after the layer, or query or key of the head.",
        ),
    ] = "hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The contents of the page."""

    view: View
    index: TokenIndex
    tokens: Tokens
    """Tokens of the visitor's text."""
    position: int
    """Position of the selected token."""
    head: int
    nearest: list[Nearest]
    facts: FoundFacts
    leaves_out: bool
    """Whether the selected token is in the index and left out, since it is most similar to itself."""

    @property
    def token(self) -> str:
        """The label of the selected token."""
        return self.tokens.labels[self.position]

    @property
    def vectors(self) -> Vectors:
        """By which vectors tokens are compared."""
        return self.view.selection.of(FindTokensSettings).vectors


def offered(model: str) -> dict[str, Path]:
    """Folders of the indices of a model, by name."""
    folders: dict[str, Path] = {}
    for folder in folders_with(TOKENS):
        try:
            if read(folder).provenance.model == model:
                folders[folder.name] = folder
        except CorpusError:  # reported when the index is selected
            continue
    return folders


def read(folder: Path) -> TokenIndex:
    """The index in a folder, opened again only when its files change.

    Raises:
        CorpusError: as `read_index`.
    """
    try:
        written = (folder / TOKENS).stat().st_mtime_ns
    except OSError:
        written = 0
    return _read(folder, written)


@lru_cache(maxsize=8)
def _read(folder: Path, _written: int) -> TokenIndex:
    return read_index(folder)


def corpora(model: str) -> list[str]:
    """The texts that can be searched: the bundled ones, the operator's, and the visitor's own."""
    own = [OWN] if of_session(OwnSentences).text else []
    return ["", *offered(model), *own]


def corpus_of(view: View) -> str:
    """Name of the texts that are searched, one of `corpora`."""
    wanted = view.selection.of(FindTokensSettings).corpus
    return wanted if wanted in corpora(view.selection.model) else ""


def own_tokens(view: View) -> tuple[Tokens, int]:
    """The tokens to select from and the selected position; in an encoder-decoder model, the encoder's tokens."""
    tokens = view.trace.query_tokens(view.trace.kinds[0])
    return tokens, min(view.query, len(tokens) - 1)


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


def screen_of(view: View) -> Screen | None:
    """The tokens most similar to the selected one; None while the index is built, or if it is of another layer.

    Raises:
        CorpusError: the index cannot be read.
        SelectionError: the index lacks these vectors, or this head.
    """
    corpus, folders = corpus_of(view), offered(view.selection.model)
    index = read(folders[corpus]) if corpus in folders else made_index(view, corpus)
    return None if index is None or not is_of_layer(view, index) else search(view, index)


def made_index(view: View, corpus: str) -> TokenIndex | None:
    """The index of the bundled or the visitor's sentences in the selected layer, built by a worker process with progress."""
    selection = view.selection
    text = of_session(OwnSentences).text if corpus == OWN else ""

    def entries() -> list[Entry]:
        if text:
            return [Entry(source="", place=place, text=line) for place, line in sentences(text)]
        return [entry for entry in read_entries(BUNDLED) if isinstance(entry, Entry)]

    name = offer(selection.model).name
    work = job(
        "token_index",
        (name, digest(text) if text else "", selection.layer),
        lambda: [(with_model.index, (name, entries(), selection.layer), TELLS_PROGRESS)],
    )
    if not is_there(
        work,
        None,
        f"Reading the {'sentences' if text else 'bundled sentences'} up to layer {selection.layer}",
        stopped="Reading was stopped.",
        resume="Read them",
        key="found_act",
    ):
        return None
    made: TokenIndex = work.results[0]
    return made


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


def search(view: View, opened: TokenIndex) -> Screen:
    """The tokens most similar to the selected one."""
    selection = view.selection
    tokens, position = own_tokens(view)
    kind = selection.of(FindTokensSettings).vectors
    head = min(selection.head, opened.n_head - 1)
    vectors = cache.contexts(selection.source, opened.layer).vectors(kind)
    group = group_of(kind, head, n_group=len(vectors), n_head=opened.n_head)
    plain = selection.template == "plain" and not selection.masked and tokens.text_pair is None
    vector, own = vectors[group, position], (tokens.text, position)
    nearest = opened.find(vector, kind, head, N_NEAREST + 1)
    among = plain and any((near.text, near.position) == own for near in nearest)
    nearest = [near for near in nearest if not among or (near.text, near.position) != own][:N_NEAREST]
    return Screen(
        view=view,
        index=opened,
        tokens=tokens,
        position=position,
        head=head,
        nearest=nearest,
        facts=found_facts(tokens.labels[position], nearest),
        leaves_out=among,
    )


def headline(screen: Screen) -> str:
    """What the found tokens have in common; plain text."""
    place = Head(screen.index.layer, screen.head).title
    return f"{place}: {found_words(screen.token, screen.vectors, screen.facts)}"


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
    index, kind = screen.index, screen.vectors
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


def as_csv(screen: Screen) -> bytes:
    """A row for each found token."""
    names = ["similarity", "token", "part", "position", "attends to", "its position", "weight", "text"]
    rows = (
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
    )
    return table_csv(names, rows)


def python_lines(screen: Screen) -> str:
    """Python that makes an index and finds the shown tokens."""
    selection, kind = screen.view.selection, screen.vectors
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


PART = Part(
    name="Find tokens",
    address="find_tokens",
    question="Which tokens in other texts are most like the selected one?",
    longest=8192,
    sheets=(
        Sheet(
            strip=selected_token,
            controls=controls,
            screen=screen_of,
            finding=lambda screen: literal(headline(screen)),
            rows=(results, lambda screen: st.caption(literal(about(screen)))),
            numbers="Found tokens",
            csv=as_csv,
            python=python_lines,
        ),
    ),
)
