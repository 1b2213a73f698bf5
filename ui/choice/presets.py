"""Example sentences, and what the first screen shows for each model.

Those of the bundled language model are in presets.toml, which ``make showcases`` writes: their heads, queries and keys are
measured.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from attnviz.model.catalogue import BERT, EMBEDDED
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
    """Positions of the two as `model` reads the sentence; None for the first tokens with these labels."""
    head: Head | None = None
    """The head in which `model` links the two; None where the head that is selected stays."""
    model: str | None = None
    outcome: str = ""
    """What experiments measure, as `attnviz.effects.outcome.outcome_from` reads it; empty where what is selected stays."""
    shows: str = ""
    """What `model` shows, with the numbers measured there; empty where nothing was measured."""
    numbers: tuple[float, ...] = ()
    """Those of `shows`."""
    has_blank: bool = False
    """Whether it has a [MASK], which only a model with a masked-language head fills in."""

    @property
    def called(self) -> str:
        """Its name in short: what stands before the colon."""
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
"""Examples of the bundled language model, each of which shows one thing in one head."""


def offered_presets(model: str, *, fills_blanks: bool) -> tuple[Preset, ...]:
    """The examples of a model: its own first, then those of all; with a blank only where it fills in [MASK]."""
    own = tuple(preset for preset in MEASURED if preset.model == model)
    return (*own, *(preset for preset in PRESETS if fills_blanks or not preset.has_blank))


def first_preset(model: str) -> Preset:
    """What a model shows first: the first example measured in it, or the door sentence, in the bundled encoder's head for others."""
    own = (preset for preset in MEASURED if preset.model == model)
    return DOOR_MASK if model == BERT else next(own, DOOR_IT)
