"""The viewer as a page of HTML that holds all it shows, opens from a folder, and never asks a network for anything."""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from plotly import graph_objects as go

from attnviz.arguments import typed
from attnviz.figures.heatmap import Shown
from attnviz.figures.theme import FONT, THEMES
from attnviz.records import Kind, VerificationReport
from attnviz.viewer import SCRIPTS, joined, style
from attnviz.viewer.below import facts_html, figures_html
from attnviz.viewer.held import Question, answers_of, held_of, selection_of
from attnviz.viewer.tiles import Overview, Pool

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

Look = Literal["light", "dark", "auto"]
"""A theme, or the one that the reader's system has."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
"""The page may run only its own scripts; the browser blocks every connection.

Source: W3C, Content Security Policy Level 3, section 6.1.
"""
_MOST_TITLED = 400  # characters of a text as a title
_HEIGHT = 760  # px of a frame around the page

_INDENTED = re.compile(r"^[ \t]+", re.MULTILINE)
"""Says nothing to a browser, and is a tenth of a page."""

_PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="$scheme">
<title>$title</title>
<style>
$colours
$style</style>
</head>
<body>
<h1>$title</h1>
<div id="stage"></div>
$note
<div class="below">
$below
</div>
<script type="application/json" id="held">$held</script>
<script type="module">
$script</script>
</body>
</html>
""")


@dataclass(frozen=True, slots=True)
class StagePage:
    """A page that a notebook shows in a frame, where the widget cannot be had."""

    html: str

    def _repr_html_(self) -> str:
        return framed(self.html)


def framed(page: str) -> str:
    """The page in a frame of its own, which can reach nothing around it."""
    text = page.replace("&", "&amp;").replace("'", "&#39;")
    look = f"width: 100%; height: {_HEIGHT}px; border: 0; resize: vertical"
    return f"<iframe sandbox='allow-scripts allow-downloads allow-modals' title='attnviz' style='{look}' srcdoc='{text}'></iframe>"


@typed
def stage_page(
    trace: "Trace",
    *,
    layer: int,
    head: int,
    kind: Kind | None = None,
    query: int | None = None,
    key: int | None = None,
    title: str | None = None,
    theme: Look = "auto",
    facts: Sequence[tuple[str, str]] = (),
    report: VerificationReport | None = None,
    more: Mapping[str, go.Figure | str] | None = None,
    choices: Mapping[str, Any] | None = None,
    visited: Sequence[Question] = (),
    read: Callable[[int, int, Shown, Pool], Overview] | None = None,
) -> str:
    """HTML of the stage, whose head, query, key and options can be changed, with facts and a recorded verdict below.

    All heads are in it, or the selected one alone where they take more than `attnviz.viewer.data.MOST_BYTES`. The weights are;
    other measures as far as `attnviz.viewer.held.MOST_PACKED` allows. Texts are shown literally.

    Args:
        title: the text by default.
        query: position of the selected query; None for the one with the largest weight between tokens that are not special.
        key: position of the selected key; None for the strongest.
        facts: names and texts.
        report: the recorded verdict, whose checks are listed in a table.
        more: other figures by title, of Plotly or as SVG, which are drawn below.
        choices: the rest of the selection, by its names in docs/viewer.md.
        visited: `attnviz.viewer.held.noted` of what a viewer of this trace has asked; of a long text the page holds the overview and
            these places.
        read: what gives an `attnviz.viewer.tiles.overview` of this trace, where overviews are remembered.

    Raises:
        SelectionError: no such layer, head, kind, query or key.
    """
    selection = selection_of(trace, layer, head, kind, query=query, key=key, choices=choices)
    document, blocks = held_of(trace, kind, selection)
    is_tiled, is_alone = trace.is_long(kind), document["cells"]["heads"] != "all"
    note = f"This page holds layer {layer}, head {head} alone: the numbers of all heads of this text would take too much room."
    missing = {
        "head": note,
        "measure": "This page does not hold these numbers.",
        "pair": "This page holds no vectors. How a number comes about is shown where the model is.",
        "tiles": "This page holds the overview of this head and the places that were looked at before it was saved; others are shown where "
        "the model is.",
        "lines": "This page does not hold this row and this column.",
    }
    held = {
        "document": document,
        "blocks": blocks,
        "answers": answers_of(trace, kind, selection, visited, read) if is_tiled else [],
        "selection": selection,
        "theme": theme,
        "missing": missing,
    }
    return _PAGE.substitute(
        policy=CONTENT_POLICY,
        scheme="light dark" if theme == "auto" else theme,
        title=escape(title or _beginning(trace.tokens.text)),
        colours=_colours(theme),
        style=_INDENTED.sub("", style() + own_file("page.css")),
        note=f'<p class="held">{note}</p>' if is_alone else "",
        below=figures_html(more or {}) + "\n" + facts_html(facts, report),
        held=msgspec.json.encode(held).decode().replace("<", "\\u003c"),
        script=_INDENTED.sub("", joined(*SCRIPTS) + own_file("page.js")),
    )


def trace_facts(trace: "Trace") -> list[tuple[str, str]]:
    """Where the numbers of a trace come from: its texts, the model and the libraries."""
    source, tokens = trace.provenance, trace.tokens
    second = trace.target_tokens.text if trace.target_tokens else tokens.text_pair
    return [
        ("Text", _beginning(tokens.text)),
        *([("Second text", _beginning(second))] if second else []),
        ("Model", f"{source.model}, revision {source.revision}, {source.dtype}"),
        *([("Verdict", "your numbers, not compared")] if trace.is_given else []),
        ("Libraries", ", ".join(f"{name} {number}" for name, number in source.versions.items())),
    ]


def _beginning(text: str) -> str:
    """A text, or how it begins, in whole words, where it is no title."""
    return textwrap.shorten(text, _MOST_TITLED, placeholder=" …") if len(text) > _MOST_TITLED else text


def _colours(theme: Look) -> str:
    """The page's own colours as variables."""
    light, dark = (
        f":root {{ --background: {look.background}; --text: {look.text}; --quiet: {look.quiet}; --font: {FONT}; }}"
        for look in (THEMES["light"], THEMES["dark"])
    )
    if theme != "auto":
        return {"light": light, "dark": dark}[theme]
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}"


@cache
def own_file(file: str) -> str:
    """A script or style sheet of a host, as text."""
    return (Path(__file__).parent / file).read_text(encoding="utf-8")
