"""The tokens of a text in one line, with arcs from the selected query to its keys."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from attnviz.figures.theme import ThemeName
from attnviz.records import AttentionPattern, Head, Tokens
from ui.components import colours, register
from ui.components.sent import takes_position
from ui.components.token_strip import cut_marks

_mount = register(
    "token_arcs", "svg", "html", "mask", "renew", "remember", "stage", "chart", "chart_insides", "previews"
)


def token_arcs(
    queries: Tokens,
    keys: Tokens | None,
    weights: Float[np.ndarray, "query key"],
    *,
    text: str,
    place: Head,
    query: int,
    matrix: AttentionPattern,
    is_previewed: bool,
    mask_label: str | None,
    on_pick: Callable[[int], None],
    on_mask: Callable[[int], None],
    theme: ThemeName,
) -> None:
    """Draws tokens and arcs; ``on_pick`` is called with the position of a token that is clicked.

    Hovering previews a token on the charts "matrix", "map" and "ranking", too.

    Args:
        keys: the tokens attended to, if they differ from the queries.
        weights: of the selected head, every query on every key.
        text: names the text and model, with the same name as in the weights of the other heads.
        matrix: as drawn.
        is_previewed: whether its cells are weights of single tokens, so that another head's weights can replace them.
        mask_label: the mask token as text; the selected token then has a button that masks or restores it, which
            calls ``on_mask``. None if tokens cannot be masked.
    """
    _mount(
        key="token_strip",
        data={
            "name": "Tokens; select one as the query",
            "mask": mask_label,
            "tokens": _tokens(queries, query, is_maskable=mask_label is not None),
            "keys": None if keys is None else _tokens(keys, None, is_maskable=False),
            "own": {"text": text, "place": list(place), "query": query},
            "marks": {
                "queries": matrix.queries.positions.tolist(),
                "keys": matrix.keys.positions.tolist(),
                "isWeights": is_previewed,
            },
            "colours": colours(
                theme, "background", "text", "quiet", "edge", "query", "key", "picked", "failed"
            ),
        },
        attached=np.ascontiguousarray(weights, dtype="<f4").tobytes(),
        on_pick_change=takes_position("token_strip", "pick", len(queries), on_pick),
        on_mask_change=takes_position("token_strip", "mask", len(queries), on_mask),
    )


def _tokens(tokens: Tokens, query: int | None, *, is_maskable: bool) -> list[dict[str, object]]:
    """Position and label of each token, and what else there is to say of it; what is false or empty is left out."""
    marks, is_joined = cut_marks(tokens), tokens.continues_word
    facts: list[dict[str, object]] = [
        {
            "query": position == query,
            "special": bool(tokens.is_special[position]),
            "joined": bool(is_joined[position]),
            "cut": marks.get(position, ""),
            "was": tokens.masked.get(position, ""),
            "maskable": is_maskable and not tokens.is_special[position],
        }
        for position in range(len(tokens))
    ]
    return [
        {"position": position, "label": label} | {name: fact for name, fact in of_token.items() if fact}
        for position, (label, of_token) in enumerate(zip(tokens.labels, facts, strict=True))
    ]
