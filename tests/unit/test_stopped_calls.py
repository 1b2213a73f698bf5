"""Cancelling: every call on a model ends before it is done, and its process stays with the model that it has loaded."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attnviz.effects.attribution_patching import attribute_patches
from attnviz.effects.copying import copying_scores
from attnviz.effects.deletion import random_orders
from attnviz.effects.input_attribution import METHODS, attribute_inputs
from attnviz.effects.outcome import TokenAnswer
from attnviz.effects.patches import Patches, patch_pair, patch_states
from attnviz.effects.patching import PathEnd
from attnviz.effects.prompts import PromptPair
from attnviz.effects.score_sources import score_sources
from attnviz.model.model import Model
from attnviz.records import Head
from tests import calls
from tests.tiers import first_gates
from tests.waiting import wait_until
from ui.rooms.cause import jobs as cause_jobs
from ui.rooms.cause.heads_off import jobs as effects_jobs
from ui.rooms.cause.inputs import jobs as inputs_jobs
from ui.rooms.cause.lens import jobs as lens_jobs
from ui.rooms.generate import jobs as generate_jobs
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
    given = name, trace, str(answer)
    off: dict[str, Any] = {"kind": "decoder", "means": None}
    pair = PromptPair(clean=CLEAN, corrupted=CORRUPTED, answer="c", wrong_answer="m")
    attributions = attribute_inputs(model, trace, answer, methods=["keys_masked"])
    chance = random_orders(model, trace, answer, n_orders=3)
    patched = Patches(kind="decoder", carried="layer")
    paths = Patches(kind="decoder", carried="heads", end=PathEnd(head=head))
    told = TELLS_PROGRESS
    return {
        "means": (effects_jobs.means, (name, [CLEAN]), told),
        "ablate": (effects_jobs.ablate, given, {**off, "layers": (0, 1), **told}),
        "ablate_layers": (effects_jobs.ablate_layers, given, {**off, **told}),
        "remove": (effects_jobs.remove, (*given, [head]), {**off, "greedily": False, **told}),
        "remove greedily": (effects_jobs.remove, (*given, [head]), {**off, "greedily": True, **told}),
        "mask_cells": (effects_jobs.mask_cells, (*given, head), {"kind": "decoder", "seed": 0, **told}),
        "patch": (with_model.call, (patch_states, name, *between, patched), told),
        "patch paths": (with_model.call, (patch_states, name, *between, paths), told),
        "attribute_patches": (with_model.call, (attribute_patches, name, *between), patched.named),
        "patch_pair": (cause_jobs.of_line, (name, 1, patch_pair, pair, patched), told),
        "ablate_pair": (cause_jobs.of_line, (name, 1, effects_jobs.ablate_pair, pair, None), told),
        "attribute_pair": (cause_jobs.of_line, (name, 1, lens_jobs.attribute_pair, pair), told),
        "lens": (lens_jobs.lens, (name, trace), {}),
        "follow": (lens_jobs.follow, (name, trace, 3, ["c"]), {}),
        "direct_effects": (lens_jobs.direct_effects, (name, trace, 3, ""), {}),
        "score_sources": (with_model.call, (score_sources, name, trace, *head, 3, 2), {"kind": "decoder"}),
        "copying_scores": (with_model.call, (copying_scores, name), told),
        **{f"attribute by {method}": (inputs_jobs.attribute, (*given, method), told) for method in METHODS},
        "delete_at_random": (inputs_jobs.delete_at_random, given, {"seed": 0, "part": (0, 1), **told}),
        "delete": (inputs_jobs.delete, (*given, attributions, chance), told),
        "write": (
            generate_jobs.write,
            (name, trace.tokens),
            {"n_tokens": 3, "temperature": 0.0, "seed": 0, "picks": {}, **told},
        ),
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
    functions = {
        value
        for function, given, _ in asked.values()
        for value in (function, *given)
        if inspect.isfunction(value)
    }
    own = {
        function
        for module in (
            effects_jobs,
            cause_jobs,
            lens_jobs,
            inputs_jobs,
            generate_jobs,
        )
        for function in vars(module).values()
        if getattr(function, "__module__", "") == module.__name__
    }
    assert {
        value for value in own if inspect.isfunction(value) and not value.__name__.startswith("_")
    } <= functions
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
