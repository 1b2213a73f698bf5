"""A text of a corpus in one line, with arcs from one token to what it attends to."""

from collections.abc import Sequence

from attnviz.figures.theme import ThemeName
from ui.components import colours, register

_mount = register("example_arcs", "svg", "html")


def example_arcs(
    labels: Sequence[str],
    weights: Sequence[float],
    *,
    query: int | None,
    query_label: str,
    marks_key: bool = False,
    theme: ThemeName,
    key: str,
) -> None:
    """Draws the tokens and the arcs.

    Args:
        labels: of the keys.
        weights: of the query on each key.
        query: position of the query among the keys; None if it belongs to another text, and is drawn before the keys.
        marks_key: whether the key with the largest weight is marked, and its weight written.
        key: of the component; one for each text on a page.
    """
    _mount(
        key=key,
        data={
            "labels": list(labels),
            "weights": [round(float(weight), 4) for weight in weights],
            "query": query,
            "queryLabel": query_label,
            "marksKey": marks_key,
            "colours": colours(theme, "text", "query", "key", "key_text"),
        },
    )
