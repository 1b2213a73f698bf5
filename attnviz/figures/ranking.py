"""The keys of one query, ranked by weight, as bars."""

import numpy as np
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.labels import aliases, axis_labels, hover_labels
from attnviz.figures.numbers import HOVER_NUMBER, number_text
from attnviz.figures.theme import SMALL_FONT_SIZE, THEMES, TOKEN_FONT, ThemeName, base_layout, figure_of
from attnviz.records import AttentionPattern

MOST_BARS = 8
_BAR, _REST = 21, 16  # px


@typed
def draw_ranking(
    pattern: AttentionPattern, query: int, *, picked_key: int | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """The `MOST_BARS` keys to which a query gives the most weight, strongest first.

    Args:
        query: position of the query's token.
        picked_key: position of the selected key, whose bar is outlined.

    Raises:
        ValueError: the query is not among the pattern's rows.
    """
    palette = THEMES[theme]
    index = pattern.queries.index(query)
    if index is None:
        raise ValueError(f"query {query} is not among the rows of the pattern")
    row = pattern.weights[index]
    seen = np.flatnonzero(pattern.allowed[index])
    order = seen[np.argsort(-row[seen], kind="stable")][:MOST_BARS]
    picked_column = None if picked_key is None else pattern.keys.index(picked_key)
    labels, short = hover_labels(pattern.keys), axis_labels(pattern.keys)
    bars = dict(
        type="bar",
        x=row[order],
        y=[labels[column] for column in order],
        orientation="h",
        marker={
            "color": palette.key,
            "line": {
                "color": palette.picked,
                "width": np.where(order == picked_column, np.float32(2.5), np.float32(0)),
            },
        },
        text=[
            f"\N{EN SPACE}{number_text(float(weight))}" for weight in row[order]
        ],  # a saved picture's font is wider
        textposition="outside",
        textfont={"size": SMALL_FONT_SIZE},
        cliponaxis=False,
        customdata=[
            ["key", int(pattern.keys.positions[column])]
            + ([] if pattern.scores is None else [float(pattern.scores[index, column])])
            for column in order
        ],
        hovertemplate=(
            f"key %{{y:c}}<br>{MEASURE_NAMES[pattern.measure]} %{{x:{HOVER_NUMBER}}}"
            + ("" if pattern.scores is None else "<br>score %{customdata[2]:.3g}")
            + "<extra></extra>"
        ),
    )
    layout = base_layout(
        palette,
        height=_REST + _BAR * len(order),
        margin={"l": 8, "r": 24, "t": 8, "b": 8},
        bargap=0.3,
        xaxis={
            "visible": False,
            "range": [0, max(float(row.max(initial=0.0)), 1e-9) * 1.15],
            "fixedrange": True,
        },
        yaxis={
            "type": "category",
            "labelalias": aliases([labels[row] for row in order], [short[row] for row in order]),
            "autorange": "reversed",
            "automargin": True,
            "ticks": "",
            "fixedrange": True,
            "tickfont": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE},
        },
    )
    return figure_of(bars, layout)
