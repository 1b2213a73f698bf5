"""Text in which every character is visible, for labels: signs for spaces, codes for characters without a glyph."""

import unicodedata

SPACE = "\N{OPEN BOX}"
"""Stands for a space that belongs to a token, as in typography; tokenizers write it "Ġ" (GPT-2) or "▁" (SentencePiece)."""

_SIGNS = {"\n": "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}", "\t": "\N{RIGHTWARDS ARROW TO BAR}"}
_WITHOUT_GLYPH = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Zs"}
"""Controls, format characters, private use, surrogates and separators. Characters newer than Python's table (Cn) may have a
glyph."""
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
"""Characters that change the shape of their neighbours: visible within a text, not alone."""


def visible(text: str) -> str:
    """The text with a sign or code in place of each character that has no glyph: "↵", "⇥", "U+0010". Spaces stay.

    All that is left is allowed in XML 1.0 (section 2.2, Char); with other characters neither SVG nor PNG can be made.
    """
    if text and not text.strip(JOINERS):
        return "".join(map(_code, text))
    return "".join(map(_visible, text))


def as_label(text: str) -> str:
    """The text of a token as it is shown: visible, with "␣" for its spaces."""
    return visible(text).replace(" ", SPACE)


def bare(label: str) -> str:
    """The label without the spaces that belong to it, for telling whether two tokens are the same word."""
    return label.strip(SPACE)


def _visible(character: str) -> str:
    if character.isprintable() or character in JOINERS:  # of spaces only " " is printable
        return character
    if character in _SIGNS:
        return _SIGNS[character]
    is_hidden = unicodedata.category(character) in _WITHOUT_GLYPH or _is_noncharacter(character)
    return _code(character) if is_hidden else character


def _is_noncharacter(character: str) -> bool:
    """Source: Unicode Standard 16.0, section 23.7."""
    return 0xFDD0 <= ord(character) <= 0xFDEF or ord(character) & 0xFFFE == 0xFFFE


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"
