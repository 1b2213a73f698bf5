"""What ranks highest, as a list of rows with bars that can be selected."""

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
    """Set for a pair: ``text`` is its query then, and this its key."""
    amount: str
    """The number that rows are ranked by, as it is written."""
    length: float
    """Of the bar, −1 to 1; below 0 it has the tone of what falls."""
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
        name: what is ranked, for those who do not see it.
        key: of the component; one for each list on a page.
        is_ranked: whether the rows stand by rank, each with its number; otherwise in an order of their own, as layers do.
        scrolls: whether a list that is longer than the window's height allows is scrolled on its own.
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
