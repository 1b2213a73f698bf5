"""Where the effect that a page teaches is largest: a measured example and head for each page.

All are in showcases.toml, which ``make showcases`` writes.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnviz.figures.numbers import share_text
from attnviz.model.catalogue import EMBEDDED
from ui.choice.presets import MEASURED, PRESETS
from ui.choice.selection import Selection

FILE = Path(__file__).with_suffix(".toml")

_SHOWS = {
    "Step by step": "a query attends mostly to one key",
    "Scaling": "the softmax is nearly one-hot without scaling",
    "Positions": "the order of the words matters",
    "Kinds of attention": "tokens attend to later ones",
    "Myths": "the weights are far from symmetric",
    "History": "scaling changes the weights",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Showcase:
    """An example of a bundled model in which a page's effect is visible, and the size of the effect."""

    page: str
    """Name of the page."""
    model: str = EMBEDDED
    preset: str
    """Name of the example."""
    layer: int | None = None
    """None if the effect is that of all layers and heads."""
    head: int | None = None
    query: int
    """Position of the query."""
    query_label: str
    """The token at that position."""
    key: int | None = None
    """Position of the key; None if the effect is that of all keys."""
    key_label: str | None = None
    effect: str
    """The effect in words, with {} for each number."""
    numbers: tuple[float, ...]
    unit: str
    """"share" for numbers written as percentages; otherwise their unit."""
    mask: str | None = None
    """The attention mask that has the effect; None for any."""
    seed: int | None = None
    """The random seed of the measurement; None if nothing is random."""

    @property
    def text(self) -> str:
        """The sentence of the example."""
        return next(preset.text for preset in (*MEASURED, *PRESETS) if preset.name == self.preset)

    @property
    def shows(self) -> str:
        """What is visible in the example; continues "an example where"."""
        return _SHOWS[self.page]

    @property
    def words(self) -> str:
        """The effect with its numbers."""
        written = [share_text(number) if self.unit == "share" else f"{number:.2f}" for number in self.numbers]
        return self.effect.format(*written)

    @property
    def changes(self) -> dict[str, Any]:
        """The fields that select this example."""
        place = {"layer": self.layer, "head": self.head, "mask": self.mask, "seed": self.seed}
        return {
            "model": self.model,
            "text": self.text,
            "second": "",
            "cut": False,
            "masked": (),
            "query": self.query,
            "key": self.key,
            "kind": "",
            **{name: value for name, value in place.items() if value is not None},
        }

    def is_shown(self, selection: Selection) -> bool:
        """Whether a selection already shows this example, with any key if the effect is that of all keys."""
        wanted = {name: value for name, value in self.changes.items() if name not in ("key", "cut")}
        same = all(selection.value(name) == value for name, value in wanted.items())
        return same and (self.key is None or selection.key == self.key)


def read_showcases(text: str) -> tuple[Showcase, ...]:
    """The showcases of a TOML file."""
    tables = tomllib.loads(text).get("showcases", [])
    return tuple(Showcase(**(table | {"numbers": tuple(table["numbers"])})) for table in tables)


SHOWCASES = read_showcases(FILE.read_text(encoding="utf-8"))


def showcase_for(page: str, selection: Selection) -> Showcase | None:
    """A page's showcase in the model on screen, or else in the bundled encoder.

    None if there is none, or if it or a bundle is already shown.
    """
    if selection.bundle:
        return None
    of_page = [showcase for showcase in SHOWCASES if showcase.page == page]
    own = [showcase for showcase in of_page if showcase.model == selection.model]
    return next((showcase for showcase in own or of_page if not showcase.is_shown(selection)), None)
