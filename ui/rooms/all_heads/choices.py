"""Settings of the grid of all heads."""

from dataclasses import dataclass
from typing import Annotated

from attnviz.heads import BROAD, DELIMITER, LABELS, NEAR, PROBES, STATISTICS
from ui.choice.fields import Number, Switch, Word
from ui.choice.selection import choices
from ui.words.findings import MARKS


@choices
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
