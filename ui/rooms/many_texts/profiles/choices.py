"""The settings of a profile."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ui.choice.fields import Text
from ui.choice.selection import choices


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """The profile of many texts that is shown, and the numbers by which its heads are found."""

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
