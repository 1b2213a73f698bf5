"""Heads as points: one number of each by layer, two numbers, how like they are; and bars of what they do over a corpus."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from plotly import graph_objects as go

from attnviz.figures.cells import hatching
from attnviz.figures.layer_grid import runs_across
from attnviz.figures.numbers import HOVER_NUMBER
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    ThemeName,
    axis_title,
    bare_axis,
    base_layout,
    cell_axis,
    colour_bar,
    diamond,
    figure_of,
    framed,
    grid_axis,
    legend_above,
    line,
    plain_axis,
    points_at,
    weight_scale,
)
from attnviz.heads.reach import BinnedShares
from attnviz.records import Head, heads_in, known

MAP_HEIGHT = 460
_DIMMED = 0.2
_FIRST_TONE = 0.3
"""Place of the lowest layer on the weight scale; a paler tone would not be visible on the background."""
_LABEL = np.array([44.0, 14.0])  # px that a label takes
_ABOVE = np.array([0.0, 14.0])  # px from a point to the middle of its label
_POINT = 10.0  # px
_MAP = np.array([480.0, MAP_HEIGHT - 60.0])  # px, approximate; labels that overlap at this size are hidden


def draw_head_map(
    points: Float[np.ndarray, "head 2"],
    *,
    heads: Sequence[Head],
    picked: tuple[int, int] | None = None,
    dimmed: Bool[np.ndarray, " head"] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Heads as points, named "L3 H1", in a tone for each layer; custom data of a point are its layer and head.

    Overlapping labels are hidden; the hover text of a point names its head.

    Args:
        heads: the head of each point.
        picked: layer and head of the selected head, whose point is larger, framed and labelled.
        dimmed: True for heads that are dimmed, in the order of the points.
    """
    palette = THEMES[theme]
    layer = np.array([head.layer for head in heads])
    is_picked = np.array([head == picked for head in heads])
    n_layer = int(layer[-1]) + 1
    order = np.argsort(~is_picked, kind="stable")
    is_named = _thinned(points, order)
    names = [head.short for head in heads]
    marker = diamond(
        is_picked,
        (10, 15),
        color=layer,
        cmin=0,
        cmax=max(n_layer - 1, 1),
        colorscale=_layer_scale(theme),
        opacity=1.0 if dimmed is None else np.where(dimmed & ~is_picked, _DIMMED, 1.0),
        line={
            "width": np.where(is_picked, 3, 0.5),
            "color": np.where(is_picked, palette.picked, palette.quiet),
        },
        showscale=n_layer > 1,
        colorbar=colour_bar("layer") | {"dtick": max(1, n_layer // 6)},
    )
    drawn = points_at(
        points[:, 0],
        points[:, 1],
        marker,
        mode="markers+text",
        customdata=np.array(heads),
        text=[name if named else "" for name, named in zip(names, is_named, strict=True)],
        textposition="top center",
        textfont={
            "size": SMALL_FONT_SIZE,
            "color": np.where(is_picked, palette.picked, palette.text),
            "shadow": ", ".join(
                [f"0 0 2px {palette.background}"] * 4
            ),  # the picked label may lie on other points
        },
        hovertemplate="layer %{customdata[0]}, head %{customdata[1]}<extra></extra>",
    )
    axis = {"visible": False}
    layout = base_layout(
        palette,
        height=MAP_HEIGHT,
        xaxis=axis,
        yaxis={**axis, "scaleanchor": "x", "scaleratio": 1},
        margin={"l": 16, "t": 24},
    )
    return figure_of(drawn, layout)


def _layer_scale(theme: ThemeName) -> list[tuple[float, str]]:
    """The upper part of the weight scale, from the lowest layer to the highest."""
    scale = [(place, colour) for place, colour in weight_scale(THEMES[theme]) if place >= _FIRST_TONE]
    first = scale[0][0]
    return [((place - first) / (1 - first), colour) for place, colour in scale]


def _thinned(points: Float[np.ndarray, "head 2"], order: np.ndarray) -> Bool[np.ndarray, " head"]:
    """True for labels that are drawn: in this order, each that does not overlap one drawn before."""
    scale = float(np.min(_MAP / np.maximum(np.ptp(points, axis=0), 1e-9)))
    centres = points * scale  # px
    is_named = np.zeros(len(points), dtype=bool)
    for number in order:
        from_labels = np.abs(centres[is_named] - centres[number])
        from_points = np.abs(centres - (centres[number] + _ABOVE))
        covers = (from_labels < _LABEL).all(axis=1).any()
        covers |= (from_points < (_LABEL + _POINT) / 2).all(axis=1).any()
        is_named[number] = number == order[0] or not covers
    return is_named


_ROW, _ACROSS = 26, 320  # px per layer, and the height where layers run across
_MARGIN = 0.02  # share of the axis, beyond its ends
_SPREAD = 0.6  # share of a layer's row that its heads take


def draw_heads(
    numbers: Float[np.ndarray, "layer head"],
    *,
    what: str,
    picked: tuple[int, int] | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    theme: ThemeName = "light",
) -> go.Figure:
    """A point for each head: layers down and numbers across, or layers across where there are many.

    Args:
        numbers: NaN for heads without a point.
        what: name of the number, written beside the axis.
        picked: layer and head of the selected head, which is marked.
        span: ends of the axis.
    """
    palette = THEMES[theme]
    n_layer, n_head = numbers.shape
    places = heads_in(numbers)
    layers, heads = np.array(places, dtype=np.int64).reshape(-1, 2).T
    is_picked = np.array([place == picked for place in places], dtype=bool)
    is_across = runs_across(n_layer)
    # Heads of a layer stand side by side, so that equal numbers do not hide each other.
    stand = layers + (heads / max(n_head - 1, 1) - 0.5) * _SPREAD
    points = points_at(
        stand if is_across else known(numbers),
        known(numbers) if is_across else stand,
        framed(is_picked, (9, 13), palette),
        customdata=np.column_stack([layers, heads]),
        hovertemplate="layer %{customdata[0]}, head %{customdata[1]}: "
        + ("%{y:.3g}" if is_across else "%{x:.3g}")
        + "<extra></extra>",
    )
    of_layers = plain_axis(dtick=1, title=axis_title("layer", palette.quiet))
    beyond = _MARGIN * (span[1] - span[0])
    ends = [span[0] - beyond, span[1] + beyond]
    of_numbers = plain_axis(range=ends, title=axis_title(what, palette.quiet)) | {
        "gridcolor": palette.edge,
        "showgrid": True,
    }
    first, last = -0.6, n_layer - 0.4
    return figure_of(
        points,
        base_layout(
            palette,
            height=_ACROSS if is_across else 70 + _ROW * n_layer,
            margin={"l": 44, "r": 16, "b": 44},
            xaxis={**of_layers, "range": [first, last], "tickangle": 0} if is_across else of_numbers,
            yaxis=of_numbers if is_across else {**of_layers, "range": [last, first]},
        ),
    )


_HEIGHT = 420
_LOW = 190  # px, of a histogram
_FAINT = 0.25
_MOST_NAMED = 30  # layers
_EVERY = 5  # one bin in this many is named, besides the ends


def draw_two_numbers(
    across: Float[np.ndarray, " head"],
    up: Float[np.ndarray, " head"],
    *,
    heads: Sequence[Head],
    titles: tuple[str, str],
    ends: tuple[Float[np.ndarray, " head"], Float[np.ndarray, " head"]] | None = None,
    picked: Head | None = None,
    shown: Sequence[Head] | None = None,
    is_same_number: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """A point for each head at two of its numbers; custom data of a point are its layer and head.

    Args:
        titles: of the two axes.
        ends: of the intervals of `up`, drawn for the selected head.
        shown: heads that are not dimmed; None for all.
        is_same_number: whether both are the same number over different texts; a line shows where they are equal.
    """
    palette = THEMES[theme]
    is_picked = np.array([head == picked for head in heads])
    is_shown = np.array([shown is None or head in shown for head in heads]) | is_picked
    error: dict[str, object] = {}
    if ends is not None:
        error = {
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": np.where(is_picked, ends[1] - up, 0),
                "arrayminus": np.where(is_picked, up - ends[0], 0),
                "color": palette.picked,
                "thickness": 2,
                "width": 0,
            }
        }
    marker = diamond(
        is_picked,
        (9, 14),
        color=np.where(is_picked, palette.picked, palette.strong),
        opacity=np.where(is_picked, 1.0, np.where(is_shown, 0.7, _FAINT)),
        line={"width": 0},
    )
    points = points_at(
        across,
        up,
        marker,
        customdata=np.array(heads),
        hovertemplate=(
            f"layer %{{customdata[0]}}, head %{{customdata[1]}}<br>{titles[0]} %{{x:{HOVER_NUMBER}}}"
            f"<br>{titles[1]} %{{y:{HOVER_NUMBER}}}<extra></extra>"
        ),
        **error,
    )
    layout = base_layout(
        palette,
        height=_HEIGHT,
        margin={"r": 16, "t": 12},
        xaxis=grid_axis(palette, titles[0]),
        yaxis=grid_axis(palette, titles[1]),
    )
    if is_same_number:
        both = np.concatenate([across, up])
        low, high = float(np.nanmin(both)), float(np.nanmax(both))
        layout["shapes"] = [line((low, low), (high, high), palette.quiet)]
    return figure_of(points, layout)


def draw_by_depth(
    models: Sequence[tuple[str, Sequence[Head], Float[np.ndarray, " head"]]],
    *,
    title: str,
    picked: Head | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """A number of every head of two models, by the depth of its layer: 0 for the first layer, 1 for the last.

    Args:
        models: name, heads and their numbers; only points of the first have custom data, layer and head.
        title: of the number.
        picked: the selected head of the first model.
    """
    palette = THEMES[theme]
    traces: list[dict[str, object]] = []
    for number, (name, heads, means) in enumerate(models):
        last = max(1, max(head.layer for head in heads))
        is_picked = np.array([number == 0 and head == picked for head in heads])
        colour, symbol = ((palette.query, "circle"), (palette.key, "square-open"))[number]
        tones = np.where(is_picked, palette.picked, colour)
        traces.append(
            points_at(
                [head.layer / last for head in heads],
                means,
                diamond(is_picked, (8, 14), symbol, color=tones, opacity=0.8),
                name=name,
                customdata=np.array(heads) if number == 0 else None,
                text=[head.title for head in heads],
                hovertemplate=f"%{{text}}<br>{title} %{{y:{HOVER_NUMBER}}}<extra></extra>",
            )
        )
    layout = base_layout(
        palette,
        height=_HEIGHT,
        margin={"r": 16, "t": 32},
        showlegend=True,
        legend=legend_above(),
        xaxis=grid_axis(palette, "layer, as a share of all layers"),
        yaxis=grid_axis(palette, title),
    )
    return figure_of(traces, layout)


def draw_shares(
    shares: Float[np.ndarray, " bin"],
    names: Sequence[str],
    *,
    title: str,
    ticks: Sequence[str] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """Bars of shares of weight, each with a name.

    Args:
        title: of the axis of names.
        ticks: what is written below each bar; some of the names if empty.
    """
    palette = THEMES[theme]
    bars = dict(
        type="bar",
        x=list(range(len(names))),
        y=np.nan_to_num(shares),
        marker={"color": palette.key},
        customdata=list(names),
        hovertemplate=f"{title} %{{customdata}}: %{{y:{HOVER_NUMBER}}}<extra></extra>",
    )
    numbered = [at for at, name in enumerate(names) if name.removeprefix("−").isdecimal()]
    named = [at for at in numbered if int(names[at].removeprefix("−")) % _EVERY == 0]
    named = sorted({*named, *({0, len(names) - 1} - set(numbered))})
    if ticks:
        named, names = list(range(len(names))), ticks
    layout = base_layout(
        palette,
        height=_LOW,
        bargap=0.15,
        xaxis=bare_axis(
            tickvals=named,
            ticktext=[names[at] for at in named],
            title=axis_title(title, palette.quiet),
        ),
        yaxis=grid_axis(palette, rangemode="tozero"),
    )
    return figure_of(bars, layout)


_BIN = 24  # px


def draw_binned_shares(
    binned: BinnedShares, *, head: tuple[int, int] | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """All heads from left to right with a cell for each bin, the first bin on top; or the bins of one head as bars.

    Custom data of a cell are layer and head.

    Args:
        head: layer and head whose bins are drawn as bars; None for all heads.
    """
    title = "position of the query" if binned.over == "position" else "distance in tokens"
    if head is not None:
        doubling = [str(first) for first in binned.bins[:, 0].tolist()] if binned.over == "distance" else []
        return draw_shares(binned.shares[head], binned.names, title=title, ticks=doubling, theme=theme)
    palette = THEMES[theme]
    shares = np.array([binned.shares[head] for head in binned.heads])
    firsts = [number for number, head in enumerate(binned.heads) if not head.head]
    step = -(-len(firsts) // _MOST_NAMED)
    cells = dict(
        type="heatmap",
        z=shares.T,
        zmin=0.0,
        zmax=1.0,
        colorscale=weight_scale(palette),
        colorbar=colour_bar("share of weight"),
        hoverongaps=False,
        customdata=[binned.heads] * len(binned.names),
        hovertemplate=f"layer %{{customdata[0]}}, head %{{customdata[1]}}<br>{title} %{{y}}: %{{z:{HOVER_NUMBER}}}<extra></extra>",
    )
    layout = base_layout(
        palette,
        height=80 + _BIN * len(binned.names),
        margin={"t": 44},
        xaxis=cell_axis(
            side="top",
            tickangle=0,
            tickvals=firsts[::step],
            ticktext=[str(binned.heads[first].layer) for first in firsts[::step]],
            title=axis_title("layer", palette.quiet),
        ),
        yaxis=cell_axis(
            automargin=True,
            autorange="reversed",
            tickvals=list(range(len(binned.names))),
            ticktext=list(binned.names),
            title=axis_title(title, palette.quiet),
        ),
        shapes=hatching(np.isnan(shares.T), palette),
    )
    return figure_of(cells, layout)
