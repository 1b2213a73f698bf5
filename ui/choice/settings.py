"""What one page lets people choose, a record for each: pages that show attention as it is, and compare it.

Settings of maps, which several pages draw, are in `ui.choice.map_settings`; those of pages that run the model again with
something changed in `ui.choice.experiment_settings`.

Names in a link are the names of the fields, after the record's ``PREFIX`` where it has one.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from attnviz.corpus.contexts import Vectors
from attnviz.effects.masks import MaskName
from attnviz.effects.scaling import LARGEST_D_K, SCALES
from attnviz.heads import BROAD, DELIMITER, LABELS, NEAR, PROBES, STATISTICS
from attnviz.records import AllHeads, Head
from ui.choice.fields import Cell, Cells, Heads, Number, Positions, Switch, Text, Word
from ui.words.findings import MARKS

AppliedIn = Literal["this head", "this layer", "all layers"]
"""Where a mask is applied inside the forward pass."""
Threshold = Literal["share", "weight"]
"""What the lines of the flow are chosen by."""

FEWEST_ZOOMED = 12
"""Entries a side of the smallest part of a comparison that is zoomed to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """The lines from queries to keys: of which heads, and from what weight on."""

    heads: Annotated[
        tuple[Head | AllHeads, ...],
        Heads(
            title="Beside the selected head",
            help="Draws the lines of these heads too, each in its own colour.",
        ),
    ] = ()
    """Heads, or all heads of a layer together, beside the selected one."""
    threshold: Annotated[
        Threshold,
        Word(
            names={"share": "Share of each row", "weight": "Weight"},
            title="Threshold",
            help="Leaves out weak lines by how much of their row the stronger ones hold, or by their weight alone.",
        ),
    ] = "share"
    share: Annotated[
        int,
        Number(
            10,
            100,
            step=5,
            title="Share of each row",
            help="Draws the strongest lines of each query until they hold this share of its row.",
        ),
    ] = 70
    """In percent."""
    weakest: Annotated[
        float,
        Number(
            0,
            100,
            title="Weakest line, in percent",
            help="Draws lines of this weight and above; of norm-based weights, in percent of the largest.",
        ),
    ] = 5.0
    """In percent; of the largest where rows do not sum to 1."""
    at_once: Annotated[
        int | None,
        Number(
            0,
            2000,
            step=50,
            title="Lines at once",
            help="Draws this many of the strongest lines, beside those of the selected query and key, until you hover over a token or tap it.",
        ),
    ] = None
    """None for all lines of a short text and none of a long one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskSettings:
    """The attention mask that is compared with the model's own, and streaming attention under it."""

    mask: Annotated[
        MaskName,
        Word(
            names={
                "none": "None",
                "causal": "Causal",
                "window": "Sliding window",
                "sentences": "One sentence",
            },
            title="Attention mask",
            help="Sets which keys a query may see in the right matrix.",
        ),
    ] = "causal"
    applied_in: Annotated[
        AppliedIn,
        Word(
            title="Applied in",
            help="Applies the attention mask in this part of the model's forward pass, to show what it does to the output.",
        ),
    ] = "all layers"
    reach: Annotated[
        int,
        Number(
            0,
            512,
            title="Tokens to each side",
            help="Sets how far a token sees in a sliding window.",
        ),
    ] = 2
    hidden_keys: Annotated[
        tuple[int, ...],
        Positions(
            title="Masked keys", help="Masks these columns of the matrix, whatever the attention mask."
        ),
    ] = ()
    painted: Annotated[
        tuple[Cell, ...],
        Cells(help="Allows these cells where the attention mask forbids them, and the reverse."),
    ] = ()
    tile: Annotated[int, Number(1, 512, title="Keys in a tile", help="How many keys are read at a time.")] = 4
    tiles: Annotated[
        int,
        Number(
            1,
            10**6,
            title="Tiles read",
            help="Steps through the tiles; after the last, the result is the direct one.",
        ),
    ] = 1
    """Tiles that streaming attention has read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSettings:
    """The grid of all heads: what it shows, and which heads it dims."""

    grid: Annotated[
        str,
        Word(
            ("pictures", *STATISTICS, *PROBES),
            names={"pictures": "Pictures"}
            | {name: number.title for name, number in {**STATISTICS, **PROBES}.items()},
            title="Show",
            help="Shows each head's matrix as a small picture, or one number of each head as a colour.",
        ),
    ] = "pictures"
    """Pictures, or one of `attnviz.heads.STATISTICS` or `attnviz.heads.PROBES`."""
    copying: Annotated[
        bool,
        Switch(
            title="Copying scores",
            help="Finds, from the model’s parameters alone, which heads raise the logits of the tokens that they attend to.",
        ),
    ] = False
    """Whether the copying score of every head is shown."""
    common_scale: Annotated[
        bool,
        Switch(
            title="One scale for all heads",
            help="Gives the strongest tone to the largest weight of all heads, instead of each head's own.",
        ),
    ] = False
    label: Annotated[
        str,
        Word(
            ("all", *LABELS, "none"),
            names={
                "all": "All heads",
                "none": "Heads without a pattern",
                **{name: f"{MARKS[label]}  {label}" for name, label in LABELS.items()},
            },
            title="Highlight",
            help="Dims the heads that do not match this pattern.",
        ),
    ] = "all"
    """Pattern of the heads that are not dimmed: one of `attnviz.heads.LABELS`, all or none."""
    lowest: Annotated[float | None, Number(help="Dims the heads whose number is smaller.")] = None
    highest: Annotated[float | None, Number(help="Dims the heads whose number is larger.")] = None
    near: Annotated[
        float,
        Number(
            0,
            1,
            step=0.05,
            title="Previous, next, self: weight above",
            help="A head whose number is larger matches the pattern.",
        ),
    ] = NEAR
    delimiter: Annotated[
        float,
        Number(
            0,
            1,
            step=0.05,
            title=r"\[CLS\], \[SEP\], punctuation: weight above",
            help="A head whose number is larger matches the pattern.",
        ),
    ] = DELIMITER
    broad: Annotated[
        float,
        Number(
            0,
            1,
            step=0.05,
            title="Broad: entropy, as a share of ln n, above",
            help="A head whose number is larger matches the pattern.",
        ),
    ] = BROAD


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerB:
    """B of a comparison, in what it differs from what is selected; and the part of both that is zoomed to."""

    PREFIX: ClassVar = "other_"

    model: Annotated[
        str,
        Text(
            title="Model of B",
            help="Compares the selected model with this one; tokens are matched by their text.",
        ),
    ] = ""
    """Empty for the same."""
    text: Annotated[
        str,
        Text(title="Sentence B", help="Compares the selected sentence with this one; empty for the same."),
    ] = ""
    """Empty for the same, second sentence included."""
    second: Annotated[
        str,
        Text(
            title="Second sentence of B (optional)",
            help="Read together with sentence B as a pair.",
        ),
    ] = ""
    """Empty for none where B has a sentence of its own."""
    masked: Annotated[
        tuple[int, ...] | None,
        Positions(title="Masked in B", help="In B these tokens are replaced by the mask token."),
    ] = None
    """Positions of B's tokens that the mask token replaces; None for the same where B reads the same."""
    layer: Annotated[
        int | None, Number(title="Layer of B", help="Compares the selected layer with this one.")
    ] = None
    head: Annotated[
        int | None, Number(title="Head of B", help="Compares the selected head with this one.")
    ] = None
    zoom: Annotated[
        int | None,
        Number(
            FEWEST_ZOOMED, help="Shows this many queries and keys around the selected pair; all if empty."
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairList:
    """Which of the strongest pairs of a head are listed."""

    PREFIX: ClassVar = "pairs_"

    special: Annotated[
        bool,
        Switch(title="Special tokens", help="Also lists pairs with special tokens such as [CLS] and [SEP]."),
    ] = False
    itself: Annotated[
        bool, Switch(title="Self-attention", help="Also lists what a token gives to itself.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSettings:
    """What the dot products of the selected head are compared under."""

    scale: Annotated[
        float | None,
        Number(
            SCALES[0],
            SCALES[-1],
            title="Scale",
            help="Multiplies the dot products by this: in the bars of the tokens, the lower histograms, the curves and "
            "the table.",
        ),
    ] = None
    """None for the model's own."""
    d_k: Annotated[
        int | None,
        Number(
            1,
            LARGEST_D_K,
            title="Dimensions of the random vectors",
            help="Sets how many numbers a random query or key has: in the left histogram and on the dashed curves.",
        ),
    ] = None
    """None for as many as the head has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """The profile of many texts that is shown, and the numbers that its heads are found by."""

    PREFIX: ClassVar = "profile_"

    corpus: Annotated[
        str,
        Text(title="Texts", help="Shows what the heads do over these texts."),
    ] = ""
    """Name of the profile's folder; empty for the bundled sentences."""
    other: Annotated[
        str,
        Text(
            title="Compare with",
            help="Compares each head with itself over these texts, and lists those that moved; of another model, the largest heads.",
        ),
    ] = "none"
    """Another corpus; "none" for none."""
    x: Annotated[
        str,
        Text(title="Across", help="Places each head by this number, from left to right."),
    ] = "entropy"
    y: Annotated[
        str,
        Text(
            title="Rank by",
            help="Places each head by this number, from bottom to top, and ranks the heads by it.",
        ),
    ] = "previous"
    """A column of heads.parquet, or a relation and its direction, such as "nsubj attends to"."""
    search: Annotated[
        str,
        Text(
            title="Find",
            help="Lists the heads that are called so, and the head with the largest of each number that is called so, as in induction "
            "or direct object.",
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindTokensSettings:
    """The texts among whose tokens is looked for those like the selected one, and what they are compared by."""

    PREFIX: ClassVar = "found_"

    corpus: Annotated[
        str,
        Text(title="Texts", help="Looks for tokens in these texts."),
    ] = ""
    """Name of the index's folder; empty for the bundled sentences."""
    vectors: Annotated[
        Vectors,
        Word(
            names={"hidden": "Hidden state", "query": "Query", "key": "Key"},
            title="Compare by",
            help="Finds the tokens with the most similar hidden state after the layer, or query or key of the head.",
        ),
    ] = "hidden"
