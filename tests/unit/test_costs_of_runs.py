"""How much an experiment has to compute, how it is shared out, and what of it has come so far."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attnviz.effects.ablation import HeadEffects
from attnviz.effects.outcome import Similarity
from tests.small_records import tokens
from ui.choice.selection import Selection
from ui.rooms.cause import own_run
from ui.rooms.cause.heads_off import switched_off as of_effects


def view_of(n_token: int, n_target: int = 0) -> Any:
    trace = SimpleNamespace(tokens=tokens(n_token), target_tokens=tokens(n_target) if n_target else None)
    return SimpleNamespace(trace=trace, selection=Selection(model="m", text="a door"), kind="encoder")


@pytest.mark.parametrize(
    ("n_token", "n_parameter", "n_counted"),
    [(100, 10_800_000, 100), (100, 21_600_000, 200), (7, 5_400_000, 4)],
)
def test_tokens_count_by_the_parameters_that_they_pass(n_token, n_parameter, n_counted, monkeypatch):
    network = SimpleNamespace(num_parameters=lambda exclude_embeddings: n_parameter * exclude_embeddings)
    monkeypatch.setattr(own_run.cache, "model", lambda _: SimpleNamespace(network=network))
    assert own_run.OwnRun(view=view_of(4)).counted(n_token) == n_counted


@pytest.mark.parametrize(("n_target", "n_counted"), [(0, 20), (3, 35)])
def test_variants_are_of_both_texts(n_target, n_counted, monkeypatch):
    monkeypatch.setattr(own_run.OwnRun, "counted", lambda self, n: n)
    run = of_effects.Screen(view=view_of(4, n_target), outcome=Similarity(text="x"))
    assert run.n_tokens(5) == n_counted


@pytest.mark.parametrize(("n_layer", "longest"), [(1, 1), (6, 1), (10, 1), (11, 2), (30, 3)])
def test_layers_are_shared_out_the_last_first(n_layer, longest):
    on: Any = SimpleNamespace(
        n_layers=n_layer,
        view=view_of(4),
        of_ablation=lambda ablation: (ablation,),
        _named=lambda ablation: {},
        call=lambda function, layers: layers,
        job=lambda name, key, calls: calls(),
    )
    parts = of_effects.Screen.ablation_job(on, "mean")
    assert sorted(layer for part in parts for layer in part) == [*range(n_layer)] and len(parts) <= 10
    assert max(map(len, parts)) == longest and parts[0][-1] == n_layer - 1


def test_what_has_come_of_an_ablation_is_joined():
    parts = [
        HeadEffects(kind="encoder", ablation="zero", base=0.5, heads=np.array(heads, dtype=np.float32))
        for heads in ([[np.nan, np.nan], [3, 4]], [[1, 2], [np.nan, np.nan]])
    ]
    work: Any = SimpleNamespace(results=[parts[0], None, parts[1]])
    np.testing.assert_equal(of_effects.joined(work).heads, [[1, 2], [3, 4]])
    work.results = [None]
    assert of_effects.joined(work) is None
