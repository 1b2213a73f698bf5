"""Cancelling: every call on a model ends before it is done, and its process stays with the model that it has loaded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnviz.effects import lens
from attnviz.effects.ablation import ablate, ablate_layers, remove_greedily, remove_in_order
from attnviz.effects.attribution_patching import attribute_patches
from attnviz.effects.cell_effects import mask_cells
from attnviz.effects.copying import copying_scores
from attnviz.effects.deletion import deletion_curves, random_orders
from attnviz.effects.input_attribution import attribute_inputs, available_methods
from attnviz.effects.logit_attribution import attribute_answer
from attnviz.effects.mean_outputs import mean_outputs
from attnviz.effects.outcome import TokenAnswer
from attnviz.effects.over_pairs import ablate_pair, attribute_pair, of_line
from attnviz.effects.patches import Patches, patch_pair, patch_states
from attnviz.effects.patching import PathEnd
from attnviz.effects.prompts import PromptPair
from attnviz.effects.score_sources import score_sources
from attnviz.model.continuation import generate
from attnviz.model.model import Model
from attnviz.records import Head
from tests import calls
from tests.tiers import first_gates
from tests.waiting import wait_until
from ui.runtime import jobs, probes, with_model
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job
from ui.runtime.with_model import Measuring, TextRef

CLEAN, CORRUPTED = "cats sat", "mats sat"


def calls_of(model: Model, name: str) -> dict[str, Call]:
    """Every call on a model that a page makes, by a name."""
    trace, donor = model.trace(CLEAN), model.trace(CORRUPTED)
    answer = TokenAnswer(position=-1, token="c", against="m")
    between = TextRef(trace.tokens, None), TextRef(donor.tokens, None), Measuring(answer)
    head = Head(2, 1)
    given, measured = (name, trace), Measuring(answer)
    off: dict[str, Any] = {"kind": "decoder", "means": None}
    pair = PromptPair(clean=CLEAN, corrupted=CORRUPTED, answer="c", wrong_answer="m")
    attributions = attribute_inputs(model, trace, answer, methods=["keys_masked"])
    chance = random_orders(model, trace, answer, n_orders=3)
    patched = Patches(kind="decoder", carried="layer")
    paths = Patches(kind="decoder", carried="heads", end=PathEnd(head=head))
    told = TELLS_PROGRESS
    return {
        "means": (with_model.call, (mean_outputs, name, [CLEAN]), told),
        "ablate": (with_model.call, (ablate, *given, measured), {**off, "layers": (0, 1), **told}),
        "ablate_layers": (with_model.call, (ablate_layers, *given, measured), {**off, **told}),
        "remove": (with_model.call, (remove_in_order, *given, measured, [head]), {**off, **told}),
        "remove greedily": (with_model.call, (remove_greedily, *given, measured, [head]), {**off, **told}),
        "mask_cells": (
            with_model.call,
            (mask_cells, *given, measured, *head),
            {"kind": "decoder", "seed": 0, **told},
        ),
        "patch": (with_model.call, (patch_states, name, *between, patched), told),
        "patch paths": (with_model.call, (patch_states, name, *between, paths), told),
        "attribute_patches": (with_model.call, (attribute_patches, name, *between), patched.named),
        "patch_pair": (with_model.call, (of_line, name, 1, patch_pair, pair, patched), told),
        "ablate_pair": (with_model.call, (of_line, name, 1, ablate_pair, pair, None), told),
        "attribute_pair": (with_model.call, (of_line, name, 1, attribute_pair, pair), told),
        "lens": (with_model.call, (lens.lens, *given), {}),
        "follow": (with_model.call, (lens.follow_tokens, *given, 3, ["c"]), {}),
        "attribute_answer": (with_model.call, (attribute_answer, *given, 3), {}),
        "score_sources": (with_model.call, (score_sources, name, trace, *head, 3, 2), {"kind": "decoder"}),
        "copying_scores": (with_model.call, (copying_scores, name), told),
        **{
            f"attribute by {method}": (
                with_model.call,
                (attribute_inputs, *given, answer),
                {"methods": (method,), **told},
            )
            for method in available_methods(model, trace, answer)
        },
        "random_orders": (with_model.call, (random_orders, *given, answer), {"part": (0, 1), **told}),
        "delete": (with_model.call, (deletion_curves, *given, answer, attributions, chance), told),
        "write": (with_model.call, (generate, name, trace.tokens), {"n_tokens": 3, **told}),
        "verify": (with_model.verify, (name, trace), {}),
        "collect": (with_model.collect, (name, f"{CLEAN}\n{CORRUPTED}", 1), {"kind": "decoder", **told}),
        "probe": (probes.probe, (name,), told),
        "pattern": (probes.pattern, (name, head, "decoder"), {}),
    }


GATING = ("ablate", "patch", "attribute by integrated_gradients", "write", "collect")
"""One of each kind of loop: over heads, over places, over points of a path, over tokens that are written, over texts."""


@pytest.mark.parametrize("which", first_gates("some", "all"))
def test_a_cancelled_call_ends_by_itself_and_leaves_its_process(
    headed: Callable[[str], tuple[Model, Path]], tmp_path: Path, which: str
):
    """Each begins when nobody waits for it any more, so a call that does not stop by itself has a result."""
    model, folder = headed("llama")
    asked = calls_of(model, str(folder))
    if which == "some":
        asked = {name: asked[name] for name in GATING}
    processes = ()
    for number, (name, (function, given, named)) in enumerate(asked.items()):
        begun = tmp_path / str(number)
        job = Job([(calls.once_left, (begun, function, *given), named)])
        job.watch()
        wait_until(begun.exists)
        processes = processes or jobs.state().processes
        job.leave()
        wait_until(lambda: not jobs.state().n_under_way)
        assert (name, job.results, job.error) == (name, [None], None)
        assert jobs.state().processes == processes, name
