"""Python that does what “Generate” shows."""

from collections.abc import Mapping

from ui.rooms.generate.choices import GenerationSettings
from ui.shell.export.recipe import call, named, trace_lines
from ui.shell.view import View


def generation_lines(view: View, picks: Mapping[int, int]) -> str:
    """Python that continues the sentence, as in the room Generate, and draws the selected head over all of it.

    Args:
        picks: ids of the tokens that were picked by hand, by step from 0.
    """
    selection, chosen = view.selection, view.selection.of(GenerationSettings)
    given: dict[str, object] = {"n_tokens": chosen.tokens}
    if chosen.temperature:
        given |= {"temperature": chosen.temperature, "seed": selection.seed}
    if picks:
        given |= {"n_tokens": max(chosen.tokens, *(step + 1 for step in picks)), "picks": dict(picks)}
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.model.continuation import continue_text",
            *trace_lines(view),
            f"continuation = continue_text(model, trace.tokens, {named(given)})",
            "print(continuation.written)",
            f"attnviz.figures.draw_heatmap(continuation.trace, {call(*selection.place)}).show()",
            "",
        ]
    )
