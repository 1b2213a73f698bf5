"""Previews on hover, drawn over the matrix and the map of the stage."""

from attnviz.figures.theme import ThemeName
from attnviz.records import AttentionPattern
from ui.components import colours, register

_mount = register("stage_marks", "svg", "html", "chart", "chart_insides", "stage")


def stage_marks(text: str, pattern: AttentionPattern, *, is_weights: bool, theme: ThemeName) -> None:
    """Connects the charts "matrix" and "map" with the previews.

    Args:
        text: names the text and model, with the same name as in the other parts of the stage.
        pattern: the matrix as drawn.
        is_weights: whether its cells are weights of single tokens, so that another head's weights can replace them.
    """
    _mount(
        key="stage_marks",
        data={
            "text": text,
            "queries": pattern.queries.positions.tolist(),
            "keys": pattern.keys.positions.tolist(),
            "isWeights": is_weights,
            "colours": colours(theme, "picked"),
        },
    )
