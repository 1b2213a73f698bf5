"""Everything that a person can choose, as one Selection, and how it is written in a link and read from one.

One concept: the Selection and its query string. The session is `ui.choice.state`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from attnviz.cost.counting import Quantity
from attnviz.effects.masks import MaskName
from attnviz.effects.scaling import LARGEST_D_K, SCALES
from attnviz.figures import collection as collection_figures
from attnviz.figures.heatmap import Shown, Special
from attnviz.figures.theme import Colour
from attnviz.figures.tint import Tint
from attnviz.heads import BROAD, DELIMITER, LABELS, NEAR, STATISTICS
from attnviz.maps.joint_map import JointMethod
from attnviz.maps.layouts import FEWEST_ITERATIONS, LARGEST_SEED, METRICS, MOST_ITERATIONS
from attnviz.maps.projection import METHODS
from attnviz.maps.spaces import Space
from attnviz.model.catalogue import default_model, offers
from attnviz.records import KINDS, Unit
from ui.choice.fields import (
    HeldHead,
    LinkError,
    Number,
    Places,
    Word,
    declarations,
    written,
)
from ui.choice.presets import first_screen
from ui.work.source import Source

Sentences = Literal["all", "A → A", "A → B", "B → A", "B → B"]
"""Which of a pair's sentences the queries come from, and which the keys."""
Where = Literal["this head", "this layer", "all layers"]
"""Where a mask is applied inside the forward pass."""
MapsOrder = Literal["layer", "belief"]
"""How the maps of all heads are ordered: by layer and head, or the most reliable first."""
Threshold = Literal["share", "weight"]
"""What the lines of the flow are chosen by."""

FEWEST_AROUND = 12
"""Entries a side of the smallest part of a comparison that is zoomed to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Everything that a link carries. Positions and indices count from 0."""

    model: str
    text: str
    second: str = ""
    """Second sentence of a pair; empty for none."""
    cut: bool = False
    """Whether a text over the model's limit is cut instead of refused."""
    masked: tuple[int, ...] = ()
    """Positions of tokens that the mask token stands for."""
    bundle: str = ""
    """SHA-256 of the opened bundle that is shown in place of a computed trace; empty for none."""
    kind: Annotated[str, Word(KINDS)] = ""
    """Kind of attention; empty for the model's first."""
    layer: int = 0
    head: int = 0
    query: int | None = None
    """Position of the picked query; None to pick the one with the strongest link."""
    key: int | None = None
    """Position of the picked key; None for the strongest key of the query."""
    query_to: int | None = None
    """Position of the last token where a phrase is picked as the query; None for one token or word."""
    key_to: int | None = None
    """The same for the key."""
    pairs_special: bool = False
    """Whether pairs with special tokens are among the strongest pairs."""
    pairs_self: bool = False
    """Whether a token's weight on itself is."""
    show: Shown = "weights"
    colour: Colour = "linear"
    special: Special = "shown"
    unit: Unit = "tokens"
    sentences: Sentences = "all"
    method: Annotated[str, Word(METHODS)] = "attention"
    """What places the points of the query-key space; the first screen's map is always t-SNE."""
    space: Space = "lifted"
    """What that method is fed with; the first screen's map with the vectors as they are."""
    dimensions: Annotated[int, Number(2, 3)] = 2
    values: bool = False
    """Whether value vectors are in the map too."""
    held: Annotated[str, HeldHead()] = ""
    """Head that the map is turned to lie like, as "3.5"; empty for none."""
    tint: Tint = "role"
    maps_order: MapsOrder = "layer"
    by_size: bool = False
    """Whether the dimensions of the picked pair stand in the order of what they add to its score."""
    metric: Annotated[str, Word(METRICS)] = "cosine"
    perplexity: Annotated[float, Number(1, 100)] = 5.0
    iterations: Annotated[int, Number(FEWEST_ITERATIONS, MOST_ITERATIONS)] = 1000
    neighbours: Annotated[int, Number(2, 500)] = 15
    min_dist: Annotated[float, Number(0, 1)] = 0.1
    seed: Annotated[int, Number(0, LARGEST_SEED)] = 0
    lines: Annotated[str, Word(("bundled", "own"))] = "bundled"
    """Which sentences the joint map is of: those that come with attnviz, or the session's own, which no link holds."""
    lines_method: JointMethod = "pca"
    """What places the points of the joint map, what it is fed with, and what they are coloured by: its own, since
    thousands of points ask for other settings than one sentence does."""
    lines_space: Space = "lifted"
    lines_perplexity: Annotated[float, Number(1, 500)] = 30.0
    lines_tint: Annotated[str, Word(collection_figures.TINTS)] = "role"
    found: str = ""
    """Token that stands out in the joint map; empty for none."""
    at_sentence: int | None = None
    """Number of the sentence whose token is picked in the joint map; None while none is."""
    at_token: int = 0
    """Position of that token in its sentence."""
    at_side: Annotated[str, Word(("query", "key"))] = "query"
    """Whether its query or its key is picked."""
    heads: Annotated[tuple[str, ...], Places("heads")] = ()
    """Heads whose lines are drawn beside those of the picked one, as "3.5"; "3" for all heads of a layer together."""
    threshold: Threshold = "share"
    share: Annotated[int, Number(10, 100)] = 70
    """Share of each row that is drawn, in percent."""
    least: Annotated[float, Number(0, 100)] = 5.0
    """Weight of the weakest line that is drawn, in percent; of the largest where rows do not sum to 1."""
    kept: Annotated[str, Word(("query", "key"))] = ""
    """Whether lines are shown of the picked "query" or "key" alone; empty for neither."""
    step: Annotated[int, Number(0, 8)] = 1
    """Step of attention that is shown, from 1; 0 for all of them."""
    scale: Annotated[float | None, Number(SCALES[0], SCALES[-1])] = None
    """What dot products are multiplied with to see what becomes of a row; None for the model's own scale."""
    d_k: Annotated[int | None, Number(1, LARGEST_D_K)] = None
    """Dimensions of the random vectors beside the model's; None for as many as the head has."""
    mask: MaskName = "causal"
    """The kind of attention that the model's own is compared with."""
    shift: Annotated[int, Number(1, 511)] = 1
    """Positions that the vectors of the 2017 paper are moved on by one matrix."""
    reach: Annotated[int, Number(0, 512)] = 2
    """Tokens that a sliding window reaches to each side."""
    unseen: tuple[int, ...] = ()
    """Positions of keys that the mask hides from every query."""
    flipped: Annotated[tuple[str, ...], Places("cells")] = ()
    """Cells that were painted, as "7.5" for query 7 and key 5."""
    where: Where = "all layers"
    quantity: Quantity = "bytes"
    """What is counted of the cost of attention."""
    tile: Annotated[int, Number(1, 512)] = 4
    """Keys that streaming attention reads at a time."""
    tiles: Annotated[int, Number(1, 10**6)] = 1
    """Tiles that it has read."""
    grid: Annotated[str, Word(("pictures", *STATISTICS))] = "pictures"
    """What the grid of all heads shows: pictures, or one of `attnviz.heads.STATISTICS`."""
    common: bool = False
    """Whether the pictures of all heads share one scale."""
    label: Annotated[str, Word(("all", *LABELS, "none"))] = "all"
    """The label of the heads that are not dimmed in the grid: one of `attnviz.heads.LABELS`, all or none."""
    lowest: float | None = None
    """Least number of the heads that are not dimmed; None for no limit."""
    highest: float | None = None
    """Largest number of the heads that are not dimmed; None for no limit."""
    near: Annotated[float, Number(0, 1)] = NEAR
    delimiter: Annotated[float, Number(0, 1)] = DELIMITER
    broad: Annotated[float, Number(0, 1)] = BROAD
    other_model: str = ""
    """Model of B, which this selection is compared with; empty for the same."""
    other_text: str = ""
    """Sentence of B; empty for the same, second sentence included."""
    other_second: str = ""
    """Second sentence of B; empty for none where B has a sentence of its own."""
    other_masked: tuple[int, ...] | None = None
    """Positions of B's tokens that the mask token stands for; None for the same where B reads the same."""
    other_layer: int | None = None
    """Layer of B; None for the same."""
    other_head: int | None = None
    """Head of B; None for the same."""
    around: Annotated[int | None, Number(FEWEST_AROUND)] = None
    """Entries a side of the part of a comparison that is shown, around the picked pair; None for all."""

    @property
    def source(self) -> Source:
        """What the trace is made from."""
        return Source(
            model=self.model,
            text=self.text,
            second=self.second,
            cut=self.cut,
            masked=self.masked,
            bundle=self.bundle,
        )

    @property
    def other(self) -> "Selection":
        """B of a comparison: the same in everything that is not set for it."""
        reads_other = bool(self.other_model or self.other_text)
        masked = () if reads_other else self.masked
        return replace(
            self,
            model=self.other_model or self.model,
            text=self.other_text or self.text,
            second=self.other_second if self.other_text else self.second,
            masked=masked if self.other_masked is None else self.other_masked,
            bundle="" if reads_other or self.other_masked is not None else self.bundle,
            layer=self.layer if self.other_layer is None else self.other_layer,
            head=self.head if self.other_head is None else self.other_head,
        )

    def to_params(self) -> dict[str, str]:
        """The query string that opens this very screen; what is at its default is left out."""
        always = {"model", "text", "layer", "head"}
        return {
            one.name: written(getattr(self, one.name))
            for one in fields(self)
            if one.name in always or getattr(self, one.name) != one.default
        }


HOLDS = declarations(Selection)
"""What each field can hold."""
CHOICES = {name: holds.options for name, holds in HOLDS.items() if isinstance(holds, Word)}
"""The words of the fields that hold one of a few."""
NUMBERS = {name: holds for name, holds in HOLDS.items() if isinstance(holds, Number)}
"""The ranges of the fields that hold a number."""


def first_selection(model: str) -> Selection:
    """What this model shows before anything is chosen."""
    first = first_screen(model)
    return Selection(model=model, text=first.preset.text, layer=first.layer, head=first.head)


def from_params(params: Mapping[str, str]) -> tuple[Selection, list[str]]:
    """The selection of a link, with a sentence for every value that had to be replaced.

    What does not depend on the text is checked here, the rest by `ui.choice.state.fit`.
    """
    notices: list[str] = []
    model = params.get("model", "")
    if model not in [offer.name for offer in offers()]:
        if model:
            notices.append(
                f"The link asks for the model “{model}”, which is not offered here; {default_model()} is shown."
            )
        model = default_model()
    values: dict[str, Any] = {"text": params["text"]} if "text" in params else {}
    if other := params.get("other_model"):
        if other in [offer.name for offer in offers()]:
            values["other_model"] = other
        else:
            notices.append(
                f"The link compares with the model “{other}”, which is not offered here; it is left out."
            )
    for name, holds in HOLDS.items():
        if name in params and name not in ("model", "other_model"):
            try:
                values[name], remark = holds.read(name, params[name])
            except LinkError as error:
                remark = str(error)
            notices += [remark] if remark else []
    return replace(first_selection(model), **values), notices
