"""The caption of an exported picture: its text, model, head, what its colours or lines mean, how reliable a map is.

One concept: what a picture says about itself once it has left its page. Plain text; nothing on screen changes.
"""

import unicodedata

import attnviz
from ui.page.view import View

_NUMBERS = {
    "weights": "attention weight",
    "scores": "attention score",
    "norms": "norm-based weight",
    "rollout": "rollout",
}
_LINES = "line thickness: attention weight"
_MASKED = "cell colour: attention weight"


def caption(view: View, key: str, name: str, about: str = "", note: str = "") -> list[str]:
    """The paragraphs below a picture: the text, then where it is from and what it shows.

    Args:
        key: of the picture's element.
        name: what the picture is called.
        about: what else it shows, such as the other side of a comparison.
        note: of a map, how it was made and how reliable it is.
    """
    tokens, target = view.trace.tokens, view.trace.target_tokens
    second = target.text if target else tokens.text_pair
    text = " / ".join(plain(one) for one in (tokens.text, second) if one)
    masked = ", ".join(f"“{plain(label)}” (token {at})" for at, label in tokens.masked.items())
    selection = view.selection
    parts = [
        name,
        view.trace.provenance.model,
        f"layer {selection.layer}, head {selection.head}",
        f"masked: {masked}" if masked else "",
        _meaning(view, key),
        about,
        note.rstrip("."),
        f"attnviz {attnviz.__version__}",
    ]
    return [f"“{text}”", " · ".join(plain(one) for one in parts if one)]


def _meaning(view: View, key: str) -> str:
    """What colour, length or thickness means in the picture of this key; empty where its axes say it."""
    selection = view.selection
    number = _NUMBERS[selection.show]
    logarithmic = ", logarithmic" * (selection.colour == "logarithmic" and selection.show != "scores")
    measured = _NUMBERS[view.measure]
    return {
        "matrix": f"cell colour: {number}{logarithmic}",
        "ranking": f"bar length: {measured}",
        "map": _LINES,
        "space_map": _LINES,
        "door_map": _LINES,
        "door_map_other": _LINES,
        "token_flow": f"line thickness: {measured}",
        "compare_first": f"cell colour: {measured}",
        "compare_second": f"cell colour: {measured}",
        "compare_difference": f"cell colour: {measured} of B minus that of A",
        "head_grid": f"cells: {measured} of each head",
        "map_grid": "line thickness: attention weight of each head",
        "errors": "cell colour: largest difference from the model's attention weights",
        "mask_before": _MASKED,
        "mask_after": _MASKED,
        "mask_effect": "change by the mask",
    }.get(key, "")


def plain(text: str) -> str:
    """Text on one line, without control characters, which no picture can hold."""
    shown = (" " if one.isspace() else one for one in text)
    return " ".join("".join(one for one in shown if unicodedata.category(one) not in ("Cc", "Cs")).split())
