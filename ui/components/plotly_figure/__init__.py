"""A Plotly figure that replaces the previous one in place; docs/decisions/charts-of-our-own.md says why.

Plotly itself comes with Streamlit's front end, in the script that draws Streamlit's own charts.
"""

import json
from pathlib import Path

import streamlit as st
from plotly.graph_objects import Figure
from plotly.utils import PlotlyJSONEncoder

from ui.components import register

[_PLOTLY] = (Path(st.__file__).parent / "static" / "static" / "js").glob("PlotlyChart.*.js")

_mount = register("plotly_figure", "chart", "chart_insides", is_apart=False)  # others look up its elements


def plotly_figure(figure: Figure, *, key: str, alt: str) -> None:
    """Draws a figure.

    Args:
        key: by which other components find it.
        alt: what it shows, for those who do not see it.
    """
    plain = figure.to_dict()
    room = int(plain["layout"]["height"])  # px, before it is drawn; the page's style may make it less
    drawn = {"key": key, "figure": plain, "alt": alt, "plotly": _PLOTLY.name}
    # As bytes, which Streamlit hands on as they are; anything else it writes as JSON twice.
    data = json.dumps(drawn, cls=PlotlyJSONEncoder, separators=(",", ":")).encode()
    _mount(key=key, data=data, height=room)
