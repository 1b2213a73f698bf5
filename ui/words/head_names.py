"""Names and marks of heads by what they do: on the text on screen, and over many texts or on random tokens.

`ui.shell.head_names` determines them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool

from attnviz.corpus.naming import HeadName
from attnviz.figures.numbers import counted, number_text, percent_text
from attnviz.heads.probes import NAMED, PROBES, HeadProbes
from attnviz.records import Head, Tokens, by_layer, heads_in, titles
from ui.words.findings import ATTENDS

RELATION = "grammatical relation"
NAME_MARKS: Mapping[str, str] = {
    "induction": "I",
    "duplicate token": "D",
    "previous token": "←",
    RELATION: "R",
}
"""Marks of named heads in a grid. "First token" has none: in many models it would be in most cells."""
MOST_CALLED = 2
"""Most names of a head on a line; further names are counted, and listed on hover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNames:
    """Names of heads, and their source."""

    of_head: Mapping[Head, tuple[HeadName, ...]]
    """Most heads have no name, some have several."""
    where: str
    """Source of the names, within a sentence: "on repeated random tokens", "in the profile of the bundled sentences"."""
    briefly: str
    """The same for a line with little room: "over many texts"."""
    note: str
    """What a mark means; a sentence after the list of marks."""
    in_english: bool
    """Whether they were found in texts that are known to be English: the bundled sentences."""
    marked: tuple[str, ...]
    """Names and kinds of names of `NAME_MARKS` that heads can have."""


def names_of_probes(probes: HeadProbes) -> HeadNames:
    """Names from random tokens that are repeated."""
    return HeadNames(
        of_head={
            head: tuple(
                HeadName(
                    called=PROBES[name].called,
                    share=float(probes.means[name][head]),
                    low=float(probes.means[name][head]),
                    high=float(probes.means[name][head]),
                )
                for name in probes.names(head)
            )
            for head in heads_in(probes.means[next(iter(PROBES))])
        },
        where="on repeated random tokens",
        briefly="on repeated random tokens",
        note=f"heads that give more than {NAMED:.0%} of their weight to it on {probes.n_token} repeated random tokens, mean of "
        f"{probes.n_text} such texts.",
        in_english=False,
        marked=tuple(name_mark for name_mark in NAME_MARKS if name_mark != RELATION),
    )


def names_of_profile(
    names: Mapping[Head, tuple[HeadName, ...]], corpus: str, briefly: str, n_text: int, *, is_bundled: bool
) -> HeadNames:
    """Names from a profile of many texts.

    Args:
        corpus: name of its texts, within a sentence: "the bundled sentences".
        briefly: the same for little room: "many texts".
    """
    return HeadNames(
        of_head=names,
        where=f"in the profile of {corpus}",
        briefly=f"over {briefly}",
        note=f"heads that give more than {NAMED:.0%} of their weight to it over {counted(n_text, 'text')}, or on repeated random tokens, or "
        f"that find the relation more often than {NAMED:.0%} and than any fixed distance; the whole interval of 95% is above that.",
        in_english=is_bundled,
        marked=tuple(NAME_MARKS),
    )


def names_said(names: HeadNames | None, head: Head) -> str:
    """A head's names with their numbers, "induction 0.914, first token 0.512"; empty for no name."""
    of_head = () if names is None else names.of_head.get(head, ())
    return ", ".join(
        _often(head_name) if head_name.relation else f"{head_name.called} {number_text(head_name.share)}"
        for head_name in of_head
    )


@lru_cache(4096)  # of each model the same for every text
def _often(name: HeadName) -> str:
    """What a head that is named after a relation often does, and how often the best fixed distance would."""
    return f"often {name.called} ({percent_text(name.share)}; position alone: {percent_text(name.position_alone)})"


def called_words(names: HeadNames, head: Head) -> str:
    """A head's names, for a line beside its numbers; "first token" is left out if there are others."""
    return _called(names.of_head.get(head, ()))


def _called(of_head: Sequence[HeadName]) -> str:
    told = [
        _often(head_name) if head_name.relation else head_name.called
        for head_name in of_head
        if _marks(head_name)
    ]
    told = told or [head_name.called for head_name in of_head]
    more = f" and {len(told) - MOST_CALLED} more" if len(told) > MOST_CALLED else ""
    return ", ".join(told[:MOST_CALLED]) + more


def attending(tokens: Tokens) -> Mapping[str, str]:
    """`ATTENDS` with the special tokens that a text has: not every model has [CLS] and [SEP]."""
    special = np.flatnonzero(tokens.is_special).tolist()
    after = dict.fromkeys(tokens.labels[at] for at in special if at > 0)
    own = {}
    if 0 in special:
        own["[CLS]"] = f"mostly to {tokens.labels[0]}"
    if after:
        own["[SEP]"] = (
            f"mostly to {next(iter(after)) if len(after) == 1 else 'the special tokens after the first'}"
        )
    return ATTENDS | own


def attends_words(
    labels: Mapping[str, Bool[np.ndarray, "layer head"]], words: Mapping[str, str], head: Head
) -> str:
    """How a head attends on the text on screen, "to the previous token"; empty if it matches no pattern.

    Args:
        labels: as `attnviz.heads.labels` finds them.
        words: `attending` of the keys.
    """
    return " and ".join(words[label] for label, matches in labels.items() if matches[head])


def heads_said(
    heads: Iterable[Head],
    labels: Mapping[str, Bool[np.ndarray, "layer head"]],
    words: Mapping[str, str],
    names: HeadNames | None,
) -> list[list[str]]:
    """What is known of each head by name, layer by layer.

    Such as "Layer 3, head 1: attends to the previous token on this text; over many texts: previous token".

    Args:
        labels, words: as for `attends_words`.
        names: None while they are unknown; then they are not mentioned.
    """
    matched = {head: attends_words(labels, words, Head(*head)) for head in _matching(labels)}
    return [
        [
            _head_line(head, title, matched.get(head, ""), names)
            for head, title in zip(of_layer, titles(of_layer), strict=True)
        ]
        for of_layer in by_layer(heads)
    ]


def _matching(labels: Mapping[str, Bool[np.ndarray, "layer head"]]) -> set[tuple[int, int]]:
    """The heads that match any pattern."""
    return {(layer, head) for matches in labels.values() for layer, head in np.argwhere(matches).tolist()}


def _head_line(head: Head, title: str, attends: str, names: HeadNames | None) -> str:
    on_text = f"{title}: attends {attends} on this text" if attends else title
    called = "" if names is None else called_words(names, head)
    return on_text if names is None or not called else f"{on_text}; {names.briefly}: {called}"


def head_words(
    attends: str,
    names: HeadNames | None,
    head: Head,
    *,
    knows_text: bool,
    is_done_here: Callable[[HeadName], bool],
) -> str:
    """The selected head's names and what they were measured on, for a line of its own; or that it matches no known pattern.

    Args:
        attends: its `attends_words`.
        names: None while they are unknown; then they are not mentioned.
        knows_text: whether the patterns on the text are known; if not, they are not mentioned.
        is_done_here: whether the head does on the text what a name says; other names are left out.
    """
    on_text = f"Attends {attends} on this text" if attends else ""
    of_head = () if names is None else names.of_head.get(head, ())
    here = [head_name for head_name in of_head if is_done_here(head_name)]
    tried = ["on this text"] * knows_text + ([] if names is None or of_head else [names.briefly])
    none = f"No known pattern {' or '.join(tried)}" if tried else ""
    return " · ".join(filter(None, (on_text, _elsewhere(names, here) if names and here else ""))) or none


def _elsewhere(names: HeadNames, of_head: Sequence[HeadName]) -> str:
    """What a head is called, with the texts that this was measured on where a reader could take it for this one."""
    called = _called(of_head)
    if names.in_english and called.startswith("often"):
        return called[:1].upper() + called[1:]
    return f"{names.briefly[:1].upper()}{names.briefly[1:]}: {called}"


def with_names(sentence: str, names: HeadNames | None, head: Head) -> str:
    """A sentence about a head, followed by the head's names."""
    called = names_said(names, head)
    return sentence if names is None or not called else f"{sentence}; {names.where}: {called}"


def _marks(name: HeadName) -> str:
    return NAME_MARKS[RELATION] if name.relation else NAME_MARKS.get(name.called, "")


def mark_of(names: HeadNames | None, head: Head) -> str:
    """The letters that mark a head, by its names."""
    of_head: Sequence[HeadName] = () if names is None else names.of_head.get(head, ())
    return "".join(dict.fromkeys(_marks(head_name) for head_name in of_head))


def marks_of(names: HeadNames | None, heads: Iterable[Head]) -> list[list[str]] | None:
    """The marks of heads given layer by layer; None while no head is named."""
    return None if names is None else [[mark_of(names, head) for head in row] for row in by_layer(heads)]


def marks_note(names: HeadNames | None) -> str:
    """What the marks mean, and their source; empty while no head is named."""
    if names is None:
        return ""
    marks = " · ".join(f"{NAME_MARKS[value]} {value}" for value in names.marked)
    return (
        f"Marks {names.where}: {marks}: {names.note} Heads that rest on the first token have no mark; hover over a head or tap it "
        "for all its names."
    )
