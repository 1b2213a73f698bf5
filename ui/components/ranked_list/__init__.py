"""A ranking as a list of selectable rows with bars."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from attnviz.figures.theme import ThemeName
from ui.components import colours, register
from ui.components.sent import sent

_mount = register("ranked_list", "html", "renew")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the list."""

    text: str
    key: str = ""
    """The key of a pair, whose query is ``text``; empty if the row is not a pair."""
    amount: str
    """The number that rows are ranked by, as text."""
    length: float
    """Length of the bar, −1 to 1; negative bars have the colour for a decrease."""
    picked: bool


def ranked_list(
    rows: Sequence[Row],
    *,
    name: str,
    on_pick: Callable[[int], None],
    theme: ThemeName,
    key: str,
    is_ranked: bool = True,
    scrolls: bool = False,
) -> None:
    """Draws the rows; ``on_pick`` is called with the number of one that is clicked, counted from 0.

    Args:
        name: of the list, for screen readers.
        key: of the component; one for each list on a page.
        is_ranked: whether the rows are ranked and numbered; otherwise they have an order of their own, such as layers.
        scrolls: whether a list too long for the window scrolls by itself.
    """

    def take() -> None:
        row = sent(key, "pick")
        if isinstance(row, int | float) and 0 <= row < len(rows):
            on_pick(int(row))

    _mount(
        key=key,
        data={
            "name": name,
            "isRanked": is_ranked,
            "scrolls": scrolls,
            "rows": [asdict(row) for row in rows],
            "colours": colours(
                theme, "text", "quiet", "edge", "query", "key", "key_text", "picked", "strong", "falls"
            ),
        },
        on_pick_change=take,
    )
