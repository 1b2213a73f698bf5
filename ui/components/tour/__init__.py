"""The tour of a page: one stop after another, at the real controls; the browser remembers the last stop."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from attnviz.figures.theme import ThemeName
from ui.components import colours, register
from ui.components.sent import sent

_mount = register("tour", "html", "renew", "remember")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One stop, with a task."""

    title: str
    text: str
    target: str
    """Key of the control or picture that the stop is about; scrolled into view."""


def tour(
    stops: Sequence[Stop], *, at: int, purpose: str, on_go: Callable[[int], None], theme: ThemeName
) -> None:
    """Draws the tour's current stop, or the invitation.

    Args:
        at: number of the stop, from 1; 0 outside the tour.
        purpose: what the app is for, beside the invitation.
        on_go: called with the number of the stop to go to, 0 to end the tour.
    """

    def take() -> None:
        number = sent("tour", "go")
        if isinstance(number, int | float) and 0 <= number <= len(stops):
            on_go(int(number))

    _mount(
        key="tour",
        data={
            "n": len(stops),
            "at": at,
            "stops": [asdict(stop) for stop in stops] if at else [],  # an invitation needs none
            "purpose": purpose,
            "colours": colours(theme, "background", "text", "quiet", "edge", "picked", "query"),
        },
        on_go_change=take,
    )
