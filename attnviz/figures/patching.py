"""Where the difference between two texts lies: the share that each state brings, layer by layer and token by token."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from plotly import graph_objects as go

from attnviz.figures.theme import (
    HOVER_NUMBER,
    LONGEST_HOVER,
    LONGEST_LABEL,
    SMALL_FONT_SIZE,
    THEMES,
    TOKEN_FONT,
    ThemeName,
    axis_title,
    base_layout,
    difference_scale,
    figure_of,
    isolated,
    literal,
    outline,
    shortened,
)
from attnviz.records.tokens import Tokens

if TYPE_CHECKING:
    from attnviz.effects.patching import PatchEffects

_ROW, _LABELS = 30, 170  # px
_LOWEST, _HIGHEST = 300, 620


def draw_patching(
    found: "PatchEffects",
    receiver: Tokens,
    donor: Tokens,
    *,
    picked: int | None = None,
    differing: Sequence[int] = (),
    theme: ThemeName = "light",
) -> go.Figure:
    """A cell for each layer, or head, and token: the share of the difference; custom data are row and token.

    Layers stand from the first at the bottom, as a text passes through them. The colours go from -1 to 1, or further
    where a share is larger.

    Args:
        receiver, donor: the tokens of the two texts; a token that differs is written "cat → door".
        picked: position of the selected token, whose column is outlined.
        differing: positions at which the texts differ, which are marked below the axis.
    """
    palette = THEMES[theme]
    shares = found.shares
    n_row, n_token = shares.shape
    row = "head" if found.carried == "heads" else "layer"
    names = [_name(receiver, donor, at, LONGEST_HOVER) for at in range(n_token)]
    unique = [f"{name}·{at}" for at, name in enumerate(names)]
    written = [
        f"{'▲ ' * (at in differing)}{_name(receiver, donor, at, LONGEST_LABEL)}" for at in range(n_token)
    ]
    largest = max(1.0, float(np.nanmax(np.abs(shares), initial=0.0)))
    cells = dict(
        type="heatmap",
        x=unique,
        y=np.arange(n_row),
        z=shares,
        zmin=-largest,
        zmax=largest,
        colorscale=difference_scale(palette),
        xgap=int(n_token <= 48),
        ygap=1,
        hoverongaps=False,
        customdata=np.stack(
            np.meshgrid(np.arange(n_row), np.arange(n_token), indexing="ij"), axis=-1
        ).tolist(),
        text=found.outcomes,
        hovertemplate=f"{row} %{{y}}, %{{x}}<br>share %{{z:{HOVER_NUMBER}}}, outcome %{{text:{HOVER_NUMBER}}}<extra></extra>",
        colorbar={
            "title": {"text": "share of the difference", "side": "right", "font": {"size": SMALL_FONT_SIZE}},
            "thickness": 8,
            "outlinewidth": 0,
            "tickfont": {"size": SMALL_FONT_SIZE},
        },
    )
    axis = {"showgrid": False, "zeroline": False, "ticks": "", "fixedrange": True}
    step = max(1, -(-n_token // 64))
    return figure_of(
        cells,
        base_layout(
            palette,
            height=int(np.clip(n_row * _ROW + _LABELS, _LOWEST, _HIGHEST)),
            xaxis={
                **axis,
                "type": "category",
                "range": [-0.5, n_token - 0.5],
                "tickmode": "array",
                "tickvals": unique[::step],
                "ticktext": written[::step],
                "tickangle": -60,
                "automargin": True,
                "tickfont": {"family": TOKEN_FONT, "size": SMALL_FONT_SIZE},
            },
            yaxis={
                **axis,
                "title": axis_title(row, palette.quiet),
                "range": [-0.5, n_row - 0.5],
                "dtick": max(1, n_row // 12),
                "automargin": True,
                "tickfont": {"size": SMALL_FONT_SIZE},
            },
            shapes=[]
            if picked is None
            else [outline((picked - 0.5, picked + 0.5), (-0.5, n_row - 0.5), palette.picked, width=2)],
        ),
    )


def _name(receiver: Tokens, donor: Tokens, at: int, longest: int) -> str:
    """A token, or "cat → door" where the donor has another."""
    mine, theirs = (isolated(literal(shortened(one.labels[at], longest))) for one in (receiver, donor))
    return mine if receiver.labels[at] == donor.labels[at] else f"{mine} → {theirs}"
