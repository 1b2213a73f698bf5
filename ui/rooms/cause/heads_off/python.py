"""Python that does what “Heads off” shows."""

from attnviz.effects.prompts import PromptSet
from ui.rooms.cause.heads_off.choices import EffectsSettings
from ui.shell.export.recipe import set_lines, trace_lines
from ui.shell.view import View


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
            *trace_lines(view),
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
            *set_lines(view, prompts),
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
    chosen = view.selection.of(EffectsSettings)
    if chosen.ablation == "zero":
        return [], [], ""
    own = chosen.references.strip()
    imports = ["from attnviz.effects.mean_outputs import mean_outputs"]
    imports += [] if own else ["from attnviz.maps.collection import bundled"]
    texts = repr(own.splitlines()) if own else "bundled().splitlines()"
    return imports, [f"means = mean_outputs(model, {texts})"], "means=means"
