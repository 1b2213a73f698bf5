"""The caption of an exported picture: text, model, head, the meaning of colours or lines, the reliability of a map.

Plain text; nothing on screen changes.
"""

import textwrap

import attnviz
from attnviz.records import visible
from ui.part import Picture
from ui.shell.view import View

NUMBERS = {
    "weights": "attention weight",
    "scores": "attention score",
    "norms": "norm-based weight",
    "rollout": "rollout",
    "alti": "ALTI",
    "value_zeroing": "value zeroing",
}
"""What a cell or a line of a picture can be."""
WEIGHT = "cell colour: attention weight"
LINES = "line thickness: attention weight"
SIGNED = "cell colour: number, one tone below 0 and one above"
_AROUND = {"begin": "begin-of-text token added", "chat": "in the chat template"}
"""What was added around the text."""


MOST_QUOTED = 600
"""Characters of a text in a caption; of a longer one it quotes the beginning."""


def caption(view: View, picture: Picture, about: str = "", note: str = "") -> list[str]:
    """The paragraphs below a picture: the text, then the picture's source and what it shows.

    Args:
        about: what else it shows, such as the other side of a comparison.
        note: how a map was made and how reliable it is.
    """
    tokens, target = view.trace.tokens, view.trace.target_tokens
    second = target.text if target else tokens.text_pair
    text = " / ".join(plain(text) for text in (tokens.text, second) if text)
    masked = ", ".join(f"“{plain(label)}” (token {at})" for at, label in tokens.masked.items())
    selection = view.selection
    parts = [
        picture.name,
        view.trace.provenance.model,
        " to ".join(
            tokens_of_text.language
            for tokens_of_text in (tokens, target)
            if tokens_of_text and tokens_of_text.language
        ),
        _AROUND.get(tokens.template, ""),
        f"layer {selection.layer}, head {selection.head}",
        f"masked: {masked}" if masked else "",
        picture.meaning(view) if callable(picture.meaning) else picture.meaning,
        about,
        note.rstrip("."),
        f"attnviz {attnviz.__version__}",
    ]
    return [
        f"“{textwrap.shorten(text, MOST_QUOTED, placeholder=' …')}”",
        " · ".join(plain(part) for part in parts if part),
    ]


def measured(view: View) -> str:
    """What the cells or lines of a picture of several heads are."""
    return f"{NUMBERS[view.measure]}{', all heads' * view.is_of_layer}"


def plain(text: str) -> str:
    """Text on one line, with the code in place of each invisible character."""
    return visible(" ".join(text.split()))
