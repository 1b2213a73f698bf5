"""Records to plotly figures. numpy and plotly only, never torch."""

from attnviz.figures.heatmap import draw_heatmap, draw_pattern
from attnviz.figures.projection import draw_projection
from attnviz.figures.ranking import draw_ranking
from attnviz.figures.verification import draw_errors

__all__ = ["draw_errors", "draw_heatmap", "draw_pattern", "draw_projection", "draw_ranking"]
