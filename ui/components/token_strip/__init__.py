"""The tokens of a text as chips that can be selected."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from attnviz.figures.numbers import share_text
from attnviz.figures.theme import ThemeName
from attnviz.records import Tokens
from attnviz.viewer.data import cut_marks
from ui.components import colours, register
from ui.components.sent import takes_position

_mount = register("token_strip", "html", "mask", "renew")


def token_strip(
    tokens: Tokens,
    *,
    query: int,
    key: int,
    weights: Float[np.ndarray, " key"] | None,
    mask_label: str | None,
    on_pick: Callable[[int], None],
    on_mask: Callable[[int], None],
    theme: ThemeName,
) -> None:
    """Draws the chips; ``on_pick`` is called with the position of a clicked chip.

    Args:
        mask_label: the mask token as text; the selected chip then has a button that masks or restores its token,
            which calls ``on_mask``. None if tokens cannot be masked.
        weights: weight of the selected query on each token, drawn as a bar in its chip; None if the tokens are
            not the keys.
    """
    continues_word, marks = tokens.continues_word, cut_marks(tokens)
    _mount(
        key="token_strip",
        data={
            "name": "Tokens; select one as the query",
            "mask": mask_label,
            "tokens": [
                {
                    "position": position,
                    "label": label,
                    "special": bool(tokens.is_special[position]),
                    "joined": bool(continues_word[position]),
                    "query": position == query,
                    "key": weights is not None and position == key,
                    "weight": 0.0 if weights is None else float(weights[position]),
                    "share": "no share" if weights is None else share_text(float(weights[position])),
                    "cut": marks.get(position, ""),
                    "was": tokens.masked.get(position, ""),
                    "maskable": mask_label is not None and not tokens.is_special[position],
                }
                for position, label in enumerate(tokens.labels)
            ],
            "colours": colours(
                theme, "background", "text", "quiet", "edge", "query", "key", "picked", "failed"
            ),
        },
        on_pick_change=takes_position("token_strip", "pick", len(tokens), on_pick),
        on_mask_change=takes_position("token_strip", "mask", len(tokens), on_mask),
    )
