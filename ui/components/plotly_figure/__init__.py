"""A Plotly figure that replaces the previous one in place; docs/decisions/charts-of-our-own.md says why.

Plotly itself comes with Streamlit's front end, in the script that draws Streamlit's own charts.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import streamlit as st
from plotly.graph_objects import Figure
from plotly.utils import PlotlyJSONEncoder

from ui.components import register
from ui.components.sent import sent

[_PLOTLY] = (Path(st.__file__).parent / "static" / "static" / "js").glob("PlotlyChart.*.js")

_mount = register(
    "plotly_figure",
    "html",
    "numbers",
    "readout",
    "chart",
    "chart_insides",
    "tick_labels",
    "walk",
    "point_clicks",
    "heatmap_events",
    "label_room",
    is_apart=False,  # others look up its elements
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """What listens to a figure in the browser, with a line of its own below it; sent with the figure, in one message."""

    name: Literal["point_clicks", "heatmap_events", "label_room"]
    data: Mapping[str, object]
    take: Callable[[Any], None] | None = None
    """Called with what it sends, which is not to be trusted; None if it sends nothing."""


def plotly_figure(figure: Figure, *, key: str, alt: str, listeners: Sequence[Listener] = ()) -> None:
    """Draws a figure.

    Args:
        key: by which other components find it.
        alt: what it shows, for those who do not see it.
    """
    plain = figure.to_dict()
    room = int(plain["layout"]["height"])  # px, before it is drawn; the page's style may make it less
    _mount(
        key=key,
        data={"key": key, "alt": alt, "plotly": _PLOTLY.name}
        | {"listeners": {listener.name: listener.data for listener in listeners}},
        attached=json.dumps(plain, cls=PlotlyJSONEncoder, separators=(",", ":")).encode(),
        height=room,
        **{
            f"on_{listener.name}_change": partial(_hand_on, key, listener)
            for listener in listeners
            if listener.take is not None
        },
    )


def _hand_on(key: str, listener: Listener) -> None:
    """Hands on what a listener has sent."""
    assert listener.take is not None
    listener.take(sent(key, listener.name))
