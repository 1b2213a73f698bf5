"""The BibTeX entry for what is on screen: attnviz and its version, with the model, the text and the head in its note.

Typed text is escaped, so it is never read as LaTeX.
"""

from datetime import date

import attnviz
from ui.shell.export.captions import plain
from ui.shell.view import View

_MOST_WORDS, _MOST_CHARACTERS = 8, 80  # of the text
# BibTeX counts escaped braces too, so braces are written as commands.
_ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",
    "}": r"\textbraceright{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
} | {character: f"\\{character}" for character in "$&#%_"}


def bibtex(view: View) -> str:
    """An entry of type @software; its year is the year of citing, since no version was released."""
    source, selection = view.trace.provenance, view.selection
    note = (
        f"Model {escaped(source.model)}, revision {escaped(source.revision)}; "
        f"text ``{escaped(_beginning(view.trace.tokens.text))}''; layer {selection.layer}, head {selection.head}"
    )
    return (
        "@software{attnviz,\n"
        "  author = {{The attnviz developers}},\n"
        "  title = {attnviz},\n"
        f"  version = {{{attnviz.__version__}}},\n"
        f"  year = {{{date.today().year}}},\n"
        f"  note = {{{note}}}\n"
        "}\n"
    )


def escaped(text: str) -> str:
    """Text on one line, with every character escaped that is special in BibTeX or LaTeX."""
    return "".join(_ESCAPED.get(character, character) for character in plain(text))


def _beginning(text: str) -> str:
    words = text.split()
    beginning = " ".join(words[:_MOST_WORDS])
    is_cut = len(words) > _MOST_WORDS or len(beginning) > _MOST_CHARACTERS
    return beginning[:_MOST_CHARACTERS] + "…" * is_cut
