"""Python that does what “Lens” shows."""

from attnviz.effects.outcome import TokenAnswer
from attnviz.effects.prompts import PromptSet
from ui.runtime import cache
from ui.shell.export.recipe import call, set_lines, trace_lines
from ui.shell.view import View


def lens_lines(view: View, position: int, answer: TokenAnswer | None) -> str:
    """Python for the lens, as on the page Lens, and the direct attribution of the answer at a token, or of its last state."""
    source = view.selection.source
    has_head = cache.model(source.model).head is not None
    apart, asked = "attribute_state", f"{position}"
    if answer is not None:
        at = answer.place(len(view.trace.last_tokens))
        apart, asked = "attribute_token", call(at, answer.token, against=answer.against)
    compute, draw = ("lens", "draw_lens") if has_head else ("layer_similarities", "draw_layer_similarities")
    return "\n".join(
        [
            "import attnviz",
            f"from attnviz.effects.lens import {compute}",
            f"from attnviz.effects.logit_attribution import {apart}",
            f"from attnviz.figures.lens import {draw}",
            *trace_lines(view),
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
            *set_lines(view, prompts),
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
