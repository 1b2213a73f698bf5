"""Which tokens does the outcome depend on? All methods on one sheet, and which of them is right for this sentence."""

from ui.part import Block, Part, Picture, Sheet
from ui.rooms.cause.inputs.attributions import as_csv, controls, finding, inputs_lines, screen_of, sheet
from ui.rooms.cause.inputs.removed_tokens import removed_tokens

PART = Part(
    name="Inputs",
    address="inputs",
    question="Which tokens does the outcome depend on?",
    asks=("sentence",),
    terms=(
        "Attribution",
        "Integrated gradients",
        "Attribution by Shapley values",
        "DecompX",
        "ALTI-Logit",
        "Norm-based weight",
        "Rollout",
        "Attention flow",
        "ALTI",
        "Value zeroing",
        "Outcome",
    ),
    sheets=(
        Sheet(
            controls=controls,
            screen=screen_of,
            finding=lambda screen: finding(screen.first, screen.tokens),
            rows=(
                Picture(
                    "inputs_sheet",
                    "Attributions",
                    "cell colour: what a token adds to the outcome, each column on a scale of its own",
                    sheet,
                ),
                Block(
                    removed_tokens,
                    (
                        Picture(
                            "inputs_deletion",
                            "Deletion curves",
                            "lines: outcome while tokens are removed, most important first; band: 90% of random orders",
                        ),
                    ),
                ),
            ),
            numbers="Attributions",
            csv=as_csv,
            python=lambda screen: inputs_lines(screen.view, screen.outcome, screen.n_permutations),
            about=lambda screen: f"outcome: {screen.measured}",
        ),
    ),
)
