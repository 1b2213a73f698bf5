"""The few lines of attnviz that draw the matrix or the map on screen, for a notebook or a script.

Typed text is written as a literal, never as code.
"""

from collections.abc import Mapping
from typing import Any

from attnviz.effects.prompts import PromptSet
from attnviz.records import MIXINGS, Axis
from ui.choice.selection import LANGUAGES
from ui.limits import TOKENS
from ui.shell.view import View


def python_lines(view: View, key: int) -> str:
    """Python that draws the matrix of the selected head as it is shown, with this key selected."""
    selection = view.selection
    kind = f"{view.kind!r}" if selection.kind else ""
    lines = ["import attnviz", *trace_lines(view)]
    place = call(*selection.place, kind=selection.kind)
    if view.trace.is_long(view.kind):
        return "\n".join([*lines, f"trace.show({place}, query={view.query}, key={key})", ""])
    if view.measure in MIXINGS:
        layer = selection.layer
        lines.append(f"pattern = attnviz.{view.measure}(model, trace, layers=[{layer}]).pattern({layer})")
    else:
        measure = "" if view.measure == "weights" else f", measure={view.measure!r}"
        lines.append(f"pattern = trace.pattern({place}{measure})")
    if _is_arranged(view):
        lines.insert(1, "from attnviz.records import Axis")
        for name, tokens in (("queries", "query_tokens"), ("keys", "key_tokens")):
            lines.append(f"{name} = Axis.of(trace.{tokens}({kind}){_unit(view)}){_left(view, name)}")
        lines.append(
            f"pattern = pattern.arranged(queries, keys{', renormalise=True' * view.is_renormalised})"
        )
    drawn = call(show=unless("weights", selection.show), colour=unless("linear", selection.colour))
    drawn = f"{drawn}, " if drawn else ""
    end = view.colour_end(view.pattern())
    drawn += "" if end is None else f"largest={end:.4g}, "
    lines.append(f"figure = attnviz.figures.draw_pattern(pattern, {drawn}picked=({view.query}, {key}))")
    return "\n".join([*lines, "figure.show()", ""])


def read(view: View, text: str, **named: Any) -> str:
    """Arguments that read a text with the settings and the second sentence on screen."""
    selection = view.selection
    second = [selection.second] if selection.second.strip() else []
    cut = {"cut": True, "max_tokens": TOKENS} if selection.cut else {}
    languages = {name: selection.value(name) for name in LANGUAGES}
    template = unless("plain", selection.template)
    return call(text, *second, **languages, template=template, **cut, **named)


def trace_lines(view: View) -> list[str]:
    selection = view.selection
    if selection.bundle:
        return [
            "from pathlib import Path",
            "",
            'trace = attnviz.read_bundle(Path("bundle.zip").read_bytes()).trace',
        ]
    source = view.trace.provenance
    text, lines = selection.text, [""]
    if view.trace.is_long(view.kind):
        text, lines = (
            _Name("text"),
            [
                "from pathlib import Path",
                "",
                'text = Path("text.txt").read_text(encoding="utf-8")  # the sentence on screen',
            ],
        )
    return [
        *lines,
        f"model = attnviz.load_model({selection.model!r})  # revision {source.revision}, attnviz "
        f"{source.versions['attnviz']}",
        f"trace = model.trace({read(view, text, masked=list(selection.masked))})",
    ]


class _Name(str):
    """A name in code, which is written as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def _is_arranged(view: View) -> bool:
    tokens = view.query_tokens, view.key_tokens
    return any(
        axis.spans.tolist() != Axis.of(tokens_of_axis).spans.tolist()
        for axis, tokens_of_axis in zip((view.queries, view.keys), tokens, strict=True)
    )


def _unit(view: View) -> str:
    return "" if view.selection.unit == "tokens" else f", {view.selection.unit!r}"


def _left(view: View, side: str) -> str:
    """The calls that leave entries out of an axis."""
    taken = ".without_special()" * view.hides_special + ".without_first()" * view.hides_first
    if view.selection.sentences != "all":
        of_query, of_key = view.selection.sentences.split(" → ")
        taken += f".of_segment({'AB'.index(of_query if side == 'queries' else of_key)})"
    return taken


def unless(usual: str, chosen: str) -> str:
    return "" if chosen == usual else chosen


def call(*values: object, **named: object) -> str:
    """Arguments as code, without empty ones."""
    written = [repr(value) for value in values]
    return ", ".join([*written, *(f"{name}={value!r}" for name, value in named.items() if value)])


def named(settings: Mapping[str, object]) -> str:
    """Keyword arguments as code, with those that are empty or 0."""
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def set_lines(view: View, prompts: PromptSet) -> list[str]:
    """The lines that load the model and the usable pairs of a set."""
    template = unless("plain", view.selection.template)
    return [
        "",
        f"model = attnviz.load_model({view.selection.model!r})",
        f"prompts = checked_prompts(model, read_prompts({call(prompts.csv().decode('utf-8-sig'), template=template)}))",
        'print(*prompts.refused, sep="\\n")',
    ]
