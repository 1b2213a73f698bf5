"""What heads are called after what they do, on the text that is shown and on random tokens that come twice, as words and marks.

One concept: the names of heads on screen. Who finds them out is `ui.page.head_names`.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from jaxtyping import Bool

from attnviz.figures.numbers import number_text
from attnviz.heads.probes import NAMED, PROBES, HeadProbes
from attnviz.records import Head, by_layer
from ui.words.findings import ATTENDS

NAME_MARKS: Mapping[str, str] = {"probe_induction": "I", "probe_duplicate": "D", "probe_previous": "←"}
"""What marks a named head in a grid. The first token has none: in many models it would stand in most cells."""


def names_said(probes: HeadProbes | None, head: Head) -> str:
    """What a head is called with its numbers, "induction 0.914, first token 0.512"; empty for no name."""
    if probes is None:
        return ""
    return ", ".join(
        f"{PROBES[name].called} {number_text(float(probes.means[name][head]))}" for name in probes.names(head)
    )


def called_words(probes: HeadProbes, head: Head) -> str:
    """What a head is called, for a line beside its numbers; the first token is left out of several names."""
    names = probes.names(head)
    told = [name for name in names if name in NAME_MARKS] or names
    return ", ".join(PROBES[name].called for name in told)


def attends_words(labels: Mapping[str, Bool[np.ndarray, "layer head"]], head: Head) -> str:
    """How a head attends on the text that is shown, "to the previous token"; empty where it matches no pattern.

    Args:
        labels: as `attnviz.heads.labels` finds them.
    """
    return " and ".join(ATTENDS[label] for label, matches in labels.items() if matches[head])


def head_words(attends: str, called: str, *, knows_text: bool, knows_random: bool) -> str:
    """What the selected head is called, for a line of its own, and what that was measured on; or that it matches no known pattern.

    Args:
        attends: its `attends_words`.
        called: its `called_words`; empty where it has none.
        knows_text: whether the patterns of the text are known, and those of random tokens (``knows_random``): without, nothing is said
            of them.
    """
    on_text = f"Attends {attends} on this text" if attends else ""
    on_random = f"On repeated random tokens: {called}" if called else ""
    tried = ["on this text"] * knows_text + ["on repeated random tokens"] * knows_random
    none = f"No known pattern {' or '.join(tried)}" if tried else ""
    return " · ".join(filter(None, (on_text, on_random))) or none


def with_names(said: str, probes: HeadProbes | None, head: Head) -> str:
    """What is said of a head, and what it is called."""
    names = names_said(probes, head)
    return f"{said}; on repeated random tokens: {names}" if names else said


def mark_of(probes: HeadProbes | None, head: Head) -> str:
    """The letters that mark a head after its names."""
    return "" if probes is None else "".join(NAME_MARKS.get(name, "") for name in probes.names(head))


def marks_of(probes: HeadProbes | None, heads: Iterable[Head]) -> list[list[str]] | None:
    """The marks of heads that come layer by layer; None while no head is named."""
    return None if probes is None else [[mark_of(probes, head) for head in row] for row in by_layer(heads)]


def marks_note(probes: HeadProbes | None) -> str:
    """What the marks stand for, and of which text; empty while no head is named."""
    if probes is None:
        return ""
    marks = " · ".join(f"{mark} {PROBES[name].called}" for name, mark in NAME_MARKS.items())
    return (
        f"Marks from random tokens: {marks}: heads that give more than {NAMED:.0%} of their weight to it on {probes.n_token} repeated random "
        f"tokens, mean of {probes.n_text} such texts. Heads that rest on the first token have no mark; hover over a head or tap it for "
        "all its numbers."
    )
