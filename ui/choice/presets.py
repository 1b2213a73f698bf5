"""Example sentences, and what the first screen shows for each model."""

from dataclasses import dataclass

from attnviz.model.catalogue import BERT, EMBEDDED
from attnviz.records import Head


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A sentence worth looking at."""

    name: str
    text: str
    query: str | None = None
    """Token that is selected as the query when the sentence is chosen."""
    key: str | None = None
    head: Head | None = None
    """The head in which `model` links the two; None where the head that is selected stays."""
    model: str | None = None
    has_blank: bool = False
    """Whether it has a [MASK], which only a model with a masked-language head fills in."""


DOOR_IT = Preset(
    name="A pronoun: the door and it",
    text="I was watching the door when it opened.",
    query="it",
    key="door",
    head=Head(layer=3, head=1),
    model=EMBEDDED,
)
DOOR_MASK = Preset(
    name="A blank: the door and [MASK]",
    text="I was watching the door when [MASK] opened.",
    query="[MASK]",
    key="door",
    head=Head(layer=3, head=11),
    model=BERT,
    has_blank=True,
)
PRESETS = (
    DOOR_IT,
    DOOR_MASK,
    Preset(
        name="A garden path: the old man", text="The old man the boats while the young fish.", query="man"
    ),
    Preset(
        name="An ambiguous word: bank",
        text="She sat on the bank of the river and thought about the bank that kept her money.",
        query="bank",
    ),
    Preset(
        name="A fact with a blank",
        text="Paris is the capital of [MASK].",
        query="[MASK]",
        has_blank=True,
    ),
    Preset(
        name="A long sentence",
        text=(
            "The committee that the mayor had appointed in spring, after the river flooded the old market "
            "twice, reported that the bridge could be saved if the arches were raised, the road narrowed, "
            "and the houses beside it, most of them empty since the flood, bought and taken down."
        ),
        query="it",
    ),
)


def offered_presets(*, fills_blanks: bool) -> tuple[Preset, ...]:
    """The examples for a model that fills in [MASK], or for one that does not."""
    return tuple(one for one in PRESETS if fills_blanks or not one.has_blank)


def first_preset(model: str) -> Preset:
    """The door sentence with the head of this model that links the door; the embedded model's for others."""
    return DOOR_MASK if model == BERT else DOOR_IT
