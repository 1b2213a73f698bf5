"""A token's way through one head as an animation, with the numbers of every stage.

A component of our own, in SVG: text stays text, readable at any size, themed and saved unchanged; positions, opacities
and lengths are animated without a library. Numbers are swapped and never counted up, so every number on screen is one
that the model computed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnviz.figures.matrices import largest_of_blocks
from attnviz.figures.numbers import number_text
from attnviz.figures.theme import FONT, THEMES, TOKEN_FONT, ThemeName, difference_scale
from ui.components import colours, register

_mount = register("head_film", "svg", "html", "measure", "film_picture", "renew")

STAGES = ("Vector", "Query, key, value", "Products", "Scaling", "Softmax", "Weighted values", "Output")
MOST_CELLS = 64
"""Most cells in a strip: 2 px each on a phone."""
_MOST_FIRST = 10
_SHARE_BELOW = 0.99
_MIDDLE = 32  # of the scale, whose ends are 0 and 64


@dataclass(frozen=True, kw_only=True)
class FilmRow:
    """One key with everything that the film shows of it."""

    label: str
    is_special: bool = False
    is_picked: bool = False
    x: Float[np.ndarray, " d_model"] | None = None
    key: Float[np.ndarray, " d_head"] | None = None
    """None for several keys together, which have no products or scores either."""
    value: Float[np.ndarray, " d_value"]
    product: float | None = None
    score: float | None = None
    """Minus infinity where the key is masked."""
    exponential: float
    """exp(score − largest score), which the softmax divides by the sum."""
    weight: float


def head_film(
    rows: Sequence[FilmRow],
    *,
    name: str,
    label: str,
    x: Float[np.ndarray, " d_model"] | None,
    query: Float[np.ndarray, " d_head"],
    output: Float[np.ndarray, " d_value"],
    total: float,
    exponentials: float,
    captions: Sequence[str],
    score: str,
    begin: int = 0,
    theme: ThemeName,
) -> None:
    """Draws the film; it begins with the second stage if ``x`` is unknown.

    Args:
        name: text alternative.
        label: of the query.
        total, exponentials: the sum of all weights, and of all exponentials.
        captions: a sentence for each of `STAGES`.
        score: how a score is written, such as "q · k / √32".
        begin: number of the first stage shown; the film returns there whenever this changes.
    """
    spans = {
        "x": darkest_from([x, *(row.x for row in rows)]),
        "q": _largest([query]),
        "k": _largest([row.key for row in rows]),
        "v": _largest([row.value for row in rows]),
    }
    largest = max(row.weight for row in rows) or 1.0
    _mount(
        key="head_film",
        data={
            "name": name,
            "first": 0 if x is not None else 1,
            "begin": begin,
            "stages": [
                {"name": stage, "caption": caption} for stage, caption in zip(STAGES, captions, strict=True)
            ],
            "query": {
                "label": label,
                "x": _strip(x, "x", f"x of {label}", spans["x"]),
                "q": _strip(query, "q", f"q of {label}", spans["q"]),
            },
            "rows": [
                {
                    "label": row.label,
                    "special": row.is_special,
                    "picked": row.is_picked,
                    "x": _strip(row.x, "x", f"x of {row.label}", spans["x"]),
                    "k": _strip(row.key, "k", f"k of {row.label}", spans["k"]),
                    "v": _strip(row.value, "v", f"v of {row.label}", spans["v"]),
                    "product": _number(row.product),
                    "score": _number(row.score),
                    "exponential": _number(row.exponential),
                    "weight": _number(row.weight),
                    "opacity": round(row.weight / largest, 4),
                }
                for row in rows
            ],
            "output": _strip(output, "v", f"output for {label}", _largest([output])),
            "total": number_text(total),
            "exponentials": number_text(exponentials),
            "score": score,
            "scale": [colour for _, colour in difference_scale(THEMES[theme])],
            "font": FONT,
            "tokenFont": TOKEN_FONT,
            "colours": colours(
                theme, "background", "text", "quiet", "edge", "query", "key", "value", "picked", "strong"
            )
            | {"falls": THEMES[theme].falls, "grows": THEMES[theme].grows},
        },
    )


def darkest_from(vectors: Sequence[np.ndarray | None]) -> float:
    """The number from which the darkest tone is used, since a few dimensions of x are many times larger than the rest.

    Source: Timkey and van Schijndel 2021 (arXiv:2109.04404), "rogue dimensions".
    """
    known = [np.abs(vector) for vector in vectors if vector is not None]
    return float(np.quantile(np.concatenate(known), _SHARE_BELOW)) or 1.0 if known else 1.0


def _largest(vectors: Sequence[np.ndarray | None]) -> float:
    return (
        max((float(np.abs(vector).max(initial=0.0)) for vector in vectors if vector is not None), default=0.0)
        or 1.0
    )


def _strip(vector: np.ndarray | None, role: str, name: str, span: float) -> Mapping[str, object] | None:
    """A vector as cells: their colours, as indices of the scale, and their numbers as text."""
    if vector is None:
        return None
    block = -(-len(vector) // MOST_CELLS)
    cells = largest_of_blocks(vector[None], 1, block)[0]
    return {
        "role": role,
        "name": name,
        "size": len(vector),
        "block": block,
        "tones": np.rint(_MIDDLE + _MIDDLE * np.clip(cells / span, -1, 1)).astype(int).tolist(),
        "texts": [number_text(float(cell)) for cell in cells],
        "first": [number_text(float(number)) for number in vector[:_MOST_FIRST]],
    }


def _number(number: float | None) -> Mapping[str, object] | None:
    """A number and its text; without a number if the key is masked."""
    if number is None:
        return None
    if not np.isfinite(number):
        return {"number": None, "text": "masked"}
    return {"number": float(f"{number:.5g}"), "text": number_text(number)}
