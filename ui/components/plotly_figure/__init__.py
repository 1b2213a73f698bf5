"""A figure of Plotly's, drawn where the one before it is: what differs is drawn anew, and nothing else."""

import json

from plotly.graph_objects import Figure
from plotly.utils import PlotlyJSONEncoder

from ui.components import register
from ui.streamlit_fixes.redrawn_chart import PLOTLY

_mount = register("plotly_figure", is_apart=False)  # others look for what it draws


def plotly_figure(figure: Figure, *, key: str, alt: str) -> None:
    """Draws a figure.

    Args:
        key: by which other components find it.
        alt: what it shows, for those who do not see it.
    """
    drawn = {"figure": figure.to_dict(), "alt": alt, "plotly": PLOTLY}
    # As bytes, which Streamlit hands on as they are; anything else it writes as JSON twice.
    data = json.dumps(drawn, cls=PlotlyJSONEncoder).encode()
    _mount(key=key, data=data)
