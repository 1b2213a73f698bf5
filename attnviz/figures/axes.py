"""The axis of a curve or of scattered points: a grid, and room for its labels."""

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
