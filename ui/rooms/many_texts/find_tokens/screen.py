"""The index that is searched, the selected token, and the tokens most similar to it."""

from dataclasses import dataclass
from pathlib import Path

import attnviz.corpus
from attnviz.corpus.contexts import group_of
from attnviz.corpus.texts import Entry, read_entries
from attnviz.corpus.token_index import N_NEAREST, FoundFacts, Nearest, TokenIndex, found_facts
from attnviz.maps.collection import sentences
from attnviz.model.catalogue import offer
from attnviz.records import Tokens
from ui.rooms.many_texts.find_tokens.choices import FindTokensSettings
from ui.rooms.many_texts.find_tokens.offered import offered, read
from ui.rooms.many_texts.joint_map.lines import OwnSentences, digest
from ui.rooms.many_texts.profiles.offered import OWN
from ui.runtime import cache
from ui.runtime.jobs import TELLS_PROGRESS, job
from ui.runtime.with_model import index
from ui.session import of_session
from ui.shell.view import View
from ui.shell.waiting import is_there

BUNDLED = Path(attnviz.corpus.__file__).with_name("sentences.conllu")
"""The bundled sentences with their parts of speech."""


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


def opened_index(view: View) -> TokenIndex | None:
    """The index that is searched; None while a worker process builds it, or after that was cancelled.

    Raises:
        CorpusError: the index cannot be read.
    """
    corpus, model = corpus_of(view), view.selection.model
    folders = offered(model)
    if corpus in folders:
        return read(folders[corpus])
    return made_index(view, corpus)


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
        lambda: [(index, (name, entries(), selection.layer), TELLS_PROGRESS)],
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


def search(view: View, opened: TokenIndex) -> Screen:
    """The tokens most similar to the selected one.

    Raises:
        SelectionError: the index lacks these vectors, or this head.
    """
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
