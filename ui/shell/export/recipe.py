"""The few lines of attnviz that draw the matrix or the map on screen, for a notebook or a script.

Typed text is written as a literal, never as code.
"""

from collections.abc import Mapping
from typing import Any

from attnviz.effects.outcome import TokenAnswer
from attnviz.effects.prompts import PromptSet
from attnviz.records import Axis
from ui.choice.selection import LANGUAGES
from ui.limits import TOKENS
from ui.runtime import cache
from ui.runtime.patches import Patches
from ui.shell.view import View


def python_lines(view: View, key: int) -> str:
    """Python that draws the matrix of the selected head as it is shown, with this key selected."""
    selection = view.selection
    kind = f"{view.kind!r}" if selection.kind else ""
    lines = ["import attnviz", *_trace_lines(view)]
    place = _call(*selection.place, kind=selection.kind)
    measure = "" if view.measure == "weights" else f", measure={view.measure!r}"
    lines.append(f"pattern = trace.pattern({place}{measure})")
    if _is_arranged(view):
        lines.insert(1, "from attnviz.records import Axis")
        for name, tokens in (("queries", "query_tokens"), ("keys", "key_tokens")):
            lines.append(f"{name} = Axis.of(trace.{tokens}({kind}){_unit(view)}){_left(view, name)}")
        lines.append(
            f"pattern = pattern.arranged(queries, keys{', renormalise=True' * view.is_renormalised})"
        )
    drawn = _call(show=_unless("weights", selection.show), colour=_unless("linear", selection.colour))
    drawn = f"{drawn}, " if drawn else ""
    end = view.colour_end(view.pattern())
    drawn += "" if end is None else f"largest={end:.4g}, "
    lines.append(f"figure = attnviz.figures.draw_pattern(pattern, {drawn}picked=({view.query}, {key}))")
    return "\n".join([*lines, "figure.show()", ""])


def map_lines(view: View, picked: tuple[int, int], settings: Mapping[str, object]) -> str:
    """Python that draws the map of the selected head with these settings of `attnviz.project`.

    The map keeps its own orientation; it is not aligned with another head's.
    """
    selection = view.selection
    place = _call(*selection.place, kind=selection.kind)
    lines = ["import attnviz", *_trace_lines(view)]
    lines.append(f"projection = attnviz.project(trace, {place}, {_named(settings)})")
    lines.append(f"weights = trace.weights({place})")
    drawn = _call(side=_unless("query", selection.lines_of), tint=_unless("role", selection.maps.tint))
    drawn = f", {drawn}" if drawn and selection.maps.tint != "norm" else ""
    lines.append(f"figure = attnviz.figures.draw_projection(projection, weights, picked={picked}{drawn})")
    return "\n".join([*lines, "figure.show()", ""])


def _read(view: View, text: str, **named: Any) -> str:
    """Arguments that read a text with the settings and the second sentence on screen."""
    selection = view.selection
    second = [selection.second] if selection.second.strip() else []
    cut = {"cut": True, "max_tokens": TOKENS} if selection.cut else {}
    languages = {name: selection.value(name) for name in LANGUAGES}
    template = _unless("plain", selection.template)
    return _call(text, *second, **languages, template=template, **cut, **named)


def _trace_lines(view: View) -> list[str]:
    selection = view.selection
    if selection.bundle:
        return [
            "from pathlib import Path",
            "",
            'trace = attnviz.read_bundle(Path("bundle.zip").read_bytes()).trace',
        ]
    source = view.trace.provenance
    return [
        "",
        f"model = attnviz.load_model({selection.model!r})  # revision {source.revision}, attnviz "
        f"{source.versions['attnviz']}",
        f"trace = model.trace({_read(view, selection.text, masked=list(selection.masked))})",
    ]


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


def _unless(usual: str, chosen: str) -> str:
    return "" if chosen == usual else chosen


def _call(*values: object, **named: object) -> str:
    """Arguments as code, without empty ones."""
    written = [repr(value) for value in values]
    return ", ".join([*written, *(f"{name}={value!r}" for name, value in named.items() if value)])


def _named(settings: Mapping[str, object]) -> str:
    """Keyword arguments as code, with those that are empty or 0."""
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def effects_lines(view: View, outcome: object) -> str:
    """Python that switches off every head, as in “Heads off”, and lists the largest effects."""
    kind = f"kind={view.kind!r}" if view.selection.kind else ""
    imports, means, given = _mean_lines(view)
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.ablation import ablate_heads",
            "from attnviz.effects.outcome import measured, outcome_from",
            *imports,
            *_trace_lines(view),
            f"outcome = measured(model, trace, outcome_from({str(outcome)!r}))",
            *means,
            f"effects = ablate_heads({', '.join(filter(None, ['model, trace, outcome', kind, given]))})",
            "for head in effects.ranked()[:8]:",
            "    print(head.words, effects.effects[head])",
            "",
        ]
    )


def ablated_set_lines(view: View, prompts: PromptSet) -> str:
    """Python that switches off every head on every pair of a set, as in “Heads off”, and lists the largest mean effects."""
    imports, means, given = _mean_lines(view)
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.ablation import ablate_heads",
            "from attnviz.effects.over_pairs import mean_head_effects",
            "from attnviz.effects.prompts import checked_prompts, prepared, read_prompts",
            *imports,
            *_set_lines(view, prompts),
            *means,
            "effects = []",
            "for pair in prompts.pairs:",
            "    clean, corrupted, outcome = prepared(model, pair)",
            f"    effects.append(ablate_heads({', '.join(filter(None, ['model, clean, outcome', given]))}))",
            "over = mean_head_effects(effects)",
            "for head in over.mean.ranked()[:8]:",
            "    print(head.words, over.effects.mean[head], over.effects.spread[head])",
            "",
        ]
    )


def _mean_lines(view: View) -> tuple[list[str], list[str], str]:
    """Imports and lines that compute mean head outputs, and the argument that passes them; empty for zeros."""
    chosen = view.selection.effects
    if chosen.ablation == "zero":
        return [], [], ""
    own = chosen.references.strip()
    imports = ["from attnviz.effects.mean_outputs import mean_outputs"]
    imports += [] if own else ["from attnviz.maps.collection import bundled"]
    texts = repr(own.splitlines()) if own else "bundled().splitlines()"
    return imports, [f"means = mean_outputs(model, {texts})"], "means=means"


def patching_lines(view: View, outcome: object, text: str, patches: Patches) -> str:
    """Python that patches states from one text into another, as on the page Patching, and draws the shares."""
    function, module, end = "patch", "patching", list[str]()
    is_to_head = patches.end is not None and patches.end.head is not None
    side = "key" if patches.carried in ("key", "value") else "query"
    places = {"layer": patches.layer, "position": patches.position}
    at = _named({name: place for name, place in places.items() if place is not None})
    carried = _call(kind=view.selection.kind and view.kind, carried=_unless("layer", patches.carried))
    if patches.end is not None:
        function, module = "patch_paths", "path_patching"
        end, carried = [_path_end(patches)], ""
    given = ", ".join(filter(None, ["model, trace, donor, outcome", *end, carried, at]))
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.outcome import measured, outcome_from",
            *(["from attnviz.effects.patching import PathEnd"] if end else []),
            f"from attnviz.effects.{module} import {function}",
            "from attnviz.figures.patching import draw_patching",
            *(["from attnviz.records import Head"] if is_to_head else []),
            *_trace_lines(view),
            f"donor = model.trace({_read(view, text)})",
            f"outcome = measured(model, trace, outcome_from({str(outcome)!r}))",
            f"patched = {function}({given})",
            f"tokens = trace.{side}_tokens({view.kind!r}), donor.{side}_tokens({view.kind!r})",
            "draw_patching(patched, *tokens).show()",
            "",
        ]
    )


def patched_set_lines(view: View, prompts: PromptSet, patches: Patches) -> str:
    """Python that patches every pair of a set, as on the page Patching, and draws the mean."""
    places = {"layer": patches.layer, "position": patches.position}
    at = _named({name: place for name, place in places.items() if place is not None})
    end = _path_end(patches)
    named = ", ".join(filter(None, [end or _call(carried=_unless("layer", patches.carried)), at]))
    function, module = ("patch_paths", "path_patching") if end else ("patch", "patching")
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.over_pairs import mean_patches",
            *(["from attnviz.effects.patching import PathEnd"] if end else []),
            f"from attnviz.effects.{module} import {function}",
            "from attnviz.effects.prompts import checked_prompts, prepared, read_prompts",
            "from attnviz.figures.patching import draw_patching",
            *(["from attnviz.records import Head"] if end else []),
            *_set_lines(view, prompts),
            f"patched = [{function}(model, *prepared(model, pair){', ' * bool(named)}{named}) for pair in prompts.pairs]",
            "over = mean_patches(patched)",
            "first = prompts.pairs[0]",
            "tokens = model.tokenize(first.clean, template=first.template)",
            "draw_patching(over.mean, tokens, tokens, spread=over.changes.spread).show()",
            "",
        ]
    )


def _set_lines(view: View, prompts: PromptSet) -> list[str]:
    """The lines that load the model and the usable pairs of a set."""
    template = _unless("plain", view.selection.template)
    return [
        "",
        f"model = attnviz.load_model({view.selection.model!r})",
        f"prompts = checked_prompts(model, read_prompts({_call(prompts.csv().decode('utf-8-sig'), template=template)}))",
        'print(*prompts.refused, sep="\\n")',
    ]


def _path_end(patches: Patches) -> str:
    """The end of a path; empty for none."""
    if patches.end is None:
        return ""
    head = patches.end.head
    return f"PathEnd({'' if head is None else f'head=Head{tuple(head)}, role={patches.end.role!r}'})"


def lens_lines(view: View, position: int, answer: TokenAnswer | None) -> str:
    """Python for the lens, as on the page Lens, and the direct attribution of the answer at a token, or of its last state."""
    source = view.selection.source
    has_head = cache.model(source.model).head is not None
    apart, asked = "attribute_state", f"{position}"
    if answer is not None:
        at = answer.place(len(view.trace.last_tokens))
        apart, asked = "attribute_token", _call(at, answer.token, against=answer.against)
    compute, draw = ("lens", "draw_lens") if has_head else ("layer_similarities", "draw_layer_similarities")
    return "\n".join(
        [
            "import attnviz",
            f"from attnviz.effects.lens import {compute}",
            f"from attnviz.effects.logit_attribution import {apart}",
            f"from attnviz.figures.lens import {draw}",
            *_trace_lines(view),
            f"{draw}({compute}(model, trace), trace.last_tokens).show()",
            f"parts = {apart}(model, trace, {asked})",
            "for head in parts.ranked()[:8]:",
            "    print(head.words, parts.heads[head])",
            "",
        ]
    )


def attributed_set_lines(view: View, prompts: PromptSet) -> str:
    """Python that attributes the outcome of every pair of a set, as on the page Lens, and draws the means layer by layer."""
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.logit_attribution import attribute_token",
            "from attnviz.effects.over_pairs import mean_direct_effects",
            "from attnviz.effects.prompts import checked_prompts, prepared, read_prompts",
            "from attnviz.figures.lens import draw_layer_parts",
            *_set_lines(view, prompts),
            "parts = []",
            "for pair in prompts.pairs:",
            "    clean, corrupted, measure = prepared(model, pair)",
            "    answer = measure.outcome",
            "    parts.append(attribute_token(model, clean, answer.position, answer.token, against=answer.against))",
            "over = mean_direct_effects(parts)",
            "for head in over.mean.ranked()[:8]:",
            "    print(head.words, over.heads.mean[head], over.heads.spread[head])",
            "draw_layer_parts(over.mean, over=over).show()",
            "",
        ]
    )


def inputs_lines(view: View, outcome: object) -> str:
    """Python that attributes the outcome to the tokens, as on the page Inputs, and deletes them in each order."""
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.deletion import deletion_curves, random_orders",
            "from attnviz.effects.input_attribution import attribute_inputs",
            "from attnviz.effects.outcome import outcome_from",
            *_trace_lines(view),
            f"outcome = outcome_from({str(outcome)!r})",
            "attributions = attribute_inputs(model, trace, outcome)",
            "for attribution in attributions:",
            "    print(attribution.method, attribution.values)",
            f"chance = random_orders(model, trace, outcome, seed={view.selection.seed})",
            "deletion = deletion_curves(model, trace, outcome, attributions, chance)",
            "for curve in deletion.curves:",
            "    print(curve.method, curve.comprehensiveness, curve.sufficiency, curve.n_as_good)",
            "",
        ]
    )


def generation_lines(view: View, picks: Mapping[int, int]) -> str:
    """Python that continues the sentence, as in the room Generate, and draws the selected head over all of it.

    Args:
        picks: ids of the tokens that were picked by hand, by step from 0.
    """
    selection, chosen = view.selection, view.selection.generation
    named: dict[str, object] = {"n_tokens": chosen.tokens}
    if chosen.temperature:
        named |= {"temperature": chosen.temperature, "seed": selection.seed}
    if picks:
        named |= {"n_tokens": max(chosen.tokens, *(step + 1 for step in picks)), "picks": dict(picks)}
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.model.continuation import continue_text",
            *_trace_lines(view),
            f"continuation = continue_text(model, trace.tokens, {_named(named)})",
            "print(continuation.written)",
            f"attnviz.figures.draw_heatmap(continuation.trace, {_call(*selection.place)}).show()",
            "",
        ]
    )
