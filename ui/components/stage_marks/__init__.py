"""What the pointer previews, drawn over the matrix and the map of the stage."""

from attnviz.figures.theme import ThemeName
from attnviz.records import AttentionPattern
from ui.components import colours, register

_mount = register("stage_marks", "svg", "html", "chart", "chart_insides", "stage")


def stage_marks(text: str, pattern: AttentionPattern, *, is_weights: bool, theme: ThemeName) -> None:
    """Connects the charts "matrix" and "map" with what is pointed at.

    Args:
        text: names the text and model, as the other parts of the stage name theirs.
        pattern: the matrix as it is drawn.
        is_weights: whether its cells are the weights of single tokens, so that those of other heads can stand in their place.
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
