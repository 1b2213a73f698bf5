"""Bars over tokens: the ranked keys of a query, its weights in several ways, and the effect of a mask on each token."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.label_placement import written_numbers
from attnviz.figures.labels import aliases, axis_labels, hover_labels
from attnviz.figures.numbers import HOVER_NUMBER, number_text
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    Marks,
    Theme,
    ThemeName,
    axis_title,
    base_layout,
    cell_axis,
    figure_of,
    hidden_axis,
    named_rows,
    note,
    token_ticks,
)
from attnviz.records import AttentionPattern, Axis

MOST_BARS = 8
_BAR, _RANKED_REST = 21, 16  # px


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
        marker=_outlined(palette.key, order == picked_column, palette, np.float32(2.5)),
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
        height=_RANKED_REST + _BAR * len(order),
        margin={"r": 24},
        bargap=0.3,
        xaxis=hidden_axis(range=[0, max(float(row.max(initial=0.0)), 1e-9) * 1.15]),
        yaxis=named_rows(aliases([labels[row] for row in order], [short[row] for row in order])),
    )
    return figure_of(bars, layout)


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
                marker=_outlined(palette.key, places == picked, palette),
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
            note(
                f"<b>{name}</b>",
                xref="paper",
                x=0,
                xanchor="left",
                yref=f"{axis} domain",
                y=1,
                yanchor="bottom",
            )
        )
    shown = list(range(0, n_key, -(-n_key // _MOST_LABELS)))
    return figure_of(
        traces,
        base_layout(
            palette,
            height=inner + _LABELS,
            margin={"l": 36},  # the first label extends to the left
            bargap=0.25,
            annotations=titles,
            xaxis=cell_axis(anchor=axis, range=[-0.5, n_key - 0.5], tickangle=-60)
            | token_ticks(shown, [labels[key] for key in shown]),
            **axes,
        ),
    )


_MOST_TOKENS = 40


def draw_effect(
    change: Float[np.ndarray, " token"],
    tokens: Axis,
    *,
    picked: int | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A bar for each token: the change of direction of its last hidden state, 1 - cosine, from 0 to 2."""
    palette = THEMES[theme]
    n = len(change)
    bars = dict(
        type="bar",
        x=np.arange(n),
        y=change,
        marker=_outlined(palette.strong, np.arange(n) == picked, palette),
        customdata=hover_labels(tokens),
        hovertemplate="%{customdata}: %{y:.3g}<extra></extra>",
    )
    shown = list(range(0, n, -(-n // _MOST_TOKENS)))
    return figure_of(
        bars,
        base_layout(
            palette,
            height=230,
            bargap=0.25,
            xaxis={"tickangle": -60, "fixedrange": True}
            | token_ticks(shown, [axis_labels(tokens)[row] for row in shown]),
            yaxis={
                "range": [0, max(float(change.max(initial=0.0)) * 1.1, 0.05)],
                "title": axis_title("1 − cosine", palette.quiet),
                "automargin": True,
                "fixedrange": True,
                "gridcolor": palette.edge,
                "tickfont": {"size": SMALL_FONT_SIZE},
            },
        ),
    )


def _outlined(colour: str, is_picked: np.ndarray, palette: Theme, width: float | np.float32 = 2.5) -> Marks:
    """The marker of bars of which the picked one is framed."""
    return {
        "color": colour,
        "line": {"color": palette.picked, "width": np.where(is_picked, width, 0 * width)},
    }
