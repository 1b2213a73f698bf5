"""Everything that a visitor can select, as one Selection, and how links are written and read.

`ui.choice.state` handles the session; the settings of single rooms are in their `choices`.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, Literal, Self

from attnviz.cost.counting import Quantity
from attnviz.figures.heatmap import Shown, Special
from attnviz.figures.theme import Colour
from attnviz.maps.layouts import LARGEST_SEED
from attnviz.model.catalogue import default_model, name_on_offer
from attnviz.records import KINDS, Head, Template, Unit
from attnviz.viewer import CHOICES
from ui.choice.fields import LinkError, Number, Positions, Switch, Text, Word, declarations, in_link
from ui.choice.presets import first_preset, outcome_of_example
from ui.rooms.all_heads.choices import GridSettings
from ui.rooms.all_heads.find_a_head.choices import PairList
from ui.rooms.cause.choices import OutcomeSettings
from ui.rooms.cause.effects.choices import EffectsSettings
from ui.rooms.compare.choices import PartnerB
from ui.rooms.compare.patching.choices import PatchingSettings
from ui.rooms.explore.query_key_map.choices import MapSettings
from ui.rooms.explore.token_flow.choices import FlowSettings
from ui.rooms.generate.choices import GenerationSettings
from ui.rooms.how_it_works.kinds_of_attention.choices import MaskSettings
from ui.rooms.how_it_works.scaling.choices import ScalingSettings
from ui.rooms.many_texts.find_tokens.choices import FindTokensSettings
from ui.rooms.many_texts.many_sentences.choices import JointMapSettings
from ui.rooms.many_texts.profiles.choices import ProfileSettings
from ui.runtime.source import Source

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
    show: Annotated[Shown, Word(**CHOICES["measure"])] = "weights"
    colour: Annotated[Colour, Word(**CHOICES["colour"])] = "linear"
    clip: Annotated[bool, Switch(**CHOICES["clip"])] = True
    """Whether `attnviz.heads.facts.colour_end` limits the colour scale of a matrix."""
    special: Annotated[Special, Word(**CHOICES["special"])] = "shown"
    without_first: Annotated[bool, Switch(**CHOICES["withoutFirst"])] = False
    unit: Annotated[Unit, Word(**CHOICES["unit"])] = "tokens"
    filled: Annotated[Filled, Word(**CHOICES["fill"])] = "all"
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
    pairs: PairList = field(default_factory=PairList)
    maps: MapSettings = field(default_factory=MapSettings)
    joint: JointMapSettings = field(default_factory=JointMapSettings)
    profile: ProfileSettings = field(default_factory=ProfileSettings)
    find_tokens: FindTokensSettings = field(default_factory=FindTokensSettings)
    flow: FlowSettings = field(default_factory=FlowSettings)
    masking: MaskSettings = field(default_factory=MaskSettings)
    all_heads: GridSettings = field(default_factory=GridSettings)
    scaling: ScalingSettings = field(default_factory=ScalingSettings)
    outcome: OutcomeSettings = field(default_factory=OutcomeSettings)
    effects: EffectsSettings = field(default_factory=EffectsSettings)
    patching: PatchingSettings = field(default_factory=PatchingSettings)
    generation: GenerationSettings = field(default_factory=GenerationSettings)
    b: PartnerB = field(default_factory=PartnerB)

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
        )

    @property
    def other(self) -> "Selection":
        """B of a comparison: the same selection except for what is set for B."""
        b = self.b
        reads_other = bool(b.model or b.text)
        masked = () if reads_other else self.masked
        return replace(
            self,
            model=b.model or self.model,
            text=b.text or self.text,
            second=b.second if b.text else self.second,
            source_language="" if b.model else self.source_language,
            target_language="" if b.model else self.target_language,
            template="plain" if b.model else self.template,
            masked=masked if b.masked is None else b.masked,
            bundle="" if reads_other or b.masked is not None else self.bundle,
            layer=self.layer if b.layer is None else b.layer,
            head=self.head if b.head is None else b.head,
        )

    def value(self, name: str) -> Any:
        """A field's value, by its name in a link."""
        return PLACES[name].read(self)

    def but(self, **changes: Any) -> Self:
        """The same selection with other values, by their names in a link.

        An example's own outcome goes with its text and model.
        """
        read = {"text": self.text, "second": self.second, "model": self.model}
        is_other = any(changes.get(name, before) != before for name, before in read.items())
        if is_other and self.outcome.outcome == outcome_of_example(self.model, self.text):
            changes = {"outcome": ""} | changes
        parts: dict[str, Any] = {}
        for name, value in changes.items():
            place = PLACES[name]
            if place.part:
                part = parts.get(place.part, getattr(self, place.part))
                parts[place.part] = replace(part, **{place.field: value})
            else:
                parts[place.field] = value
        return replace(self, **parts)

    def alone(self, text: str, **changes: Any) -> Self:
        """Another text, read as corpus texts are: by itself, without template, languages, masked tokens or bundle.

        Args:
            changes: as in `but`; for a place in that text.
        """
        alone = {"text": text, "second": "", "template": "plain", "cut": False, "masked": (), "bundle": ""}
        return self.but(**{**alone, **dict.fromkeys(LANGUAGES, ""), **changes})

    def to_params(self) -> dict[str, str]:
        """The query string that opens this screen; defaults are left out."""
        values = zip(_LEFT_OUT.items(), _read_all(self), strict=True)
        return in_link({name: value for (name, usual), value in values if value != usual})


FIELDS, PLACES = declarations(Selection)
"""What each field can hold and its widget shows, and where its value is stored, by the field's name in a link."""
_read_all = attrgetter(*(".".join(filter(None, (place.part, place.field))) for place in PLACES.values()))
_LEFT_OUT = {name: MISSING if name in ("layer", "head") else place.usual for name, place in PLACES.items()}
"""The value with which a field is not in a link."""


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
