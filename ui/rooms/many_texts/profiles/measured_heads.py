"""The profile that is shown, among those on offer, its numbers by name, and the selected head's place in it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, ClassVar

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from attnviz.corpus.columns import ACTIVATION, DIRECTIONS, MEASURED, NORMS
from attnviz.corpus.naming import FEWEST_WORDS, relation_words
from attnviz.corpus.profile import Profile
from attnviz.corpus.texts import Entry, Failure
from attnviz.errors import CorpusError
from attnviz.figures.numbers import cell_text
from attnviz.heads import PROBES, STATISTICS
from attnviz.maps.collection import bundled, sentences
from attnviz.model.catalogue import offer
from attnviz.records import Head, Kind
from ui.choice.fields import Text, sentence_case
from ui.choice.selection import choices
from ui.rooms.many_texts.own_corpora import FILE, OWN, OwnFile, OwnSentences, corpus_name, digest
from ui.runtime import cache, profiles, with_model
from ui.runtime.jobs import TELLS_PROGRESS, job
from ui.runtime.profiles import Listed
from ui.session import of_session
from ui.shell.view import View
from ui.shell.waiting import REFUSALS, is_there
from ui.words.literal import literal

COPYING = "copying"
MOST_TEXTS = 20
"""Texts that are run again with rows shuffled: 12 minutes of processor time for SmolLM2-135M-Instruct, 20 s for all-MiniLM-L6-v2."""
NOTHING = "none"
"""No other texts to compare with."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """The profile of many texts that is shown, and the numbers by which its heads are found."""

    PREFIX: ClassVar = "profile_"

    corpus: Annotated[str, Text(title="Texts", help="Shows what the heads do over these texts.")] = ""
    """Name of the profile's folder; empty for the bundled sentences."""
    other: Annotated[
        str,
        Text(
            title="Compare with",
            help="Compares each head with itself over these texts, and lists those that moved; of another model, the largest heads.",
        ),
    ] = "none"
    """Another corpus; "none" for none."""
    x: Annotated[str, Text(title="Across", help="Places each head by this number, from left to right.")] = (
        "entropy"
    )
    y: Annotated[
        str,
        Text(
            title="Rank by",
            help="Places each head by this number, from bottom to top, and ranks the heads by it.",
        ),
    ] = "previous"
    """A column of heads.parquet, or a relation and its direction, such as "nsubj attends to"."""
    search: Annotated[
        str,
        Text(
            title="Find",
            help="Lists the heads that are called so, and the head with the largest of each number that is called so, as in induction "
            "or direct object.",
        ),
    ] = ""


def offered(weights: Mapping[str, str]) -> dict[str, Listed]:
    """Profiles of the model with these weights, by name; "" for the bundled sentences."""
    return {
        "" if listed_profile.is_bundled else listed_profile.name: listed_profile
        for listed_profile in profiles.of_model(weights)
        if not listed_profile.problem
    }


def corpora(weights: Mapping[str, str]) -> list[str]:
    """The corpora available for a model: names of `offered`, and the visitor's own texts if there are any."""
    own = [OWN] * bool(of_session(OwnSentences).text) + [FILE] * bool(of_session(OwnFile).name)
    return [*offered(weights), *own]


def others(weights: Mapping[str, str]) -> dict[str, Listed]:
    """The profiles to compare with: the model's other profiles, and those of other models."""
    of_others = [
        listed_profile
        for listed_profile in profiles.listed().values()
        if not listed_profile.is_of(weights) and not listed_profile.problem
    ]
    return {**offered(weights), **{of_other.name: of_other for of_other in of_others}}


def other_name(listed: Listed, weights: Mapping[str, str]) -> str:
    """Name of a profile to compare with: its texts, and its model if that is another."""
    if listed.is_of(weights):
        return corpus_name("") if listed.is_bundled else listed.name
    return listed.model if listed.is_bundled else f"{listed.model}, {listed.name}"


def missed(corpus: str, weights: Mapping[str, str]) -> str:
    """Why the texts that a link asks for are not shown, a sentence; empty if the reason is unknown."""
    if corpus in (OWN, FILE):
        return "The link leads to texts of a visitor's own, which no link holds."
    listed = profiles.listed().get(corpus)
    if listed is None:
        return f"The link asks for the profile “{corpus}”, which is not on this server."
    if listed.problem:
        return f"The profile “{corpus}” cannot be shown: {listed.problem}"
    return (
        f"The profile “{corpus}” is of {listed.model}, with other weights than those of the model that is selected. Make one with "
        "attnviz corpus profile."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number of every head of a profile, with its interval if it has one."""

    name: str
    """Key in `number_names`."""
    title: str
    means: Float[np.ndarray, " head"]
    ends: tuple[Float[np.ndarray, " head"], Float[np.ndarray, " head"]] | None

    @property
    def moved(self) -> Bool[np.ndarray, " head"]:
        """For a difference, the heads whose interval does not contain 0."""
        if self.ends is None:
            return np.zeros(len(self.means), dtype=bool)
        return (self.ends[0] > 0) | (self.ends[1] < 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """The profile that the shown one is compared with."""

    name: str
    """Its name on screen."""
    listed: profiles.Listed
    profile: Profile
    kind: Kind
    number: Number
    """The same number as ``Screen.y``."""
    has_same_heads: bool
    """Whether it has the same heads as the shown profile, so that each can be compared with itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The contents of the page."""

    view: View
    corpus: str
    """Its name among the corpora."""
    weights: Mapping[str, str]
    """SHA-256 of the model's weights, which identify its profiles."""
    profile: Profile
    failures: tuple[Failure, ...]
    """Those of the visitor's own texts that could not be read."""
    kind: Kind
    heads: list[Head]
    head: Head
    """The selected head, or the first one if the profile lacks it."""
    x: Number
    y: Number
    ranked: Number
    """The number by which heads are ranked: ``y``, or its difference from the other texts' number."""
    other: Other | None
    kept: list[Head]
    """Heads that match the search, by rank."""
    texts: tuple[Entry, ...]
    """The first texts of the profile, at most `MOST_TEXTS`; none if this server does not have them."""

    @property
    def is_compared(self) -> bool:
        """Whether each head is compared with the same head in another profile."""
        return self.other is not None and self.other.has_same_heads

    @property
    def at(self) -> int:
        """The selected head's index among the heads."""
        return self.heads.index(self.head)


def shown_profile(view: View) -> Screen | None:
    """The contents of the page; None if the model has no profile, or none yet.

    While the visitor's own texts are measured, or if that fails, the model's first profile is shown.
    """
    weights, settings = cache.weights(view.selection.source), view.selection.of(ProfileSettings)
    on_server, corpora_here = offered(weights), corpora(weights)
    corpus = settings.corpus
    if corpus not in corpora_here:
        if corpus:
            st.caption(f":material/info: {literal(missed(corpus, weights))}")
        corpus = next(iter(corpora_here), "")
    shown: Profile | None = None
    failures: tuple[Failure, ...] = ()
    if corpus in (OWN, FILE):
        shown, failures = measured(view, corpus)
    elif corpus in on_server:
        shown = read(on_server[corpus])
    if shown is None:  # falls back to the first profile that can be shown
        corpus, shown = next(
            (
                (name, known_name)
                for name, listed in on_server.items()
                if name != corpus and (known_name := read(listed))
            ),
            ("", None),
        )
    if shown is None:
        return None
    kind = view.kind if view.kind in shown.kinds else shown.kinds[0]
    heads = shown.heads(kind)
    names = number_names(shown, kind)
    x, y = (
        number(shown, kind, next(at for at in (wanted, usual, *names) if at in names))
        for wanted, usual in ((settings.x, "entropy"), (settings.y, "previous"))
    )
    other = beside(settings.other, corpus, weights, kind, heads, y)
    compared = other is not None and other.has_same_heads
    ranked = difference(y, other.number) if other is not None and compared else y
    size = np.abs(ranked.means) if compared else ranked.means
    size = np.nan_to_num(size, nan=-np.inf)
    # In a comparison, heads that moved come first.
    order = np.lexsort((-size, ~ranked.moved)) if compared else np.argsort(-size, kind="stable")
    called, wanted, place = profiles.names(shown, kind), settings.search, view.selection.place

    def is_found(head: Head) -> bool:
        named = (f"{name.called} {name.relation}" for name in called[head])
        return not wanted.strip() or any(is_called(name, wanted) for name in named)

    kept = [heads[at] for at in order if np.isfinite(ranked.means[at]) and is_found(heads[at])]
    texts = (entry for entry in entries_of(corpus) if isinstance(entry, Entry) and entry.text.strip())
    return Screen(
        view=view,
        corpus=corpus,
        weights=weights,
        profile=shown,
        failures=failures,
        kind=kind,
        heads=heads,
        head=place if place in heads else heads[0],
        x=replace(other.number, title=f"{y.title}, {other.name}") if other is not None and compared else x,
        y=y,
        ranked=ranked,
        other=other,
        kept=kept,
        texts=tuple(islice(texts, MOST_TEXTS)),
    )


def read(listed: profiles.Listed) -> Profile | None:
    """The profile in a folder; None after showing why it cannot be read."""
    try:
        return listed.read()
    except CorpusError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return None


def beside(
    name: str, corpus: str, weights: Mapping[str, str], kind: Kind, heads: list[Head], wanted: Number
) -> Other | None:
    """The profile of this name to compare with; None for "none", or if it lacks the number."""
    listed = others(weights).get(name)
    if listed is None or name == corpus or (listed_profile := read(listed)) is None:
        return None
    of_kind = kind if kind in listed_profile.kinds else listed_profile.kinds[0]
    if wanted.name not in number_names(listed_profile, of_kind):
        st.caption(
            literal(
                f"{other_name(listed, weights)} has no {wanted.title.lower()}, so nothing is compared. Rank by another number."
            )
        )
        return None
    return Other(
        name=other_name(listed, weights),
        listed=listed,
        profile=listed_profile,
        kind=of_kind,
        number=number(listed_profile, of_kind, wanted.name),
        has_same_heads=of_kind == kind and listed_profile.heads(of_kind) == heads,
    )


def measured(view: View, corpus: str) -> tuple[Profile | None, tuple[Failure, ...]]:
    """The profile of the visitor's own texts, measured by a worker process with progress, and the texts that failed.

    None in place of the profile while that goes on, or if it fails.
    """
    model, own = offer(view.selection.model).name, of_session(OwnFile)
    work = job(
        "profile",
        (model, digest(of_session(OwnSentences).text) if corpus == OWN else own.digest),
        lambda: [(with_model.profile, (model, entries_of(corpus)), TELLS_PROGRESS)],
    )
    name = "your sentences" if corpus == OWN else own.name
    try:
        if not is_there(
            work,
            None,
            f"Measuring every head on {name}",
            stopped="Measuring was stopped.",
            resume="Measure them",
            key="profile_act",
        ):
            return None, ()
    except REFUSALS as error:
        st.error(literal(f"{corpus_name(corpus)}: {error}"), icon=":material/error:")
        return None, ()
    measured_profile, failures = work.results[0]
    return measured_profile, tuple(failures)


def entries_of(corpus: str) -> tuple[Entry | Failure, ...]:
    """The texts of a corpus: the visitor's own, or the bundled sentences; none of another, whose texts are not on this server."""
    if corpus == FILE:
        return of_session(OwnFile).entries
    text = {OWN: of_session(OwnSentences).text, "": bundled()}.get(corpus, "")
    return tuple(Entry(source="", place=place, text=line) for place, line in sentences(text))


def is_called(name: str, wanted: str) -> bool:
    """Whether a name contains the search text."""
    return wanted.strip().casefold() in name.casefold()


def number_names(profile: Profile, kind: Kind) -> dict[str, str]:
    """Titles of the numbers by which heads can be found; without those that no head of the kind has."""
    titles = {name: STATISTICS[name].title for name in MEASURED}
    titles |= {name + NORMS: f"{STATISTICS[name].title}, norm-based" for name in MEASURED}
    titles |= {name: probe.title for name, probe in PROBES.items()}
    titles |= {ACTIVATION: "Length that is added", COPYING: "Copying score"}
    there = {name: title for name, title in titles.items() if np.isfinite(profile.numbers(name, kind)).any()}
    relations = profile.relations(profile.heads(kind)[0], kind)
    return there | {
        f"{relation.relation} {relation.direction}": sentence_case(
            relation_words(relation.relation, relation.direction)
        )
        for relation in relations
        if relation.words >= FEWEST_WORDS
    }


def number(profile: Profile, kind: Kind, name: str) -> Number:
    """The number of this name, one of `number_names`."""
    title = number_names(profile, kind)[name]
    for direction in DIRECTIONS:
        if name.endswith(f" {direction}"):
            means, *ends = profile.accuracies(name.removesuffix(f" {direction}"), direction, kind)
            return Number(name=name, title=title, means=means, ends=(ends[0], ends[1]))
    low, high = (
        (None, None)
        if name == COPYING
        else (profile.numbers(f"{name}_{end}", kind) for end in ("low", "high"))
    )
    return Number(
        name=name,
        title=title,
        means=profile.numbers(name, kind),
        ends=None if low is None or high is None else (low, high),
    )


def difference(number: Number, other: Number) -> Number:
    """A number minus the same number over other texts; half-widths of independent intervals add in quadrature."""
    means = number.means - other.means
    ends = None
    if number.ends is not None and other.ends is not None:
        low = np.hypot(number.means - number.ends[0], other.ends[1] - other.means)
        high = np.hypot(number.ends[1] - number.means, other.means - other.ends[0])
        ends = means - low, means + high
    return Number(name=number.name, title=f"{number.title}: difference", means=means, ends=ends)


def with_interval(number: Number, at: int) -> str:
    """A head's number with its interval."""
    mean = cell_text(float(number.means[at]))
    if number.ends is None or not np.isfinite(number.ends[0][at]):
        return mean
    low, high = (cell_text(float(end[at])) for end in number.ends)
    return f"{mean} ({low} to {high})"
