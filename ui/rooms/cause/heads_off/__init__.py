"""What if a head were off? Every head switched off in turn, and what happens to an outcome."""

from attnviz.figures.numbers import counted
from ui.part import Part, Picture, Row, Sheet
from ui.rooms.cause import prompts
from ui.rooms.cause.heads_off import effects_of_heads as effects
from ui.rooms.cause.heads_off.further_effects import greedy, one_by_one, weights_and_effects, zeros_and_means
from ui.rooms.cause.heads_off.shuffled_rows import KEY as SHUFFLED
from ui.rooms.cause.heads_off.shuffled_rows import shuffled_rows
from ui.rooms.cause.heads_off.switched_off import effects_lines
from ui.shell.head_names import find_probes

_CELLS = "cells: outcome without each head minus outcome of the unchanged run"
_OFF = "outcome while more and more heads are off"
_GRID = "effects_grid"

PART = Part(
    name="Heads off",
    address="effects",
    question="What if a head were off?",
    terms=("Head", "Ablation", "Outcome", "Weight", "Norm-based weight", "Shuffled row"),
    sheets=(
        Sheet(
            when=prompts.is_set,
            controls=effects.controls,
            screen=effects.set_screen_of,
            finding=effects.set_finding,
            rows=(
                Row(
                    Picture(_GRID, "Mean effects of all heads", _CELLS, effects.mean_heads),
                    effects.mean_beside,
                    widths=(3, 1),
                    beside=_GRID,
                ),
                find_probes,
            ),
            numbers="Effects over the pairs",
            csv=lambda screen: screen.mean.csv(screen.run.pairs),
            python=lambda screen: effects_lines(screen.view, prompts=screen.run.prompts),
            about=lambda screen: f"mean over {counted(screen.mean.effects.n_pair, 'pair')} of prompts",
        ),
        Sheet(
            controls=effects.controls,
            screen=effects.screen_of,
            finding=effects.finding,
            rows=(
                Row(
                    Picture(_GRID, "Effects of all heads", _CELLS, effects.all_heads),
                    effects.beside,
                    widths=(3, 1),
                    beside=_GRID,
                ),
                Row(
                    Picture("effects_greedy", "Heads off one by one", f"line: {_OFF}", greedy),
                    Picture(
                        "effects_cells",
                        "Weights and effects",
                        "a point for each cell; across: its weight; up: size of the effect of masking it",
                        weights_and_effects,
                    ),
                ),
                Row(
                    Picture(
                        "effects_removal",
                        "All heads off one by one",
                        f"lines: {_OFF}; dotted line: none is off",
                        one_by_one,
                    ),
                    Picture(
                        "effects_ablations",
                        "Zeros and means",
                        "a point for each head; dotted line: equal effects",
                        zeros_and_means,
                    ),
                ),
                Picture(
                    SHUFFLED,
                    "Rows shuffled",
                    "cells: change of the outcome while the selected query's row of each head is shuffled among its keys",
                    shuffled_rows,
                ),
                find_probes,
            ),
            numbers="Effects",
            csv=effects.csv,
            python=lambda screen: effects_lines(screen.view, screen.outcome),
            about=lambda screen: screen.measured,
        ),
    ),
)
