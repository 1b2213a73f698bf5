"""Colours for the points of a map by a property other than their role, which their shape still shows."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from attnviz.figures.labels import isolated, literal
from attnviz.figures.theme import Theme, number_scale
from attnviz.records import Projection, Tokens

Tint = Literal["role", "token", "position", "position mod 5", "part of word", "norm", "special"]

BAR_TITLES = {"position": "position", "norm": "length of the vector"}
_OTHERS = "other tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tinting:
    """Colours of points, by the groups that they belong to or by a number on a scale."""

    colours: np.ndarray
    """For each point, its colour, or a number where there is a scale."""
    groups: dict[str, str]
    """Name of each group and its colour; empty where there is a scale."""
    scale: dict[str, Any]
    """The plotly settings for colours of numbers; empty where there are groups."""


def tinting(
    projection: Projection, tint: Tint, lengths: Float[np.ndarray, " point"], palette: Theme
) -> Tinting:
    """The colour of each point.

    Args:
        lengths: of the vectors, as the model has them.
    """
    if tint in BAR_TITLES:
        numbers = lengths if tint == "norm" else projection.position.astype(np.float32)
        scale = {
            "cmin": float(numbers.min()),
            "cmax": max(float(numbers.max()), float(numbers.min()) + 1e-6),
            "colorscale": number_scale(palette),
        }
        return Tinting(colours=numbers, groups={}, scale=scale)
    of_points = [
        group(projection.query_tokens if role == "query" else projection.key_tokens, int(position), tint)
        for role, position in zip(projection.role, projection.position, strict=True)
    ]
    names = [name for name, _ in Counter(of_points).most_common(len(palette.groups))]
    if tint != "token":
        names.sort()
    groups = dict(zip(names, palette.groups, strict=False))
    if set(of_points) > groups.keys():
        groups[_OTHERS] = palette.quiet
    colours = np.array([groups.get(name, palette.quiet) for name in of_points])
    return Tinting(colours=colours, groups=groups, scale={})


def group(tokens: Tokens, position: int, tint: Tint) -> str:
    """The name of the group that a token belongs to; safe for plotly."""
    is_special, continued = bool(tokens.is_special[position]), tokens.continues_word
    match tint:
        case "token":
            return isolated(literal(tokens.labels[position]))
        case "position mod 5":
            return f"position {position % 5} mod 5"
        case "special":
            return "special token" if is_special else "token of the text"
        case _:
            if is_special:
                return "special token"
            if continued[position]:
                return "further piece of a word"
            return "first piece of a word" if continued[position + 1 : position + 2].any() else "whole word"
