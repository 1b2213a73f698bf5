"""The weights of one query, computed in several ways: bars over the same keys, a row for each way."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.label_placement import written_numbers
from attnviz.figures.labels import axis_labels, hover_labels
from attnviz.figures.numbers import number_text
from attnviz.figures.theme import SMALL_FONT_SIZE, THEMES, TOKEN_FONT, ThemeName, base_layout, figure_of
from attnviz.records import Axis

_MOST_LABELS = 32
_PANEL, _GAP, _LABELS = 56, 26, 90  # px: bars of a way, its name above them, tokens at the bottom
_HEADROOM = 1.4  # times the largest bar: room for the number on it


def draw_rows(
    weights: Float[np.ndarray, "way key"],
    names: Sequence[str],
    keys: Axis,
    *,
    picked: int,
    theme: ThemeName = "light",
) -> go.Figure:
    """Weights as bars, the first way at the top, all to one scale from 0.

    Args:
        names: what is written above each row.
        picked: index of the selected key, whose bars are outlined and always have their numbers; others have theirs
            where there is room.
    """
    palette = THEMES[theme]
    n_way, n_key = weights.shape
    labels = axis_labels(keys)
    places = np.arange(n_key)
    inner = n_way * (_PANEL + _GAP)
    top = _HEADROOM * max(float(weights.max(initial=0.0)), 1e-9)
    traces, axes, titles = [], {}, []
    for way, (row, name) in enumerate(zip(weights, names, strict=True)):
        axis = f"y{way + 1}" if way else "y"
        numbered = written_numbers(row, first=picked)
        traces.append(
            dict(
                type="bar",
                name=name,
                x=places,
                y=row,
                yaxis=axis,
                marker={
                    "color": palette.key,
                    "line": {"color": palette.picked, "width": np.where(places == picked, 2.5, 0)},
                },
                text=[number_text(float(row[key])) if key in numbered else "" for key in range(n_key)],
                textposition="outside",
                textangle=0,
                constraintext="none",
                textfont={"size": SMALL_FONT_SIZE},
                cliponaxis=False,
                customdata=hover_labels(keys),
                hovertemplate=f"{name}<br>key %{{customdata}}: %{{y:.3g}}<extra></extra>",
            )
        )
        bottom = inner - (way + 1) * (_PANEL + _GAP)
        axes[axis.replace("y", "yaxis")] = {
            "domain": [bottom / inner, (bottom + _PANEL) / inner],
            "range": [0, top],
            "showticklabels": False,
            "ticks": "",
            "showgrid": False,
            "zeroline": True,
            "zerolinecolor": palette.edge,
            "fixedrange": True,
        }
        titles.append(
            {
                "text": f"<b>{name}</b>",
                "showarrow": False,
                "font": {"size": SMALL_FONT_SIZE},
                **{"xref": "paper", "x": 0, "xanchor": "left"},
                **{"yref": f"{axis} domain", "y": 1, "yanchor": "bottom"},
            }
        )
    shown = list(range(0, n_key, -(-n_key // _MOST_LABELS)))
    return figure_of(
        traces,
        base_layout(
            palette,
            height=inner + _LABELS,
            margin={"l": 36, "r": 8, "t": 8, "b": 8},  # the first label extends to the left
            bargap=0.25,
            annotations=titles,
            xaxis={
                "anchor": axis,
                "range": [-0.5, n_key - 0.5],
                "tickmode": "array",
                "tickvals": shown,
                "ticktext": [labels[key] for key in shown],
                "tickangle": -60,
                "tickfont": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE},
                "ticks": "",
                "showgrid": False,
                "zeroline": False,
                "fixedrange": True,
                "automargin": True,
            },
            **axes,
        ),
    )
