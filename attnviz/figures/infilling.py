"""Candidates for a gap in a text as bars: what the text before gives each, what the text after makes of it, and both together."""

from typing import TYPE_CHECKING

from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.labels import LONGEST_HOVER, LONGEST_LABEL, aliases, isolated, literal, shortened
from attnviz.figures.numbers import HOVER_NUMBER, number_text
from attnviz.figures.theme import (
    SMALL_FONT_SIZE,
    THEMES,
    Theme,
    ThemeName,
    base_layout,
    figure_of,
    hidden_axis,
    legend_above,
    named_rows,
)

if TYPE_CHECKING:
    from attnviz.model.infilling import Infilling

MOST_CANDIDATES = 5
_BAR, _LEGEND, _REST = 17, 28, 16  # px


@typed
def draw_infilling(infilling: "Infilling", *, theme: ThemeName = "light") -> go.Figure:
    """The `MOST_CANDIDATES` likeliest candidates, likeliest on top; one bar each for a masked language model, three for a decoder.

    Of a decoder: P(candidate | before); P(after | before, candidate) as a share of its sum over all candidates, which is the
    probability if all had been equally likely before; and P(candidate | before, after).
    """
    palette, shown = THEMES[theme], slice(MOST_CANDIDATES)
    labels = [isolated(literal(shortened(label, LONGEST_HOVER))) for label in infilling.labels[shown]]
    written = [isolated(literal(shortened(label, LONGEST_LABEL))) for label in infilling.labels[shown]]
    sides = [("probability", infilling.probabilities, palette.strong)]
    if infilling.before_probabilities is not None and infilling.after_shares is not None:
        sides = [
            ("the text before", infilling.before_probabilities, palette.edge),
            ("the text after", infilling.after_shares, palette.quiet),
            ("both", infilling.probabilities, palette.strong),
        ]
    bars = [
        _bars(name, labels, [float(share) for share in shares[shown]], colour, palette)
        for name, shares, colour in sides
    ]
    layout = base_layout(
        palette,
        height=_REST + _LEGEND * (len(sides) > 1) + round(_BAR * len(labels) * (len(sides) + 0.6)),
        barmode="group",
        bargap=0.3,
        showlegend=len(sides) > 1,
        legend=legend_above(traceorder="normal"),
        margin={"r": 48},
        xaxis=hidden_axis(range=[0, 1]),
        yaxis=named_rows(aliases(labels, written)),
    )
    return figure_of(bars, layout)


def _bars(
    name: str, labels: list[str], shares: list[float], colour: str, palette: Theme
) -> dict[str, object]:
    return dict(
        type="bar",
        name=name,
        x=shares,
        y=labels,
        orientation="h",
        marker={"color": colour, "line": {"color": palette.quiet, "width": 1}},
        text=[f"\N{EN SPACE}{number_text(share)}" for share in shares],
        textposition="outside",
        textfont={"size": SMALL_FONT_SIZE},
        cliponaxis=False,
        hovertemplate=f"%{{y:c}}<br>{name} %{{x:{HOVER_NUMBER}}}<extra></extra>",
    )
