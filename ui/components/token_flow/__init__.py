"""Queries and keys in two columns, joined by lines as thick as their weight."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool

from attnviz.figures.labels import label_at
from attnviz.figures.theme import THEMES, TOKEN_FONT, ThemeName
from attnviz.heads.flow import Flow
from attnviz.records import Axis
from ui.components import colours, register
from ui.components.sent import sent

_mount = register("token_flow", "svg", "html", "numbers", "measure", "renew", "flow_legend")


def token_flow(
    flow: Flow,
    queries: Axis,
    keys: Axis,
    *,
    heads: Sequence[tuple[str, str]],
    largest: float,
    drawn: Bool[np.ndarray, " line"],
    query: int,
    kept: tuple[str, int] | None,
    on_keep: Callable[[str, int], None],
    theme: ThemeName,
) -> None:
    """Draws the lines; ``on_keep`` is called with "query" or "key" and the position of a token that is clicked.

    It is called with an empty string when the token is cleared.

    Args:
        heads: short and long name of each of the flow's matrices, such as ("3.1", "Layer 3, head 1").
        largest: weight of the thickest line.
        drawn: lines that are drawn until a token is hovered over.
        query: position of the selected query, which is framed.
        kept: side and position of the clicked token; only its lines are shown.
    """
    palette = THEMES[theme]

    def take() -> None:
        match sent("token_flow", "keep"):
            case ["query", int(position)] if position in queries.positions:
                on_keep("query", position)
            case ["key", int(position)] if position in keys.positions:
                on_keep("key", position)
            case ["", _]:
                on_keep("", 0)

    _mount(
        key="token_flow",
        data={
            "name": "Token flow: queries on the left, keys on the right",
            "hint": "Hover over a token, tap it, or reach it with Tab and the arrow keys to show only its lines and "
            "numbers. Click or press Enter to keep them, Escape to clear.",
            "touchHint": "Tap a token to show only its lines and numbers; tap it again to show all.",
            "queries": _side(queries, picked=queries.index(query)),
            "keys": _side(keys, picked=None),
            "matrices": [
                {"name": name, "label": label, "colour": colour}
                for (name, label), colour in zip(heads, palette.heads, strict=False)
            ],
            "lines": {
                "matrix": flow.matrix.tolist(),
                "query": flow.query.tolist(),
                "key": flow.key.tolist(),
                "weight": [float(f"{weight:.4g}") for weight in flow.weight],
                "drawn": drawn.astype(int).tolist(),
            },
            "largest": largest,
            "kept": kept,
            "font": TOKEN_FONT,
            "colours": colours(theme, "background", "text", "quiet", "edge", "query", "key", "picked"),
        },
        on_keep_change=take,
    )


def _side(axis: Axis, *, picked: int | None) -> dict[str, object]:
    labels = axis.labels
    second = np.flatnonzero(np.diff(axis.segment))
    return {
        "labels": labels,
        "names": [label_at(label, position) for label, position in zip(labels, axis.positions, strict=True)],
        "positions": axis.positions.tolist(),
        "special": axis.is_special.tolist(),
        "picked": picked,
        "border": int(second[0]) + 1 if len(second) else None,
    }
