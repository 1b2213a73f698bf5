"""The axis of a curve or of scattered points, with a grid and room for its labels; and the bar of a colour scale."""

from attnviz.figures.theme import SMALL_FONT_SIZE, Theme


def grid_axis(palette: Theme) -> dict[str, object]:
    """An axis with a grid that cannot be zoomed; numbers in powers of ten."""
    return {
        "showgrid": True,
        "zeroline": False,
        "exponentformat": "power",  # not the prefix of a unit, as in "20µ"
        "gridcolor": palette.edge,
        "automargin": True,
        "fixedrange": True,
        "tickfont": {"size": SMALL_FONT_SIZE},
    }


def colour_bar(title: str = "", *, below: int | None = None, **own: object) -> dict[str, object]:
    """The bar of a colour scale beside a figure; numbers in powers of ten, as on axes.

    Args:
        below: px between the figure and the bar where that lies below it, which leaves cells the whole width.
        own: what differs here.
    """
    side = "right" if below is None else "bottom"
    titled = {"title": {"text": title, "side": side, "font": {"size": SMALL_FONT_SIZE}}} if title else {}
    lying = {} if below is None else {"orientation": "h", "y": 0, "yanchor": "top", "ypad": below}
    return {
        **lying,
        "thickness": 8,
        "outlinewidth": 0,
        "exponentformat": "power",
        "tickfont": {"size": SMALL_FONT_SIZE},
        **titled,
        **own,
    }
