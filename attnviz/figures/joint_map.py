"""Query and key vectors of many sentences in the plane: thousands of points, drawn by WebGL."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from plotly import graph_objects as go

from attnviz.figures.labels import isolated, label_at, literal, shortened
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    Marks,
    Theme,
    ThemeName,
    base_layout,
    colour_bar,
    figure_of,
    legend_above,
    number_scale,
)
from attnviz.records import Tokens

HEIGHT = 620
TINTS = ("role", "token", "position", "sentence", "norm", "special")
"""Properties that points can be coloured by."""
_BAR_TITLES = {"position": "position", "sentence": "sentence", "norm": "length of the vector"}
_SYMBOLS = {"query": "circle", "key": "diamond"}
_SIZE, _SIZE_OF_MANY, _MANY = 6, 4, 8_000  # px, px, points
_FAINT = 0.12
_AROUND = 4
"""Tokens on each side of a token that its hover text shows."""


class _Group(NamedTuple):
    """Points of one colour, with their name in the legend."""

    name: str
    colour: str
    is_in: Bool[np.ndarray, " token"]


def draw_joint_map(
    points: Float[np.ndarray, "point 2"],
    tokens: Sequence[Tokens],
    texts: Sequence[str],
    *,
    tint: str = "role",
    lengths: Float[np.ndarray, " point"] | None = None,
    shown: Bool[np.ndarray, " token"] | None = None,
    matches: Int[np.ndarray, " match"] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Queries as circles and keys as diamonds; custom data of a point are 0 for a query or 1 for a key, and its token's number.

    Args:
        points: all queries first, then all keys.
        tokens: of each sentence.
        texts: hover text of each token; see `hover_texts`.
        tint: one of `TINTS`.
        lengths: of each vector, in the order of the points; for the tint "norm".
        shown: True for tokens that are drawn; None for all.
        matches: numbers of tokens that are highlighted while all others are dimmed; None for no highlight.
        theme: light or dark background.
    """
    palette = THEMES[theme]
    n_token = len(points) // 2
    drawn = np.ones(n_token, dtype=bool) if shown is None else shown
    size = _SIZE if len(points) <= _MANY else _SIZE_OF_MANY
    traces, marks = [], {}
    for role, own_colour, name, side in (
        ("query", palette.query, "queries", 0),
        ("key", palette.key, "keys", 1),
    ):

        def trace(is_in: np.ndarray, *, role: str = role, side: int = side, **own: object) -> Marks:
            rows = np.flatnonzero(is_in & drawn)
            placed = points[side * n_token + rows]
            return dict(
                type="scattergl",
                x=placed[:, 0],
                y=placed[:, 1],
                mode="markers",
                customdata=np.column_stack([np.full_like(rows, side), rows]),
                hovertext=[f"{role} {texts[int(row)]}" for row in rows],
                hoverinfo="text",
                **own,
            )

        everything = np.ones(n_token, dtype=bool)
        opacity = 0.75 if matches is None else _FAINT
        marker = {"symbol": _SYMBOLS[role], "size": size, "opacity": opacity}
        if (numbers := _numbers(tint, tokens, lengths)) is not None:
            colours = numbers[side * n_token :][:n_token][drawn]
            marker |= {"color": colours, "coloraxis": "coloraxis"}
            traces.append(trace(everything, name=name, marker=marker, legendgroup=name, showlegend=False))
            marks[name] = _SYMBOLS[role], palette.text
        else:
            groups = list(_groups(tint, tokens, palette)) or [_Group(name, own_colour, everything)]
            traces += [
                trace(
                    group.is_in,
                    name=group.name,
                    marker=marker | {"color": group.colour},
                    legendgroup=group.name,
                    showlegend=False,
                )
                for group in groups
            ]
            marks |= {
                group.name: (_SYMBOLS[role if tint == "role" else "query"], group.colour) for group in groups
            }
        if matches is not None:
            outline = {"width": 1, "color": palette.text}
            stands_out = {"symbol": _SYMBOLS[role], "size": size + 4, "color": own_colour, "line": outline}
            is_found = np.isin(np.arange(n_token), matches)
            traces.append(trace(is_found, name=f"found {name}", marker=stands_out))
    traces += [_mark(name, symbol, colour) for name, (symbol, colour) in marks.items()]
    axis = {"visible": False}
    layout = base_layout(
        palette,
        height=HEIGHT,
        dragmode="zoom",
        hovermode="closest",
        xaxis=axis,
        yaxis={**axis, "scaleanchor": "x", "scaleratio": 1},
        showlegend=True,
        legend=legend_above(y=1.0, font={"size": SMALL_FONT_SIZE}, itemsizing="constant"),
        coloraxis={
            "colorscale": number_scale(palette),
            "colorbar": colour_bar(_BAR_TITLES.get(tint, "")),
        },
        margin={"t": 28},
    )
    return figure_of(traces, layout)


def _mark(name: str, symbol: str, colour: str) -> Marks:
    """A trace without points, for the legend: marks of the traces with points would be dimmed like their points."""
    return dict(
        type="scattergl",
        x=[None],
        y=[None],
        name=name,
        mode="markers",
        marker={"symbol": symbol, "color": colour, "size": _SIZE},
        legendgroup=name,
        hoverinfo="skip",
    )


def hover_texts(tokens: Sequence[Tokens]) -> list[str]:
    """Hover text of each token: the token with its position, and the tokens around it; safe for plotly."""
    texts = []
    for sentence, sentence_tokens in enumerate(tokens):
        for position, label in enumerate(sentence_tokens.labels):
            first, stop = max(0, position - _AROUND), min(len(sentence_tokens), position + _AROUND + 1)
            around = [shortened(other) for other in sentence_tokens.labels[first:stop]]
            around[position - first] = f"‹{around[position - first]}›"
            line = "… " * (first > 0) + " ".join(around) + " …" * (stop < len(sentence_tokens))
            texts.append(
                f"{label_at(literal(shortened(label)), position)}, sentence {sentence + 1}<br>{isolated(literal(line))}"
            )
    return texts


def _numbers(
    tint: str, tokens: Sequence[Tokens], lengths: Float[np.ndarray, " point"] | None
) -> Float[np.ndarray, " point"] | None:
    """The number of each point, for a tint that is a number; None for other tints."""
    n_of = [len(token) for token in tokens]
    if tint == "norm":
        return lengths
    if tint == "position":
        of_tokens = np.concatenate([np.arange(n) for n in n_of])
    elif tint == "sentence":
        of_tokens = np.repeat(np.arange(1, len(n_of) + 1), n_of)
    else:
        return None
    return np.tile(of_tokens, 2).astype(np.float32)


def _groups(tint: str, tokens: Sequence[Tokens], palette: Theme) -> Iterator[_Group]:
    """The groups of a tint, with every token in one of them; none for a tint without groups."""
    if tint == "token":
        labels = np.array([label for token in tokens for label in token.labels], dtype=object)
        groups = [
            _Group(f"{isolated(literal(shortened(label)))} ({n:,})", colour, labels == label)
            for (label, n), colour in zip(
                Counter(labels.tolist()).most_common(), palette.groups, strict=False
            )
        ]
        rest = ~np.any([group.is_in for group in groups], axis=0)
        if rest.any():
            yield _Group(f"others ({rest.sum():,})", palette.edge, rest)  # drawn below those with a colour
        yield from groups
    elif tint == "special":
        is_special = np.concatenate([token.is_special for token in tokens])
        yield _Group("special token", palette.picked, is_special)
        yield _Group("token of the text", palette.quiet, ~is_special)
