"""Example sentences, and what the first screen shows for each model.

Examples of the bundled language model are in presets.toml, which ``make showcases`` writes from measured heads, queries and
keys.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from attnviz.model.catalogue import BERT, EMBEDDED, SMOLLM2
from attnviz.records import Head

FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A sentence worth looking at."""

    name: str
    text: str
    query: str | None = None
    """Token that is selected as the query when the sentence is chosen."""
    key: str | None = None
    at: tuple[int, int] | None = None
    """Positions of query and key in `model`'s tokens; None for the first tokens with these labels."""
    head: Head | None = None
    """The head in which `model` links the two; None to keep the selected head."""
    model: str | None = None
    outcome: str = ""
    """What experiments measure, as `attnviz.effects.outcome.outcome_from` reads it; empty to keep a selected outcome that is no other
    example's."""
    shows: str = ""
    """What `model` shows, with the measured numbers; empty if nothing was measured."""
    numbers: tuple[float, ...] = ()
    """The numbers in `shows`."""
    has_blank: bool = False
    """Whether the text has a [MASK], which only a model with a masked-language head fills in."""

    @property
    def called(self) -> str:
        """Short name: the part before the colon."""
        return self.name.partition(":")[0]


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


@cache
def long_preset() -> Preset:
    """The first three chapters of a novel, 7,933 tokens of SmolLM2.

    Source: Lewis Carroll, Alice's Adventures in Wonderland, 1865, in the public domain.
    """
    return Preset(
        name="A long text: Alice in Wonderland, chapters I to III",
        text=FILE.with_name("alice.txt").read_text(encoding="utf-8").strip(),
        head=Head(layer=2, head=4),
        model=SMOLLM2,
        shows="a head of an early layer, whose far links lead to earlier places of the same word",
    )


def read_presets(text: str) -> tuple[Preset, ...]:
    """The examples of a TOML file."""
    tables = tomllib.loads(text).get("presets", [])
    return tuple(
        Preset(
            **(
                table
                | {"at": tuple(table["at"]), "head": Head(*table["head"]), "numbers": tuple(table["numbers"])}
            )
        )
        for table in tables
    )


MEASURED = read_presets(FILE.read_text(encoding="utf-8"))
"""Examples of the bundled language model, each showing one thing in one head."""


LONG_TOKENS = 8000
"""Tokens that a model reads for which `long_preset` is offered."""


def offered_presets(model: str, *, fills_blanks: bool) -> tuple[Preset, ...]:
    """The examples for a model: its own, then those for all models; with a blank only if the model fills in [MASK]."""
    own = tuple(preset for preset in MEASURED if preset.model == model)
    return (*own, *(preset for preset in PRESETS if fills_blanks or not preset.has_blank))


def outcome_of_example(model: str, text: str) -> str:
    """What experiments measure on an example of the model; empty for other texts."""
    return next((preset.outcome for preset in MEASURED if (preset.model, preset.text) == (model, text)), "")


def first_preset(model: str) -> Preset:
    """A model's first example: the first one measured in it, or else the door sentence with the bundled encoder's head."""
    own = (preset for preset in MEASURED if preset.model == model)
    return DOOR_MASK if model == BERT else next(own, DOOR_IT)
