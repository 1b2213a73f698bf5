"""The selected point of a large map and the lines to its strongest partners, drawn over the chart.

The chart itself stays unchanged, with its zoom: a selection does not send thousands of points again.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from attnviz.figures.theme import TOKEN_FONT, ThemeName
from attnviz.records import Role
from ui.components import colours, register
from ui.components.sent import sent

_mount = register("map_links", "svg", "chart", "chart_insides")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point that is marked."""

    x: float
    y: float
    label: str
    """Shown literally."""
    role: Role
    weight: float = 1.0
    """0 to 1; thickness of the line to the selected point."""


def map_links(
    chart: str,
    picked: Mark | None,
    links: Sequence[Mark],
    *,
    on_pick: Callable[[int, int], None],
    theme: ThemeName,
) -> None:
    """Marks points of the chart of this key; ``on_pick`` is called with the custom data of a clicked point.

    Args:
        picked: the point where lines start; None for no mark at all.
        links: the points where lines end.
    """
    key = f"{chart}_links"

    def take() -> None:
        match sent(key, "pick"):
            case [int(role), int(token)]:
                on_pick(role, token)

    _mount(
        key=key,
        data={
            "chart": chart,
            "picked": picked and asdict(picked),
            "links": [asdict(link) for link in links],
            "font": TOKEN_FONT,
            "colours": colours(theme, "background", "picked", "query", "key"),
        },
        on_pick_change=take,
    )
