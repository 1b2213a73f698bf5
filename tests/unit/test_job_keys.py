"""Jobs of the experiments: whatever their calls depend on is in their key, or a page would show the numbers of another choice."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from attnviz.effects.outcome import TokenState
from attnviz.records import Head
from ui.choice.selection import Selection
from ui.sections import own_run
from ui.sections.effects import comparing, together
from ui.sections.effects import screen as effects
from ui.sections.inputs import screen as inputs
from ui.sections.lens import screen as lens
from ui.sections.patching import screen as patching


class Words(list[int]):
    """Tokens of a text."""

    text = ""
    ids = (1, 2, 3, 4, 5)


def text_of(name: str) -> Any:
    """A trace of a text; two are equal if they are one."""
    tokens = Words(range(5))
    tokens.text = name
    return SimpleNamespace(
        tokens=tokens,
        target_tokens=None,
        query_tokens=lambda kind: tokens,
        key_tokens=lambda kind: tokens,
        shape=lambda kind: (3, 4),
        n_heads=lambda layer, kind: 4,
        heads=lambda kind: [Head(*place) for place in product(range(3), range(4))],
        n_layers=lambda kind: 3,
        attention=lambda layer, kind: SimpleNamespace(kind=kind, query=range(4), key=range(2)),
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
    "donor": ("other", "another"),
    "query": (0, 3),
}


def view_of(chosen: dict[str, Any]) -> Any:
    selection = Selection(
        model="m", text=chosen["text"], layer=chosen["layer"], head=chosen["head"], seed=chosen["seed"]
    )
    selection = replace(
        selection,
        effects=replace(selection.effects, ablation=chosen["ablation"]),
        patching=replace(selection.patching, **chosen["patches"]),
    )
    return SimpleNamespace(
        selection=selection,
        trace=TEXTS[chosen["text"]],
        kind=chosen["kind"],
        query=chosen["query"],
        last_query=chosen["query"],
        theme="light",
    )


def made(chosen: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every job of the pages, with what starts it."""
    view, outcome = view_of(chosen), chosen["outcome"]
    of_heads = effects.Screen(view=view, outcome=outcome)
    yield "ablation", lambda: of_heads.ablation_job(of_heads.ablation)
    yield "cells", lambda: comparing.weights_and_effects(of_heads)
    yield "removal", lambda: together.greedy(of_heads)
    of_inputs = inputs.Screen(view=view, outcome=outcome)
    yield "inputs", of_inputs.attributions
    yield "deletion", lambda: of_inputs.deletion(())
    of_pair = patching.Screen(
        view=view, outcome=outcome, donor=TEXTS[chosen["donor"]], differing=(), differing_in_encoder=()
    )
    yield "patching", of_pair.patching_job
    yield "attribution_patching", of_pair.gradient_job
    yield "lens", lens.Screen(view=view).lens
    yield "direct", lens.Screen(view=view).direct


@pytest.fixture
def jobs(monkeypatch) -> list[tuple[Any, Any]]:
    """Key and calls of each job that is asked for; none is ever there."""
    asked: list[tuple[Any, Any]] = []
    monkeypatch.setattr(own_run, "job", lambda name, key, calls: asked.append(((name, *key), calls())))
    monkeypatch.setattr(own_run, "offer", lambda name: SimpleNamespace(name=name))
    for module in (comparing, together):
        monkeypatch.setattr(module, "is_there", lambda *_, **__: False)
        monkeypatch.setattr(module, "st", SimpleNamespace(markdown=lambda _: None))
    return asked


def test_jobs_of_one_key_make_the_same_calls(jobs):
    calls: dict[Any, Any] = {}
    for values in product(*CHOICES.values()):
        chosen = dict(zip(CHOICES, values, strict=True))
        for name, start in made(chosen):
            start()
            key, found = jobs.pop()
            assert key[0] == name
            assert calls.setdefault(key, found) == found, f"{name} of {chosen} has the key of another choice"
    assert len({key[0] for key in calls}) == 9


def test_cells_are_those_of_the_selected_head(jobs):
    for head in (Head(0, 0), Head(2, 1)):
        chosen = {name: values[0] for name, values in CHOICES.items()} | {
            "layer": head.layer,
            "head": head.head,
        }
        comparing.weights_and_effects(effects.Screen(view=view_of(chosen), outcome=chosen["outcome"]))
    (one, _), (other, _) = jobs
    assert one != other
