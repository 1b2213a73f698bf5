"""Python that does what “Patching” shows."""

from attnviz.effects.prompts import PromptSet
from ui.runtime.patches import Patches
from ui.shell.export.recipe import call, named, read, set_lines, trace_lines, unless
from ui.shell.view import View


def patching_lines(view: View, outcome: object, text: str, patches: Patches) -> str:
    """Python that patches states from one text into another, as on the page Patching, and draws the shares."""
    function, module, end = "patch", "patching", list[str]()
    is_to_head = patches.end is not None and patches.end.head is not None
    side = "key" if patches.carried in ("key", "value") else "query"
    places = {"layer": patches.layer, "position": patches.position}
    at = named({name: place for name, place in places.items() if place is not None})
    carried = call(kind=view.selection.kind and view.kind, carried=unless("layer", patches.carried))
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
            *trace_lines(view),
            f"donor = model.trace({read(view, text)})",
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
    at = named({name: place for name, place in places.items() if place is not None})
    end = _path_end(patches)
    more = ", ".join(filter(None, [end or call(carried=unless("layer", patches.carried)), at]))
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
            *set_lines(view, prompts),
            f"patched = [{function}(model, *prepared(model, pair){', ' * bool(more)}{more}) for pair in prompts.pairs]",
            "over = mean_patches(patched)",
            "first = prompts.pairs[0]",
            "tokens = model.tokenize(first.clean, template=first.template)",
            "draw_patching(over.mean, tokens, tokens, spread=over.changes.spread).show()",
            "",
        ]
    )


def _path_end(patches: Patches) -> str:
    """The end of a path; empty for none."""
    if patches.end is None:
        return ""
    head = patches.end.head
    return f"PathEnd({'' if head is None else f'head=Head{tuple(head)}, role={patches.end.role!r}'})"
