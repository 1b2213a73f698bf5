"""The keys of one query, ranked by weight, as bars."""

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    ThemeName,
    base_layout,
    token_labels,
    weight_text,
)
from attnviz.records import AttentionPattern

MOST_BARS = 8
_BAR, _REST = 21, 16  # px


def draw_ranking(
    pattern: AttentionPattern, query: int, *, picked_key: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """The `MOST_BARS` keys that a query gives most weight, strongest first.

    Args:
        query: position of the query's token; it must be among the pattern's rows.
        picked_key: position of the key whose bar is outlined.
    """
    palette = THEMES[theme]
    index = int(np.flatnonzero(pattern.query_position == query)[0])
    row = pattern.weights[index]
    seen = np.flatnonzero(np.isfinite(pattern.scores[index]))  # keys that are not masked
    order = seen[np.argsort(-row[seen], kind="stable")][:MOST_BARS]
    positions = pattern.key_position[order]
    bars = go.Bar(
        x=row[order],
        y=token_labels(pattern.key_tokens, positions),
        orientation="h",
        marker={
            "color": palette.key,
            "line": {"color": palette.picked, "width": np.where(positions == picked_key, 2.5, 0)},
        },
        text=[weight_text(float(weight)) for weight in row[order]],
        textposition="outside",
        textfont={"size": SMALL_FONT_SIZE},
        cliponaxis=False,
        customdata=pattern.scores[index, order],
        hovertemplate="key %{y}<br>weight %{x:.4f}<br>score %{customdata:.4f}<extra></extra>",
    )
    layout = base_layout(
        palette,
        height=_REST + _BAR * len(order),
        margin={"l": 8, "r": 24, "t": 8, "b": 8},
        bargap=0.3,
        xaxis={"visible": False, "range": [0, max(float(row.max()), 1e-9) * 1.15], "fixedrange": True},
        yaxis={
            "type": "category",
            "autorange": "reversed",
            "automargin": True,
            "ticks": "",
            "fixedrange": True,
            "tickfont": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE},
        },
    )
    return go.Figure(bars, layout)
