"""What the score of one query and one key is made of: by dimension, and by the sources of both."""

from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.numbers import HOVER_NUMBER, number_text, signed_text, sum_text
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    Marks,
    Theme,
    ThemeName,
    axis_title,
    base_layout,
    cell_axis,
    colour_bar,
    figure_of,
    panel_title,
    plain_axis,
    points_at,
    signed,
)
from attnviz.heads.score import Score

if TYPE_CHECKING:
    from attnviz.effects.score_sources import ScoreSources

_HEIGHT = 470
_PANELS = {"y": (0.84, 1.0), "y2": (0.61, 0.77), "y3": (0.33, 0.54), "y4": (0.0, 0.26)}
"""Bottom and top of each panel, as shares of the height."""
_MOST_TICKS = 8
"""Most dimensions whose names fit side by side on a phone."""


@typed
def draw_pair(score: Score, *, largest_first: bool = False, theme: ThemeName = "light") -> go.Figure:
    """Four panels over the same dimensions: the query, the key, the contribution of each dimension, and the sum so far.

    The sum ends at the score. Where a family has them, a softcap takes its part off before that, and a bias is added last. Query
    and key are drawn to one scale.

    Args:
        largest_first: whether dimensions are sorted by their absolute contribution instead of by number.
    """
    palette = THEMES[theme]
    n_dimension = len(score.query)
    order = score.largest_first() if largest_first else np.arange(n_dimension)
    names = [str(dimension) for dimension in order]
    added = score.terms[order]
    last = {"softcap": score.cap, "bias": score.bias}
    last = {name: line for name, line in last.items() if line}
    names, added = [*names, *last], np.append(added, [*last.values()])
    so_far = added.cumsum()
    places = np.arange(len(added))
    written = np.column_stack(
        [names, [number_text(value) for value in added], [number_text(value) for value in so_far]]
    )
    vectors = [
        _bars(places[:n_dimension], vector[order], written[:n_dimension], name, axis, colour)
        for vector, name, axis, colour in (
            (score.query, "query", "y", palette.query),
            (score.key, "key", "y2", palette.key),
        )
    ]
    end = {"size": [*[0] * (len(places) - 1), 10], "symbol": "diamond", "color": palette.picked, "opacity": 1}
    sums = points_at(
        places,
        so_far,
        end,
        yaxis="y4",
        mode="lines+markers",
        line={"color": palette.strong, "width": 2, "shape": "hvh"},
        customdata=written,
        hovertemplate="dimension %{customdata[0]}<br>adds %{customdata[1]}<br>sum so far %{customdata[2]}<extra></extra>",
    )
    longest = 1.08 * max(float(np.abs([score.query, score.key]).max()), 1e-9)
    step = max(1, -(-n_dimension // _MOST_TICKS))
    ticks = [*places[:n_dimension:step], *places[n_dimension:]]
    n_ticks = len(ticks) - len(last)
    if n_ticks > 0 and last and n_dimension - ticks[n_ticks - 1] < step / 2:
        del ticks[n_ticks - 1]  # its label would touch that of the softcap or the bias
    layout = base_layout(
        palette,
        height=_HEIGHT,
        margin={"r": 16, "t": 22},
        bargap=0.2,
        xaxis=plain_axis(
            anchor="y4",
            range=[-0.8, len(places) - 0.2],
            tickvals=ticks,
            ticktext=[names[tick] for tick in ticks],
            tickangle=0,
            automargin=True,
            title=axis_title(
                "dimension, largest contribution first" if largest_first else "dimension", palette.quiet
            ),
        ),
        yaxis=_axis("y", palette, range=[-longest, longest]),
        yaxis2=_axis("y2", palette, range=[-longest, longest]),
        yaxis3=_axis("y3", palette),
        yaxis4=_axis("y4", palette),
        annotations=[
            panel_title("query", _PANELS["y"][1], palette.query),
            panel_title("key", _PANELS["y2"][1], palette.key),
            panel_title(f"query × key × {score.scale:.3g}", _PANELS["y3"][1], palette.text),
            panel_title(
                f"sum so far, up to the score {sum_text(score.value)}", _PANELS["y4"][1], palette.text
            ),
        ],
    )
    terms = _bars(places, added, written, "adds", "y3", palette.strong)
    return figure_of([*vectors, terms, sums], layout)


def _bars(
    places: np.ndarray, heights: np.ndarray, written: np.ndarray, name: str, axis: str, colour: str
) -> Marks:
    return dict(
        type="bar",
        x=places,
        y=heights,
        yaxis=axis,
        marker={"color": colour, "line": {"width": 0}},
        customdata=written,
        hovertemplate=f"dimension %{{customdata[0]}}<br>{name} %{{y:{HOVER_NUMBER}}}<extra></extra>",
    )


def _axis(name: str, palette: Theme, **own: object) -> dict[str, object]:
    at_zero = {"zeroline": True, "zerolinecolor": palette.quiet, "zerolinewidth": 1}
    font = {"size": SMALL_FONT_SIZE, "color": palette.quiet}
    return plain_axis(domain=list(_PANELS[name]), nticks=5, automargin=True, tickfont=font, **at_zero, **own)


_CELL, _LABELS = 13, 90  # px
_LOWEST, _HIGHEST = 300, 560
_MOST_LABELS = 24
_MOST_GAPS = 30
"""Most sources with gaps between their cells."""


def draw_score_sources(score_parts: "ScoreSources", *, theme: ThemeName = "light") -> go.Figure:
    """Sources of the query down, sources of the key across, both in the order in which the model adds them.

    The colour scale has 0 in its middle, and reaches as far on both sides as the part that is farthest from 0.
    """
    palette, parts = THEMES[theme], score_parts.parts
    names = [source.short for source in score_parts.sources]
    largest = float(np.abs(parts).max(initial=0.0)) or 1.0
    places = np.arange(len(names))
    gap = int(len(names) <= _MOST_GAPS)
    cells: Marks = dict(
        type="heatmap",
        x=places,
        y=places,
        z=parts,
        **signed(largest, palette),
        xgap=gap,
        ygap=gap,
        colorbar=colour_bar("part of the score"),
        hovertext=[
            [
                f"query from {of_query}<br>key from {of_key}<br>{signed_text(part)}"
                for of_key, part in zip(names, row, strict=True)
            ]
            for of_query, row in zip(names, parts.tolist(), strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    step = -(-len(names) // _MOST_LABELS)
    ends = [-0.5, len(names) - 0.5]
    ticks = {"tickmode": "array", "tickvals": places[::step], "ticktext": names[::step]}
    axis = cell_axis(automargin=True, **ticks)
    return figure_of(
        cells,
        base_layout(
            palette,
            height=int(np.clip(len(names) * _CELL + _LABELS, _LOWEST, _HIGHEST)),
            xaxis={
                **axis,
                "range": ends,
                "tickangle": -60,
                "title": axis_title("source of the key", palette.key_text),
            },
            yaxis={**axis, "range": ends[::-1], "title": axis_title("source of the query", palette.query)},
        ),
    )
