"""The distribution of scores and the sharpness of their softmax, under any scale."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from plotly import graph_objects as go

from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    Marks,
    Theme,
    ThemeName,
    axis_title,
    base_layout,
    figure_of,
    hidden_axis,
    line,
    panel_title,
    plain_axis,
)

_MOST_BINS = 61
_PANELS = {"y": (0.56, 0.95), "y2": (0.0, 0.39)}
"""Bottom and top of the histograms before and after scaling, as shares of the height."""
_POWERS = range(-8, 5, 2)  # powers of two at the ticks of the axis of scales


def draw_spread(
    products: Float[np.ndarray, " pair"],
    scale: float,
    *,
    expected: float | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Two histograms over one axis: dot products as they are, and times the scale, each with its variance.

    Args:
        expected: variance that the products should have; the normal density with this variance and mean 0 is drawn too.
    """
    palette = THEMES[theme]
    traces: list[Marks] = []
    notes = []
    for axis, name, factor, colour in (
        ("y", "q · k", 1.0, palette.quiet),
        ("y2", f"q · k × {scale:.3g}", scale, palette.strong),
    ):
        scores = factor * products.astype(np.float64)
        n_bin = min(_MOST_BINS, 1 + int(len(scores) ** 0.5))
        ends = float(scores.min()), float(scores.max())
        finest = n_bin * float(np.spacing(max(map(abs, ends))))  # bins that float64 can tell apart
        if ends[1] - ends[0] < 2 * finest:  # all alike
            ends = ends[0] - max(0.5, finest), ends[1] + max(0.5, finest)
        density, edges = np.histogram(scores, n_bin, range=ends, density=True)
        traces.append(
            dict(
                type="bar",
                x=(edges[:-1] + edges[1:]) / 2,
                y=density,
                width=np.diff(edges),
                yaxis=axis,
                marker={"color": colour, "line": {"width": 0}},
                hovertemplate="scores near %{x:.3g}: density %{y:.3g}<extra></extra>",
            )
        )
        notes.append(
            panel_title(
                f"{name}: variance {variance_text(float(scores.var()))}", _PANELS[axis][1], palette.text
            )
        )
        if expected is not None:
            deviation = factor * np.sqrt(expected)
            at = np.linspace(-4, 4, 81) * deviation
            traces.append(
                dict(
                    type="scatter",
                    x=at,
                    y=np.exp(-0.5 * (at / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi)),
                    yaxis=axis,
                    mode="lines",
                    line={"color": palette.picked, "width": 2},
                    hoverinfo="skip",
                )
            )
    density_axis = hidden_axis(rangemode="tozero")
    return figure_of(
        traces,
        base_layout(
            palette,
            height=270,
            margin={"b": 40},
            bargap=0,
            xaxis={**_axis("score", palette), "anchor": "y2"},
            yaxis={**density_axis, "domain": list(_PANELS["y"])},
            yaxis2={**density_axis, "domain": list(_PANELS["y2"])},
            annotations=notes,
        ),
    )


def draw_sharpness(
    scales: Float[np.ndarray, " scale"],
    row: Float[np.ndarray, " scale"],
    random: Float[np.ndarray, " scale"],
    *,
    what: str,
    even: float,
    marks: Mapping[str, float],
    random_mark: float,
    theme: ThemeName = "light",
) -> go.Figure:
    """One number of a row of weights over the scale: the model's row, and rows of random vectors, dashed.

    Args:
        what: name of the number, written above.
        even: the number of a row of equal weights.
        marks: scales that are marked on the model's row, by their labels; the last is the selected scale.
        random_mark: the scale that is marked on the dashed line.
    """
    palette = THEMES[theme]
    on_row = [float(np.interp(np.log(scale), np.log(scales), row)) for scale in marks.values()]
    colours = [*[palette.quiet] * (len(marks) - 1), palette.picked]
    hover = f"scale %{{x:{HOVER_NUMBER}}}: {what} %{{y:{HOVER_NUMBER}}}<extra>%{{fullData.name}}</extra>"
    traces = [
        dict(
            type="scatter",
            x=scales,
            y=random,
            name="random vectors",
            mode="lines",
            line={"color": palette.quiet, "width": 2, "dash": "dash"},
            hovertemplate=hover,
        ),
        dict(
            type="scatter",
            x=[random_mark],
            y=[np.interp(np.log(random_mark), np.log(scales), random)],
            name="random vectors",
            mode="markers",
            marker={
                "symbol": "diamond-open",
                "size": 11,
                "color": palette.quiet,
                "line": {"width": 2},
                "opacity": 1,
            },
            hovertemplate=hover,
        ),
        dict(
            type="scatter",
            x=scales,
            y=row,
            name="this row",
            mode="lines",
            line={"color": palette.strong, "width": 2.5},
            hovertemplate=hover,
        ),
        dict(
            type="scatter",
            x=list(marks.values()),
            y=on_row,
            name="this row",
            mode="markers",
            marker={"size": 11, "color": colours, "opacity": 1},
            hovertemplate=hover,
        ),
    ]
    middle = float(np.mean(list(marks.values())))
    lines = [
        line((at, 0), (at, 1), colour, yref="paper")
        for at, colour in zip(marks.values(), colours, strict=True)
    ]
    level = line((0, even), (1, even), "", xref="paper", line={"color": palette.edge, "width": 1})
    names = [
        {
            **panel_title(name, 1.0, colour),
            "xref": "x",
            "x": np.log10(at),
            "xanchor": "right" if at < middle else "left",
        }
        for (name, at), colour in zip(marks.items(), colours, strict=True)
    ]
    top = 1.08 * max(float(row.max()), float(random.max()), even)
    return figure_of(
        traces,
        base_layout(
            palette,
            height=250,
            margin={"l": 40, "t": 44, "b": 40},
            title={
                "text": what,
                "x": 0,
                "xref": "paper",
                "y": 0.97,
                "font": {"size": SMALL_FONT_SIZE + 1, "color": palette.text},
            },
            shapes=[*lines, level],
            annotations=names,
            xaxis={
                **_axis("scale", palette),
                "type": "log",
                "range": [float(np.log10(scales[0])) - 0.4, float(np.log10(scales[-1])) + 0.4],
                "tickvals": [2.0**power for power in _POWERS],
                "ticktext": [f"1/{2**-power}" if power < 0 else f"{2**power}" for power in _POWERS],
                "tickangle": 0,
            },
            yaxis={**_axis("", palette), "range": [0, top], "nticks": 5},
        ),
    )


def variance_text(variance: float) -> str:
    """A variance with four significant digits, or as a whole number from 1,000 on."""
    return f"{variance:,.0f}" if variance >= 1000 else f"{variance:.4g}"


def _axis(title: str, palette: Theme) -> dict[str, object]:
    font = {"size": SMALL_FONT_SIZE, "color": palette.quiet}
    return plain_axis(title=axis_title(title, palette.quiet), tickfont=font)
