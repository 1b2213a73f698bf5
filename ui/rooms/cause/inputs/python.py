"""Python that does what “Inputs” shows."""

from ui.shell.export.recipe import trace_lines
from ui.shell.view import View


def inputs_lines(view: View, outcome: object) -> str:
    """Python that attributes the outcome to the tokens, as on the page Inputs, and deletes them in each order."""
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.deletion import deletion_curves, random_orders",
            "from attnviz.effects.input_attribution import attribute_inputs",
            "from attnviz.effects.outcome import outcome_from",
            *trace_lines(view),
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
