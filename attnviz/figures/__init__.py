"""Plotly figures of records. Uses numpy and plotly, never torch."""

from attnviz.figures.bars import draw_ranking
from attnviz.figures.comparison import draw_comparison
from attnviz.figures.heatmap import draw_heatmap, draw_pattern
from attnviz.figures.pair import draw_pair
from attnviz.figures.projection import draw_projection
from attnviz.figures.verification import draw_errors

__all__ = [
    "draw_comparison",
    "draw_errors",
    "draw_heatmap",
    "draw_pair",
    "draw_pattern",
    "draw_projection",
    "draw_ranking",
]
