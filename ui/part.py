"""A part of attnviz, as a record: what it is called, what it asks for, what it draws and exports.

The record of each part stands in its room, `ui.rooms` lists them, `ui.renderer` draws any of them. The menu, links, captions,
exports, tables of the documentation and tests read what stands here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plotly.graph_objects import Figure

from attnviz.records import LONG

Asked = Literal["sentence", "head", "rows"]
"""The controls above a part: sentence (with the model), layer and head, and which rows and columns are shown."""
Predicts = Literal["", "tokens", "writes"]
"""What of a model a part is about: nothing that it predicts, the tokens that it predicts, or those that it writes."""
Drawn = Figure | Mapping[str, Figure | str | Callable[[], Figure | str] | None] | tuple[str, ...] | None
"""What a block tells of its pictures: the figure of the only one, figures and SVGs by key for a bundle's page or functions that
make them, None for one without, or the keys of those that it drew; None for all of them, without a figure."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that can be saved."""

    key: str
    """Of its chart or component on the page."""
    name: str
    meaning: str | Callable[[Any], str]
    """What colour, length, thickness or position means, for its caption; a function of the `View` where that depends on it."""
    draw: Callable[[Any], Any] | None = None
    """Draws it, as in `Block`; None for one of several that a block draws."""


@dataclass(frozen=True, slots=True)
class Block:
    """Something that is drawn, with an error of its own where it cannot be."""

    draw: Callable[[Any], Any]
    """Called with the sheet's screen; returns `Drawn` if it has pictures."""
    pictures: tuple[Picture, ...] = ()

    @classmethod
    def of(cls, what: "Block | Picture | Callable[[Any], Any]") -> "Block":
        """A block as it is, of one picture, or of a function that draws nothing to be saved."""
        if isinstance(what, Picture):
            assert what.draw is not None, what.key
            return cls(what.draw, (what,))
        return what if isinstance(what, Block) else cls(what)

    @property
    def name(self) -> str:
        """Tells it apart on its page."""
        return self.pictures[0].key if self.pictures else getattr(self.draw, "__name__", "block")


class Row:
    """Blocks side by side."""

    def __init__(
        self,
        *blocks: Block | Picture | Callable[[Any], Any],
        widths: tuple[int, ...] = (),
        beside: str = "",
        gap: Literal["small", "medium", "large"] = "medium",
    ) -> None:
        """Blocks, or functions that draw without a picture to save.

        Args:
            widths: of the columns; equal if empty.
            beside: key of the first block's grid of all heads, beside which the others stand.
        """
        self.blocks = tuple(map(Block.of, blocks))
        self.widths = widths or (1,) * len(blocks)
        self.beside, self.gap = beside, gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a part draws, from top to bottom. Each function gets the screen, the first four the `View`."""

    when: Callable[[Any], bool] = lambda view: True
    """Whether a part shows this sheet; it shows the first that applies."""
    strip: Callable[[Any], object] | None = None
    """Draws the tokens of the text, above the finding."""
    controls: Callable[[Any], object] | None = None
    """Draws its controls, side by side."""
    screen: Callable[[Any], Any] = lambda view: view
    """All that is drawn; None, after drawing what is awaited or missing, while there is nothing to draw."""
    finding: Callable[[Any], str] | None = None
    """One sentence of Markdown; empty while there is nothing to say."""
    rows: tuple[Row | Block | Picture | Callable[[Any], Any], ...] = ()
    numbers: str = "Matrix"
    """Name of the table that is exported."""
    csv: Callable[[Any], bytes] | None = None
    """That table; None for the matrix of the selected head."""
    python: Callable[[Any], str] | None = None
    """The lines that draw the same; None for those of the matrix."""
    about: Callable[[Any], str] | None = None
    """What the caption of a saved picture says besides text, model and head."""
    notes: Callable[[Any], Mapping[str, str]] | None = None
    """By key of a picture, how a map was made and how reliable it is; also part of its caption."""
    terms: tuple[str, ...] = ()
    """Terms of the glossary in place of the part's."""
    points: Callable[[Any], bytes | None] | None = None
    """The points of a map as CSV, for a bundle; it returns None while there is no map."""

    def in_rows(self) -> tuple[Row, ...]:
        """Its rows, with a row around each block that stands alone."""
        return tuple(row if isinstance(row, Row) else Row(row) for row in self.rows)

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The pictures of all rows."""
        return tuple(picture for row in self.in_rows() for block in row.blocks for picture in block.pictures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a room, opened by a link in the row below the room's heading."""

    name: str
    address: str
    """Path in the address bar, without a slash; empty for the first screen."""
    question: str
    """The question that it answers."""
    asks: tuple[Asked, ...] = ("sentence", "head")
    """The controls that affect it."""
    predicts: Predicts = ""
    """A visitor whose model lacks that begins with the bundled language model."""
    longest: int = LONG
    """Tokens of the longest text that it draws."""
    beyond: str = "Together"
    """Name of the part that shows a longer text."""
    terms: tuple[str, ...] = ()
    """Terms of the glossary that its last line links."""
    sheets: tuple[Sheet, ...]
    is_stage: bool = False
    """Whether it is the first screen, whose block for the head is redrawn alone."""
    shows_text: bool = True
    """Whether it shows a text of the visitor's."""

    @property
    def file(self) -> str:
        """The script's path, as Streamlit's links need it."""
        return f"pages/{self.address}.py" if self.address else "attention.py"

    @property
    def place(self) -> str:
        """Part and room, "Scaling · How it works"; the first screen is its room."""
        room = room_of(self).name
        return room if self.is_stage or self.name == room else f"{self.name} · {room}"

    @property
    def title(self) -> str:
        """Title of the browser tab."""
        return f"{self.place} · attnviz"

    @property
    def pictures(self) -> dict[str, Picture]:
        """All that it may draw, by key."""
        return {picture.key: picture for sheet in self.sheets for picture in sheet.pictures}

    @property
    def has_finding(self) -> bool:
        """Whether it says something about the selected head first."""
        return any(sheet.finding is not None for sheet in self.sheets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One entry of the menu."""

    name: str
    icon: str
    """Name of a Material symbol."""
    question: str = ""
    """The question that brings a visitor here; empty for that of its only part."""
    parts: tuple[Part, ...]
    """The menu opens the first one on a first visit."""
    in_menu: bool = True

    @property
    def asks(self) -> str:
        """The room's question."""
        return self.question or self.parts[0].question


_rooms: list[Room] = []


def list_rooms(rooms: tuple[Room, ...]) -> None:
    """Makes these the rooms; `ui.rooms` does, which imports all of them."""
    _rooms[:] = rooms


def rooms() -> tuple[Room, ...]:
    """All rooms, in the order of the menu and then those outside it."""
    return tuple(_rooms)


def pages() -> tuple[Part, ...]:
    """All parts that show a text, a script each."""
    return tuple(part for room in _rooms for part in room.parts if part.shows_text)


def part_named(name: str) -> Part:
    """The part of this name; raises StopIteration if there is none."""
    return next(part for room in _rooms for part in room.parts if part.name == name)


def room_of(part: Part) -> Room:
    """The room that a part belongs to."""
    return next(room for room in _rooms if part in room.parts)
