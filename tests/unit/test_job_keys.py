"""Jobs of the experiments: whatever their calls depend on is in their key, or a page would show the numbers of another choice."""

from collections.abc import Callable, Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.outcome import TokenAnswer, TokenState
from attnviz.records import Head
from tests import small_records
from ui.choice.selection import Selection
from ui.rooms.cause import own_run
from ui.rooms.cause.heads_off import effects_of_heads, switched_off
from ui.rooms.cause.heads_off.shuffled_rows import shuffling
from ui.rooms.cause.heads_off.switched_off import EffectsSettings
from ui.rooms.cause.inputs import attributions as inputs
from ui.rooms.cause.lens import added_parts
from ui.rooms.cause.lens import answers as lens
from ui.rooms.compare.patching.two_texts import PatchingSettings
from ui.rooms.compare.patching.two_texts import Screen as PatchedScreen
from ui.rooms.explore.stage.row_matters import Shuffle


def text_of(name: str) -> Any:
    """A trace of a text, equal only to itself."""
    tokens = small_records.tokens(5, text=name)
    return SimpleNamespace(
        tokens=tokens,
        target_tokens=None,
        interventions=(),
        last_tokens=tokens,
        kinds=("encoder",),
        measures=lambda kind: ("weights", "norms"),
        query_tokens=lambda kind: tokens,
        key_tokens=lambda kind: tokens,
        shape=lambda kind: (3, 4),
        n_heads=lambda layer, kind: 4,
        heads=lambda kind: [Head(*place) for place in product(range(3), range(4))],
        n_layers=lambda kind: 3,
        is_long=lambda kind: False,
        attention=lambda layer, kind: SimpleNamespace(kind=kind, query=range(4), key=range(2)),
        pattern=lambda layer, head, kind: SimpleNamespace(allowed=np.ones((5, 5), dtype=bool)),
    )


TEXTS = {name: text_of(name) for name in ("one", "two", "other", "another")}
CHOICES: dict[str, tuple[Any, ...]] = {
    "text": ("one", "two"),
    "kind": ("encoder", "cross"),
    "outcome": (TokenState(position=1), TokenState(position=2)),
    "layer": (0, 2),
    "head": (0, 1),
    "seed": (0, 1),
    "ablation": ("zero", "mean"),
    "patches": (
        {"carried": "layer"},
        {"carried": "heads"},
        {"carried": "key", "at": "each"},
        {"carried": "heads", "at": "selected"},
        {"carried": "heads", "path": "outcome"},
        {"carried": "heads", "path": "value"},
    ),
    "references": ("A door.", "A mat."),
    "donor": ("other", "another"),
    "query": (0, 3),
}


def view_of(chosen: dict[str, Any]) -> Any:
    selection = Selection(
        model="m", text=chosen["text"], layer=chosen["layer"], head=chosen["head"], seed=chosen["seed"]
    )
    selection = selection.with_records(
        [
            EffectsSettings(ablation=chosen["ablation"], references=chosen["references"]),
            PatchingSettings(**chosen["patches"]),
        ]
    )
    trace, kind = TEXTS[chosen["text"]], chosen["kind"]
    return SimpleNamespace(
        selection=selection,
        trace=trace,
        query_tokens=trace.query_tokens(kind),
        key_tokens=trace.key_tokens(kind),
        kind=kind,
        query=chosen["query"],
        last_query=chosen["query"],
        theme="light",
    )


def made(chosen: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every job of the pages, with what starts it."""
    view, outcome = view_of(chosen), chosen["outcome"]
    of_heads = switched_off.Screen(view=view, outcome=outcome)
    yield "ablation", lambda: of_heads.ablation_job(of_heads.ablation)
    yield "cells", of_heads.cells_job
    yield "removal", lambda: of_heads.removal_job([Head(0, 1), Head(1, 0)], greedily=True)
    yield "layers", of_heads.layers_job
    yield "means", of_heads.means_job
    of_inputs = inputs.Screen(view=view, outcome=outcome)
    vars(of_inputs)["attributions"] = []  # they are computed once
    yield "inputs", of_inputs.attributing
    yield "integrated_gradients", of_inputs.integrating
    for at in (0, 1):
        yield "shapley", lambda at=at: of_inputs.sampling(at)
    yield "random_orders", of_inputs.chance
    of_chance = SimpleNamespace(seed=chosen["seed"])
    yield "deletion", lambda: of_inputs.deletion(of_chance)
    of_pair = PatchedScreen(
        view=view, outcome=outcome, donor=TEXTS[chosen["donor"]], differing=(), differing_in_encoder=()
    )
    yield "patching", of_pair.patching_job
    yield "attribution_patching", of_pair.gradient_job
    of_lens = lens.Screen(view=view, outcome=outcome)
    yield "lens", of_lens.lens_job
    yield "direct", lambda: added_parts.direct_job(of_lens)
    answer = TokenAnswer(position=chosen["query"], token="a", against=chosen["text"])
    of_answer = lens.Screen(view=view, outcome=answer)
    yield "direct", lambda: added_parts.direct_job(of_answer)
    yield "followed", lambda: of_answer.followed_job(answer)
    yield "shuffled_row", Shuffle(view=view).row_job
    yield "shuffled_heads", lambda: shuffling(of_heads)


@pytest.fixture
def jobs(monkeypatch) -> list[tuple[Any, Any]]:
    """Key and calls of each job that is asked for; none has a result."""
    asked: list[tuple[Any, Any]] = []
    for module in (own_run, switched_off):
        monkeypatch.setattr(
            module, "job", lambda name, key, calls, is_long=False: asked.append(((name, *key), calls()))
        )
    monkeypatch.setattr(own_run, "offer", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(own_run.OwnRun, "counted", lambda _, n_tokens: n_tokens)
    monkeypatch.setattr(
        switched_off.Screen, "means", lambda screen, way: None if way == "zero" else screen.references
    )
    monkeypatch.setattr(lens, "has_head", lambda view: True)
    monkeypatch.setattr(inputs.cache, "model", lambda name: None)
    monkeypatch.setattr(
        inputs, "available_methods", lambda model, trace, outcome: ("norms", "token_replaced")
    )
    return asked


@pytest.mark.stand_ins
def test_jobs_of_one_key_make_the_same_calls(jobs):
    calls: dict[Any, Any] = {}
    for values in product(*CHOICES.values()):
        chosen = dict(zip(CHOICES, values, strict=True))
        for name, start in made(chosen):
            start()
            key, called = jobs.pop()
            assert key[0] == name
            assert calls.setdefault(key, called) == called, (
                f"{name} of {chosen} has the key of another choice"
            )
    assert len({key[0] for key in calls}) == 17


@pytest.mark.parametrize(("n_layer", "layers"), [(2, [(1,), (0,)]), (25, [(22, 23, 24), (0,)])])
def test_the_last_layers_are_asked_for_first(jobs, n_layer, layers):
    """They take the least time. Every layer is asked for once, in at most ten calls."""
    chosen = {name: values[0] for name, values in CHOICES.items()}
    view = view_of(chosen)
    view.trace = SimpleNamespace(**vars(view.trace) | {"n_layers": lambda kind: n_layer})
    switched_off.Screen(view=view, outcome=chosen["outcome"]).ablation_job("zero")
    [(_, calls)] = jobs
    asked = [named["layers"] for _, _, named in calls]
    assert [asked[0], asked[-1]] == layers and len(asked) <= 10
    assert sorted(layer for part in asked for layer in part) == list(range(n_layer))


def test_the_layers_that_have_come_are_shown(monkeypatch):
    """The grid has numbers of those, and dashes for the others."""
    chosen = {name: values[0] for name, values in CHOICES.items()}
    heads = np.full((3, 4), np.nan, dtype=np.float32)
    heads[2] = 0.5
    come = HeadEffects(kind="encoder", ablation="zero", base=0.25, heads=heads)
    monkeypatch.setattr(switched_off.Screen, "ablation_job", lambda *_: SimpleNamespace(results=[come, None]))
    monkeypatch.setattr(own_run.OwnRun, "counted", lambda _, n_tokens: n_tokens)
    monkeypatch.setattr(effects_of_heads, "is_there", lambda *_, result, **__: result())
    drawn, captions = [], []
    monkeypatch.setattr(effects_of_heads, "named_heads", lambda *given, **_: drawn.append(given))
    monkeypatch.setattr(effects_of_heads, "st", SimpleNamespace(caption=captions.append))
    screen = switched_off.Screen(view=view_of(chosen), outcome=chosen["outcome"])
    assert effects_of_heads.ablated(screen, "zero", key="ablation") is None
    [(_, numbers, said)] = drawn
    np.testing.assert_array_equal(numbers, come.effects)
    assert said(Head(0, 0)) == "Layer 0, head 0: not computed yet"
    assert said(Head(2, 1)) == "Layer 2, head 1: effect +0.250; outcome 0.500 without it"
    assert captions == ["4 of 12 heads so far."]
