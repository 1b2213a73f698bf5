"""The profile that is shown, its numbers by name, and the selected head's place in it."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from attnviz.corpus.columns import ACTIVATION, MEASURED, NORMS
from attnviz.corpus.naming import FEWEST_WORDS, names_of, relation_name
from attnviz.corpus.profile import Profile
from attnviz.corpus.relations import DIRECTIONS
from attnviz.heads import PROBES, STATISTICS
from attnviz.maps.collection import sentences
from attnviz.model.catalogue import offer
from attnviz.records import Head, Kind
from ui.choice.fields import sentence_case
from ui.page.view import View
from ui.page.waiting import is_there
from ui.sections.many_sentences.lines import OwnSentences, digest
from ui.sections.profiles.offered import OWN, corpora, corpus_name, offered, read
from ui.session import of_session
from ui.work.jobs import TELLS_PROGRESS, job
from ui.work.with_model import profile

COPYING = "copying"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number of every head of a profile, with its interval where it has one."""

    name: str
    """Of `number_names`."""
    title: str
    means: Float[np.ndarray, " head"]
    ends: tuple[Float[np.ndarray, " head"], Float[np.ndarray, " head"]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What the page shows."""

    view: View
    corpus: str
    """Its name among the corpora."""
    profile: Profile
    kind: Kind
    heads: list[Head]
    head: Head
    """The selected one, or the first where the profile has not got it."""
    x: Number
    y: Number
    ranked: Number
    """What heads are ranked by: ``y``, or how much larger it is than over the texts that it is compared with."""
    is_compared: bool
    kept: list[Head]
    """Heads that the search leaves, in the order of their rank."""

    @property
    def at(self) -> int:
        """The selected head's place among the heads."""
        return self.heads.index(self.head)


def look(view: View) -> Screen | None:
    """What the page shows; None where there is no profile of the model, or not yet."""
    settings, found = view.selection.profile, corpora(view.selection.model)
    if not found:
        return None
    corpus = settings.corpus if settings.corpus in found else found[0]
    shown = measured(view) if corpus == OWN else read(offered(view.selection.model)[corpus])
    if shown is None:
        return None
    kind = view.kind if view.kind in shown.kinds else shown.kinds[0]
    heads = shown.heads(kind)
    names = number_names(shown, kind)
    x, y = (
        number(shown, kind, next(one for one in (wanted, usual, *names) if one in names))
        for wanted, usual in ((settings.x, "entropy"), (settings.y, "previous"))
    )
    other = None
    if settings.other in found and settings.other not in (corpus, OWN):
        other = number_like(
            read(offered(view.selection.model)[settings.other]), kind, heads, y, corpus_name(settings.other)
        )
    ranked = y if other is None else difference(y, other)
    place = view.selection.place
    called = settings.search.strip().casefold()
    by = ranked.means if other is None else np.abs(ranked.means)
    order = np.argsort(-np.nan_to_num(by, nan=-np.inf), kind="stable")
    kept = [
        heads[one]
        for one in order
        if np.isfinite(ranked.means[one])
        and (not called or any(called in name.casefold() for name in all_names(shown, kind)[one]))
    ]
    return Screen(
        view=view,
        corpus=corpus,
        profile=shown,
        kind=kind,
        heads=heads,
        head=place if place in heads else heads[0],
        x=x if other is None else other,
        y=y,
        ranked=ranked,
        is_compared=other is not None,
        kept=kept,
    )


def measured(view: View) -> Profile | None:
    """The profile of the visitor's own sentences, measured by another process with progress; None while that goes on."""
    text, model = of_session(OwnSentences).text, offer(view.selection.model).name
    work = job(
        "profile", (model, digest(text)), lambda: [(profile, (model, sentences(text)), TELLS_PROGRESS)]
    )
    if not is_there(
        work,
        None,
        "Measuring every head on your sentences",
        stopped="Measuring was stopped.",
        resume="Measure them",
        key="profile_act",
    ):
        return None
    found: Profile = work.results[0]
    return found


@lru_cache(maxsize=8)
def all_names(profile: Profile, kind: Kind) -> tuple[tuple[str, ...], ...]:
    """What each head is called."""
    return tuple(names_of(profile, head, kind) for head in profile.heads(kind))


def number_names(profile: Profile, kind: Kind) -> dict[str, str]:
    """The numbers that heads can be found by, with their titles; those that no head of the kind has are left out."""
    titles = {name: STATISTICS[name].title for name in MEASURED}
    titles |= {name + NORMS: f"{STATISTICS[name].title}, norm-based" for name in MEASURED}
    titles |= {name: one.title for name, one in PROBES.items()}
    titles |= {ACTIVATION: "Length that is added", COPYING: "Copying score"}
    there = {name: title for name, title in titles.items() if np.isfinite(profile.numbers(name, kind)).any()}
    relations = profile.relations(profile.heads(kind)[0], kind)
    return there | {
        f"{one.relation} {one.direction}": sentence_case(f"{relation_name(one.relation)}, {one.direction}")
        for one in relations
        if one.words >= FEWEST_WORDS
    }


def number(profile: Profile, kind: Kind, name: str) -> Number:
    """One of `number_names`."""
    title = number_names(profile, kind)[name]
    relation, direction = next(
        ((name.removesuffix(f" {one}"), one) for one in DIRECTIONS if name.endswith(f" {one}")), ("", "")
    )
    if relation:
        mean, low, high = profile.accuracies(relation, direction, kind)
        return Number(name=name, title=title, means=mean, ends=(low, high))
    means = profile.numbers(name, kind)
    if name == COPYING:
        return Number(name=name, title=title, means=means, ends=None)
    return Number(
        name=name,
        title=title,
        means=means,
        ends=(profile.numbers(f"{name}_low", kind), profile.numbers(f"{name}_high", kind)),
    )


def number_like(
    profile: Profile, kind: Kind, heads: list[Head], wanted: Number, corpus: str
) -> Number | None:
    """The same number over other texts, of the same heads; None where they have it not."""
    if (
        kind not in profile.kinds
        or profile.heads(kind) != heads
        or wanted.name not in number_names(profile, kind)
    ):
        return None
    return replace(number(profile, kind, wanted.name), title=f"{wanted.title}, {corpus}")


def difference(one: Number, other: Number) -> Number:
    """How much larger a number is than over other texts; half an interval of two independent means is the root of the sum of squares."""
    means = one.means - other.means
    ends = None
    if one.ends is not None and other.ends is not None:
        low = np.hypot(one.means - one.ends[0], other.ends[1] - other.means)
        high = np.hypot(one.ends[1] - one.means, other.means - other.ends[0])
        ends = means - low, means + high
    return Number(name=one.name, title=f"{one.title}: difference", means=means, ends=ends)
