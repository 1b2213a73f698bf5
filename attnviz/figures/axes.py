"""The axis of a curve or of scattered points: with a grid or without, and room for its labels."""

from attnviz.figures.theme import SMALL_FONT_SIZE, Theme


def grid_axis(palette: Theme) -> dict[str, object]:
    """An axis with a grid that cannot be zoomed; numbers in powers of ten."""
    return {**bare_axis(), "showgrid": True, "gridcolor": palette.edge}


def bare_axis() -> dict[str, object]:
    """The same as `grid_axis`, without a grid."""
    return {
        "showgrid": False,
        "zeroline": False,
        "exponentformat": "power",  # not a unit prefix, as in "20µ"
        "automargin": True,
        "fixedrange": True,
        "tickfont": {"size": SMALL_FONT_SIZE},
    }
