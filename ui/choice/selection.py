"""Everything that a visitor can select, as one Selection, and how links are written and read; rooms register their choices.

`ui.choice.state` handles the session; the settings of single rooms are in their `choices`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal, Self, TypeVar

from attnviz.cost.counting import Quantity
from attnviz.figures.heatmap import CellMeasure, Special
from attnviz.figures.theme import Colour
from attnviz.maps.layouts import LARGEST_SEED
from attnviz.model.catalogue import default_model, name_on_offer
from attnviz.records import KINDS, Head, Template, Unit
from attnviz.viewer import CHOICES
from attnviz.viewer.tiles import Pool
from ui.choice.fields import LinkError, Number, Place, Positions, Switch, Text, Word, declarations, in_link
from ui.choice.presets import first_preset, outcome_of_example
from ui.runtime.source import Source

Choices = TypeVar("Choices")

LANGUAGES = ("source_language", "target_language")

Filled = Literal["all", "token_flow", "matrix", "map"]
"""Which part fills the stage of the first screen; with "all" they share it."""

Sentences = Literal["all", "A → A", "A → B", "B → A", "B → B"]
"""The sentences of a pair from which the queries and the keys come."""


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Selection:
    """Everything that a link carries. Positions and indices count from 0."""

    model: Annotated[str, Text(title="Model", help="Shows the attention of this model.")]
    text: Annotated[
        str,
        Text(title="Sentence", help="What the model reads: any language, up to the model's limit of tokens."),
    ]
    second: Annotated[
        str,
        Text(
            title="Second sentence (optional)",
            help="Read together with the first as a pair; by an encoder-decoder model, as what its decoder has written.",
        ),
    ] = ""
    """Second sentence of a pair; empty for none."""
    source_language: Annotated[
        str,
        Text(title="Source language", help="Tells the tokenizer that the sentence is in this language."),
    ] = ""
    """For a translation model's tokenizer; empty for the tokenizer's default."""
    target_language: Annotated[
        str,
        Text(
            title="Target language",
            help="Tells the tokenizer that the second sentence, which the decoder has written, is in this language.",
        ),
    ] = ""
    template: Annotated[
        Template,
        Word(
            names={"plain": "Text alone", "begin": "Begin-of-text", "chat": "Chat template"},
            title="Around the text",
            help="Puts the model’s begin-of-text token before the text, or makes the text a user’s message in the model’s chat "
            "template; every token that is added is shown.",
        ),
    ] = "plain"
    cut: Annotated[bool, Switch(help="Cuts a text over the model's limit instead of refusing it.")] = False
    masked: Annotated[tuple[int, ...], Positions(help="Replaces the tokens there by the mask token.")] = ()
    bundle: Annotated[
        str, Text(help="SHA-256 of the opened bundle that is shown instead of a computed trace.")
    ] = ""
    kind: Annotated[
        str,
        Word(
            KINDS,
            names=str,
            title="Kind of attention",
            help="Encoder: every token sees every other; decoder: only earlier ones; cross: from decoder to encoder.",
        ),
    ] = ""
    """Empty for the model's first."""
    layer: Annotated[
        int, Number(title="Layer", help="Shows this layer of the model, counted from the text upwards.")
    ] = 0
    head: Annotated[
        int, Number(title="Head", help="Shows this head of the layer; each has its own queries and keys.")
    ] = 0
    query: Annotated[int | None, Number(title="Query", help="Selects the query by its position.")] = None
    """Position of the selected query; None for that of `attnviz.heads.facts.first_link`."""
    key: Annotated[int | None, Number(**CHOICES["key"])] = None
    """Position of the selected key; None for the strongest key of the query."""
    query_to: Annotated[
        int | None, Number(title="Query ends at", help="Makes the query a phrase that ends with this token.")
    ] = None
    """Position of the last token if the query is a phrase; None for one token or word."""
    key_to: Annotated[
        int | None, Number(title="Key ends at", help="Makes the key a phrase that ends with this token.")
    ] = None
    """The same for the key."""
    lines_of: Annotated[
        str,
        Word(
            ("query", "key"),
            title="Lines of the selected",
            help="Joins the selected query to its strongest keys, or the selected key to its strongest queries.",
        ),
    ] = ""
    """Whether the map's lines start at the selected query or key; empty for the default, the query."""
    show: Annotated[CellMeasure, Word(**CHOICES["measure"])] = "weights"
    colour: Annotated[Colour, Word(**CHOICES["colour"])] = "linear"
    pool: Annotated[Pool, Word(**CHOICES["pool"])] = "max"
    clip: Annotated[bool, Switch(**CHOICES["clip"])] = True
    """Whether `attnviz.heads.facts.colour_end` limits the colour scale of a matrix."""
    special: Annotated[Special, Word(**CHOICES["special"])] = "shown"
    without_first: Annotated[bool, Switch(**CHOICES["withoutFirst"])] = False
    unit: Annotated[Unit, Word(**CHOICES["unit"])] = "tokens"
    filled: Annotated[Filled, Word(**CHOICES["fill"])] = "all"
    seen: Annotated[
        str,
        Text(help="Shows this part of a long text's matrix: first row, first column, and number of rows."),
    ] = ""
    """"120.80.256"; empty for the whole matrix."""
    sentences: Annotated[Sentences, Word(**CHOICES["sentences"])] = "all"
    seed: Annotated[
        int,
        Number(
            0,
            LARGEST_SEED,
            title="Random seed",
            help="Another seed draws other random numbers; what changes with it is not reliable.",
        ),
    ] = 0
    tour: Annotated[int, Number(0, 6, title="Tour", help="Shows this stop of the tour; none with 0.")] = 0
    """Stop of the first screen's tour, from 1; 0 outside it."""
    lesson: Annotated[str, Text(help="Leads through this lesson, by the name of its file.")] = ""
    """Empty outside a lesson."""
    lesson_step: Annotated[int, Number(1, 99, help="Shows this step of the lesson.")] = 1
    step: Annotated[int, Number(0, 8, title="Step", help="Shows this step of the computation.")] = 1
    """Step of attention that is shown, from 1; 0 for all steps."""
    shift: Annotated[
        int,
        Number(1, 511, title="Shift, positions", help="Shifts every vector by this many positions."),
    ] = 1
    """Number of positions by which one matrix shifts the position vectors of the 2017 paper."""
    quantity: Annotated[Quantity, Word(title="Counted", help="Counts this in the curves and the table.")] = (
        "bytes"
    )
    """Which cost of attention is counted."""
    outcome: Annotated[
        str,
        Text(
            title="Outcome",
            help="The number that is measured: answer: with a position, counted from 0 or last, a token, and perhaps another whose "
            "logit is subtracted; rank: with position and token; state: or length: with a position; similarity:another sentence; "
            "or class: with a label.",
        ),
    ] = ""
    """As `attnviz.effects.outcome.outcome_from` reads it; empty for the model's own answer, or without a language head for
    the similarity with a sentence that differs by one word."""
    records: tuple[Any, ...] = field(default=(), metadata={"is_of_parts": True})
    """The choices of single parts, see `of`; those that are at their defaults are left out."""

    layers: int = field(default=0, metadata={"is_of_parts": True})
    """How many layers of a long text are there so far; 0 for all. Not in a link."""

    @property
    def place(self) -> Head:
        """The selected head."""
        return Head(self.layer, self.head)

    @cached_property
    def source(self) -> Source:
        """What the trace is computed from."""
        return Source(
            model=self.model,
            text=self.text,
            second=self.second,
            source_language=self.source_language,
            target_language=self.target_language,
            template=self.template,
            cut=self.cut,
            masked=self.masked,
            bundle=self.bundle,
            layers=self.layers,
        )

    def of(self, record: type[Choices]) -> Choices:
        """The choices of a part, by the class of their record (`choices`)."""
        return next((held for held in self.records if type(held) is record), _USUAL[record])

    def value(self, name: str) -> Any:
        """A field's value, by its name in a link."""
        place = PLACES[name]
        return getattr(self if place.record is None else self.of(place.record), place.field)

    def but(self, **changes: Any) -> Self:
        """The same selection with other values, by their names in a link.

        An example's own outcome goes with its text and model.
        """
        read = {"text": self.text, "second": self.second, "model": self.model}
        is_other = any(changes.get(name, before) != before for name, before in read.items())
        if is_other and self.outcome == outcome_of_example(self.model, self.text):
            changes = {"outcome": ""} | changes
        own: dict[str, Any] = {}
        of_records: dict[type[Any], dict[str, Any]] = {}
        for name, value in changes.items():
            place = PLACES[name]
            (own if place.record is None else of_records.setdefault(place.record, {}))[place.field] = value
        records = [replace(self.of(record), **changed) for record, changed in of_records.items()]
        return replace(self, **own).with_records(records) if records else replace(self, **own)

    def with_records(self, records: Iterable[Any]) -> Self:
        """The same selection with other choices of parts, each in place of those of its class."""
        held = {type(record): record for record in (*self.records, *records)}
        kept = [record for kind, record in held.items() if record != _USUAL[kind]]
        return replace(self, records=tuple(sorted(kept, key=lambda record: type(record).__name__)))

    def alone(self, text: str, **changes: Any) -> Self:
        """Another text, read as corpus texts are: by itself, without template, languages, masked tokens or bundle.

        Args:
            changes: as in `but`; for a place in that text.
        """
        alone = {"text": text, "second": "", "template": "plain", "cut": False, "masked": (), "bundle": ""}
        return self.but(**{**alone, **dict.fromkeys(LANGUAGES, ""), **changes})

    def to_params(self) -> dict[str, str]:
        """The query string that opens this screen; defaults are left out."""
        values = {name: value for name, usual in _LEFT_OUT.items() if (value := getattr(self, name)) != usual}
        for record in self.records:
            for name, place in _PLACES_OF[type(record)].items():
                if (value := getattr(record, place.field)) != place.usual:
                    values[name] = value
        return in_link(values)


FIELDS, PLACES = declarations(Selection)
"""What each field can hold and its widget shows, and where its value is stored, by the field's name in a link."""
_LEFT_OUT = {name: MISSING if name in ("layer", "head") else place.usual for name, place in PLACES.items()}
"""The value with which a field of the selection itself is not in a link."""
_USUAL: dict[type[Any], Any] = {}
"""Each record of choices at its defaults."""
_PLACES_OF: dict[type[Any], dict[str, Place]] = {}


def choices(record: type[Choices]) -> type[Choices]:
    """Registers the record of what a part lets people choose: its fields can be in links, and widgets hold them.

    If it has a method ``fitted``, `ui.choice.state.fit` calls it.

    Raises:
        TypeError: a name is taken.
    """
    holds, places = declarations(record, is_part=True)
    if twice := [name for name in holds if name in PLACES and PLACES[name].record is not record]:
        raise TypeError(f"{record.__name__}: {', '.join(twice)} is in links already; rename it.")
    FIELDS.update(holds)
    PLACES.update(places)
    _USUAL[record] = record()
    _PLACES_OF[record] = places
    return record


def usual(name: str) -> Any:
    """The default of a field, by its name in a link; None if it has none."""
    value = PLACES[name].usual
    return None if value is MISSING else value


def can_be(name: str, value: Any) -> bool:
    """Whether a field, by its name in a link, accepts a value: its default, which may be empty, or what it can hold."""
    usually = usual(name)
    is_usual = value is usually or (type(value) is type(usually) and value == usually)
    return is_usual or (value is not None and FIELDS[name].can_hold(value))


def first_selection(model: str) -> Selection:
    """What this model shows before anything is selected."""
    first = first_preset(model)
    assert first.head is not None  # both have one
    selection = Selection(model=model, text=first.text, layer=first.head.layer, head=first.head.head)
    return selection.but(outcome=first.outcome)


def from_params(params: Mapping[str, str]) -> tuple[Selection, list[str]]:
    """The selection of a link, with a sentence for every value that had to be replaced.

    What does not depend on the text is checked here, the rest by `ui.choice.state.fit`. Text and model are never replaced:
    if they cannot be shown, the page shows an error.
    """
    notices: list[str] = []
    values: dict[str, Any] = {"text": params["text"]} if "text" in params else {}
    values |= {name: name_on_offer(params[name]) for name in ("model", "other_model") if params.get(name)}
    for name, holds in FIELDS.items():
        if name in params and name not in ("model", "other_model"):
            try:
                values[name], remark = holds.read(name, params[name])
            except LinkError as error:
                remark = str(error)
            notices += [remark] if remark else []
    return first_selection(values.get("model") or default_model()).but(**values), notices
