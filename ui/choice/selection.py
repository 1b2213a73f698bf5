"""Everything that a person can choose, as one Selection, and how it is written in a link and read from one.

One concept: the Selection and its query string. The session is `ui.choice.state`'s.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from attnviz.cost.counting import Quantity
from attnviz.effects.masks import MASKS, MaskName
from attnviz.effects.scaling import LARGEST_D_K, SCALES
from attnviz.figures import collection as collection_figures
from attnviz.figures.heatmap import Shown, Special
from attnviz.figures.theme import Colour
from attnviz.figures.tint import Tint
from attnviz.heads import BROAD, DELIMITER, LABELS, NEAR, STATISTICS
from attnviz.maps.joint_map import JOINT_METHODS, JointMethod
from attnviz.maps.layouts import FEWEST_ITERATIONS, LARGEST_SEED, METRICS, MOST_ITERATIONS
from attnviz.maps.projection import METHODS
from attnviz.maps.spaces import SPACES, Space
from attnviz.model.catalogue import default_model, offers
from attnviz.records import KINDS, Unit
from ui.choice.presets import first_screen
from ui.work.cache import Source

Sentences = Literal["all", "A → A", "A → B", "B → A", "B → B"]
"""Which of a pair's sentences the queries come from, and which the keys."""
Where = Literal["this head", "this layer", "all layers"]
"""Where a mask is applied inside the forward pass."""
MapsOrder = Literal["layer", "belief"]
"""How the maps of all heads are ordered: by layer and head, or the most reliable first."""
Threshold = Literal["share", "weight"]
"""What the lines of the flow are chosen by."""

_HEAD = re.compile(r"\d{1,4}(\.\d{1,4})?", re.ASCII)
_LARGEST_NUMBER = 10**12  # in a link; far above anything that is there to be picked

FEWEST_AROUND = 12
"""Entries a side of the smallest part of a comparison that is zoomed to."""

CHOICES: dict[str, tuple[str, ...]] = {
    "show": get_args(Shown),
    "colour": get_args(Colour),
    "special": get_args(Special),
    "unit": get_args(Unit),
    "sentences": get_args(Sentences),
    "method": METHODS,
    "space": SPACES,
    "metric": METRICS,
    "tint": get_args(Tint),
    "mask": MASKS,
    "where": get_args(Where),
    "quantity": get_args(Quantity),
    "maps_order": get_args(MapsOrder),
    "lines": ("bundled", "own"),
    "lines_method": JOINT_METHODS,
    "lines_space": SPACES,
    "lines_tint": collection_figures.TINTS,
    "at_side": ("query", "key"),
    "kind": KINDS,
    "threshold": get_args(Threshold),
    "kept": ("query", "key"),
    "grid": ("pictures", *STATISTICS),
    "label": ("all", *LABELS, "none"),
}
"""Fields that hold one of a few words."""
RANGES: dict[str, tuple[float, float]] = {
    "layer": (0, np.inf),
    "head": (0, np.inf),
    "query": (0, np.inf),
    "key": (0, np.inf),
    "other_layer": (0, np.inf),
    "other_head": (0, np.inf),
    "around": (FEWEST_AROUND, np.inf),
    "query_to": (0, np.inf),
    "key_to": (0, np.inf),
    "perplexity": (1, 100),
    "iterations": (FEWEST_ITERATIONS, MOST_ITERATIONS),
    "seed": (0, LARGEST_SEED),
    "dimensions": (2, 3),
    "neighbours": (2, 500),
    "lines_perplexity": (1, 500),
    "at_sentence": (0, np.inf),
    "at_token": (0, np.inf),
    "min_dist": (0, 1),
    "step": (0, 8),
    "scale": (SCALES[0], SCALES[-1]),
    "d_k": (1, LARGEST_D_K),
    "shift": (1, 511),
    "reach": (0, 512),
    "tile": (1, 512),
    "tiles": (1, 10**6),
    "share": (10, 100),
    "least": (0, 100),
    "lowest": (0, np.inf),
    "highest": (0, np.inf),
    "near": (0, 1),
    "delimiter": (0, 1),
    "broad": (0, 1),
}
"""Fields that hold a number: the lowest and the highest."""
FRACTIONS = (
    "perplexity",
    "lines_perplexity",
    "min_dist",
    "scale",
    "least",
    "lowest",
    "highest",
    "near",
    "delimiter",
    "broad",
)
"""Those of them that need not be whole."""
LISTS = ("masked", "other_masked", "unseen")
"""Fields that hold positions, written with commas."""
SWITCHES = ("cut", "values", "common", "pairs_special", "pairs_self", "by_size")
"""Fields that are on (1) or off (0)."""
TEXTS = ("text", "second", "bundle", "other_text", "other_second", "found")
"""Fields that hold typed text, or a name that is looked up."""


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
    kind: str = ""
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
    method: str = "attention"
    """What places the points of the query-key space; the first screen's map is always t-SNE."""
    space: Space = "lifted"
    """What that method is fed with; the first screen's map with the vectors as they are."""
    dimensions: int = 2
    values: bool = False
    """Whether value vectors are in the map too."""
    held: str = ""
    """Head that the map is turned to lie like, as "3.5"; empty for none."""
    tint: Tint = "role"
    maps_order: MapsOrder = "layer"
    by_size: bool = False
    """Whether the dimensions of the picked pair stand in the order of what they add to its score."""
    metric: str = "cosine"
    perplexity: float = 5.0
    iterations: int = 1000
    neighbours: int = 15
    min_dist: float = 0.1
    seed: int = 0
    lines: str = "bundled"
    """Which sentences the joint map is of: those that come with attnviz, or the session's own, which no link holds."""
    lines_method: JointMethod = "pca"
    """What places the points of the joint map, what it is fed with, and what they are coloured by: its own, since
    thousands of points ask for other settings than one sentence does."""
    lines_space: Space = "lifted"
    lines_perplexity: float = 30.0
    lines_tint: str = "role"
    found: str = ""
    """Token that stands out in the joint map; empty for none."""
    at_sentence: int | None = None
    """Number of the sentence whose token is picked in the joint map; None while none is."""
    at_token: int = 0
    """Position of that token in its sentence."""
    at_side: str = "query"
    """Whether its query or its key is picked."""
    heads: tuple[str, ...] = ()
    """Heads whose lines are drawn beside those of the picked one, as "3.5"; "3" for all heads of a layer together."""
    threshold: Threshold = "share"
    share: int = 70
    """Share of each row that is drawn, in percent."""
    least: float = 5.0
    """Weight of the weakest line that is drawn, in percent; of the largest where rows do not sum to 1."""
    kept: str = ""
    """Whether lines are shown of the picked "query" or "key" alone; empty for neither."""
    step: int = 1
    """Step of attention that is shown, from 1; 0 for all of them."""
    scale: float | None = None
    """What dot products are multiplied with to see what becomes of a row; None for the model's own scale."""
    d_k: int | None = None
    """Dimensions of the random vectors beside the model's; None for as many as the head has."""
    mask: MaskName = "causal"
    """The kind of attention that the model's own is compared with."""
    shift: int = 1
    """Positions that the vectors of the 2017 paper are moved on by one matrix."""
    reach: int = 2
    """Tokens that a sliding window reaches to each side."""
    unseen: tuple[int, ...] = ()
    """Positions of keys that the mask hides from every query."""
    flipped: tuple[str, ...] = ()
    """Cells that were painted, as "7.5" for query 7 and key 5."""
    where: Where = "all layers"
    quantity: Quantity = "bytes"
    """What is counted of the cost of attention."""
    tile: int = 4
    """Keys that streaming attention reads at a time."""
    tiles: int = 1
    """Tiles that it has read."""
    grid: str = "pictures"
    """What the grid of all heads shows: pictures, or one of `attnviz.heads.STATISTICS`."""
    common: bool = False
    """Whether the pictures of all heads share one scale."""
    label: str = "all"
    """The label of the heads that are not dimmed in the grid: one of `attnviz.heads.LABELS`, all or none."""
    lowest: float | None = None
    """Least number of the heads that are not dimmed; None for no limit."""
    highest: float | None = None
    """Largest number of the heads that are not dimmed; None for no limit."""
    near: float = NEAR
    delimiter: float = DELIMITER
    broad: float = BROAD
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
    around: int | None = None
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
            one.name: _write(getattr(self, one.name))
            for one in fields(self)
            if one.name in always or getattr(self, one.name) != one.default
        }


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
    values: dict[str, Any] = {name: params[name] for name in TEXTS if name in params}
    if other := params.get("other_model"):
        if other in [offer.name for offer in offers()]:
            values["other_model"] = other
        else:
            notices.append(
                f"The link compares with the model “{other}”, which is not offered here; it is left out."
            )
    for name, choices in CHOICES.items():
        if params.get(name, "") in choices:
            values[name] = params[name]
        elif name in params:
            notices.append(
                f"The link asks for {name} “{params[name]}”; it can be {', '.join(choices[:-1])} or {choices[-1]}. "
                "The usual one is shown."
            )
    for name in SWITCHES:
        if params.get(name) in ("0", "1"):
            values[name] = params[name] == "1"
        elif name in params:
            notices.append(f"The link asks for {name} “{params[name]}”; it can be 0 or 1. It is taken as 0.")
    for name in params.keys() & set(LISTS):
        numbers = [_number(one, whole=True) for one in params.get(name, "").split(",") if one]
        if None in numbers:
            notices.append(
                f"The link asks for {name} “{params[name]}”; it can be positions such as 3,5. It is left out."
            )
        else:
            values[name] = tuple(sorted({int(one) for one in numbers if one is not None and one >= 0}))
    for name, things in (("heads", "heads"), ("flipped", "cells")):
        if name in params:
            names = params[name].split(",")
            values[name] = tuple(dict.fromkeys(one for one in names if _HEAD.fullmatch(one)))
            if len(values[name]) < len(names):
                notices.append(f"The link asks for {things} “{params[name]}”; they are written as 3.5,4.2.")
    if "held" in params:
        if _HEAD.fullmatch(params["held"]) and "." in params["held"]:
            values["held"] = params["held"]
        else:
            notices.append(
                f"The link holds the map like head “{params['held']}”; it is written as 3.5. It is left out."
            )
    for name, (lowest, highest) in RANGES.items():
        if name in params:
            number = _number(params[name], whole=name not in FRACTIONS)
            if number is None:
                notices.append(
                    f"The link asks for {name} “{params[name]}”, which is no number; the usual one is shown."
                )
                continue
            values[name] = type(number)(min(max(number, lowest), highest))
            if values[name] != number:
                notices.append(f"The link asks for {name} {number}; {values[name]} is the nearest there is.")
    return replace(first_selection(model), **values), notices


def can_hold(name: str, value: Any) -> bool:
    """Whether a field of the selection can hold a value that a widget sends.

    It cannot hold the label of an option, which Streamlit 1.67 gives as it is when the option is no longer there.
    """
    if name in CHOICES:
        return value in CHOICES[name]
    if name in LISTS:
        return not any(isinstance(one, str) for one in value)
    return name not in RANGES or not isinstance(value, str)


def _number(text: str, *, whole: bool) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not np.isfinite(number) or (whole and number != int(number)):
        return None
    number = min(max(number, -_LARGEST_NUMBER), _LARGEST_NUMBER)
    return int(number) if whole else number


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
