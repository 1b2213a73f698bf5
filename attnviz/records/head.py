"""One head of a model, or all heads of a layer together, by their numbers from 0.

The kind of attention is that of its trace.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_WRITTEN = re.compile(r"(\d{1,4})(?:\.(\d{1,4}))?", re.ASCII)


class Head(NamedTuple):
    """One head of a layer.

    It indexes a table [layer head] and unpacks as the first two arguments of a trace's methods:
    ``weight_error[head]``, ``trace.weights(*head)``.
    """

    layer: int
    head: int

    def __str__(self) -> str:
        """The head as in links and files: "3.5"."""
        return f"{self.layer}.{self.head}"

    @property
    def short(self) -> str:
        """The head where there is little room: "L3 H5"."""
        return f"L{self.layer} H{self.head}"

    @property
    def words(self) -> str:
        """The head as in a sentence: "layer 3, head 5"."""
        return f"layer {self.layer}, head {self.head}"

    @property
    def title(self) -> str:
        """The same at the beginning of a sentence."""
        return self.words.capitalize()


def titles(heads: Iterable[Head]) -> list[str]:
    """The titles of many heads, in their order."""
    return [head.title for head in heads]


class AllHeads(NamedTuple):
    """All heads of a layer together."""

    layer: int

    def __str__(self) -> str:
        """The layer as in links and files: "3"."""
        return str(self.layer)

    @property
    def short(self) -> str:
        """All heads where there is little room: "L3"."""
        return f"L{self.layer}"

    @property
    def words(self) -> str:
        """All heads as in a sentence: "layer 3, all heads"."""
        return f"layer {self.layer}, all heads"

    @property
    def title(self) -> str:
        """The same at the beginning of a sentence."""
        return self.words.capitalize()


def read_heads(written: str) -> Head | AllHeads:
    """The head written as "3.5", or all heads of the layer written as "3".

    Raises:
        ValueError: the text has another form.
    """
    written_head = _WRITTEN.fullmatch(written)
    if written_head is None:
        raise ValueError(f"A head is written as 3.5 and a layer as 3; “{written}” is neither.")
    layer, head = written_head.groups()
    return AllHeads(int(layer)) if head is None else Head(int(layer), int(head))
