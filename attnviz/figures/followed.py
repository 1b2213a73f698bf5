"""Chosen answers layer by layer: by how much one is ahead of the other, how likely each is, and its rank."""

from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.axes import grid_axis
from attnviz.figures.labels import LONGEST_HOVER, isolated, literal, shortened
from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import THEMES, Marks, ThemeName, axis_title, base_layout, figure_of, legend_above

if TYPE_CHECKING:
    from attnviz.effects.lens import FollowedTokens

_PANEL, _REST = 130, 70  # px
_DASHES, _SYMBOLS = ("solid", "dash"), ("circle", "diamond")


def draw_followed(
    followed: "FollowedTokens", *, picked: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Panels over the layers: the difference of two logits where there are two, the probabilities, and the ranks with 1 on top.

    Custom data of a point is the layer.

    Args:
        picked: the selected layer, which is marked.
    """
    palette = THEMES[theme]
    layers = np.arange(len(followed.logits))
    names = [isolated(literal(shortened(label, LONGEST_HOVER))) for label in followed.labels]
    panels: list[tuple[str, list[tuple[int, np.ndarray]]]] = [
        ("probability", [(at, followed.probabilities[:, at]) for at in range(len(names))]),
        ("rank", [(at, followed.ranks[:, at]) for at in range(len(names))]),
    ]
    if followed.differences is not None:
        panels.insert(0, ("difference of logits", [(-1, followed.differences)]))
    gap = 0.08
    height = (1 - gap * (len(panels) - 1)) / len(panels)
    marks: list[Marks] = []
    axes: dict[str, object] = {}
    for number, (title, curves) in enumerate(panels):
        is_rank = title == "rank"
        y = "%{y:,}" if is_rank else f"%{{y:{HOVER_NUMBER}}}"
        top = 1 - number * (height + gap)
        suffix = "" if number == 0 else str(number + 1)
        axes[f"yaxis{suffix}"] = {
            **grid_axis(palette),
            "title": axis_title(title, palette.quiet),
            "domain": [max(0.0, top - height), top],
            **({"type": "log", "autorange": "reversed", "dtick": 1, "tickformat": ","} if is_rank else {}),
            **({"zeroline": True, "zerolinecolor": palette.quiet} if title.startswith("difference") else {}),
        }
        for at, numbers in curves:
            name = names[at] if at >= 0 else f"{names[0]} minus {names[1]}"
            marks.append(
                dict(
                    type="scatter",
                    mode="lines+markers",
                    name=name,
                    legendgroup=name,
                    showlegend=title == "probability",
                    x=layers,
                    y=numbers,
                    yaxis=f"y{suffix}",
                    line={
                        "color": palette.strong if at < 0 else palette.heads[at % len(palette.heads)],
                        "width": 2,
                        "dash": "solid" if at < 0 else _DASHES[at % 2],
                    },
                    marker={"size": 6, "symbol": "square" if at < 0 else _SYMBOLS[at % 2]},
                    customdata=layers,
                    hovertemplate=f"layer %{{x}}, {name}: {title} {y}<extra></extra>",
                    cliponaxis=False,
                )
            )
    last = "y" if len(panels) == 1 else f"y{len(panels)}"
    shapes = []
    if picked is not None:
        shapes = [
            {
                "type": "line",
                "x0": picked,
                "x1": picked,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": palette.picked, "width": 2},
                "layer": "below",
            }
        ]
    return figure_of(
        marks,
        base_layout(
            palette,
            height=_PANEL * len(panels) + _REST,
            margin={"l": 8, "r": 16, "t": 8, "b": 8},
            xaxis={
                **grid_axis(palette),
                "title": axis_title("layer", palette.quiet),
                "anchor": last,
                "range": [-0.5, len(layers) - 0.5],
            },
            **axes,
            shapes=shapes,
            showlegend=True,
            legend=legend_above(),
        ),
    )
