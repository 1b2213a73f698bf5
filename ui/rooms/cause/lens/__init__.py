"""What would the model predict if it stopped after each layer? The logit lens, and what each head adds to the answer."""

from collections.abc import Callable
from typing import Any

from ui.part import Block, Part, Picture, Row, Sheet
from ui.rooms.cause.lens import added_parts, answers
from ui.rooms.cause.lens.added_parts import lens_lines, run_of, set_lens_lines
from ui.shell.head_names import find_probes


def _sheet(first_term: str, python: Callable[[Any], str], csv: Callable[[Any], bytes], **more: Any) -> Sheet:
    return Sheet(
        controls=answers.controls,
        screen=answers.screen_of,
        finding=answers.finding,
        rows=(
            answers.without_head,
            Row(
                Picture(
                    "lens_grid",
                    "Answers after each layer",
                    "cell colour: probability of the most likely token after each layer, or similarity with the last state",
                    answers.grid,
                ),
                answers.of_token,
                widths=(3, 1),
                beside="lens_grid",
            ),
            Picture(
                "lens_followed",
                "Chosen answers",
                "lines: the chosen tokens after each layer, by logit difference, probability and rank",
                answers.followed,
            ),
            Block(
                added_parts.added,
                (
                    Picture(
                        "lens_heads",
                        "What each head adds",
                        "cells: what each head adds to the answer directly",
                    ),
                    Picture(
                        "lens_layer_parts",
                        "What each layer adds",
                        "bar height: what the embedding, and the heads and the MLP of each layer, add to the answer directly",
                    ),
                ),
            ),
            find_probes,
        ),
        terms=(first_term, "Direct effect", "Residual stream", "Layer", "Head"),
        python=python,
        csv=csv,
        **more,
    )


PART = Part(
    name="Lens",
    address="lens",
    question="What would the model predict if it stopped after each layer?",
    predicts="tokens",
    sheets=(
        _sheet(
            "Logit lens",
            lambda screen: set_lens_lines(screen.view),
            lambda screen: added_parts.set_csv(run_of(screen.view)),
            when=added_parts.is_averaged,
            numbers="Direct effects over the pairs",
        ),
        _sheet(
            "Cosine similarity",
            lens_lines,
            lambda screen: screen.answers.csv(),
            when=lambda view: not answers.has_head(view),
            numbers="Answers",
        ),
        _sheet("Logit lens", lens_lines, lambda screen: screen.answers.csv(), numbers="Answers"),
    ),
)
