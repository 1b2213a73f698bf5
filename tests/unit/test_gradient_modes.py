"""What needs gradients takes them itself, whatever its caller has switched off."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.effects.attribution_patching import attribute_patches
from attnviz.effects.copying import copying_scores
from attnviz.effects.deletion import deletion_curves, random_orders
from attnviz.effects.input_attribution import attribute_inputs
from attnviz.effects.logit_attribution import attribute_state, attribute_token
from attnviz.effects.outcome import ClassAnswer, Similarity, TokenAnswer, measured, own_answer
from attnviz.effects.patching import patch
from attnviz.effects.score_sources import score_sources
from attnviz.maths.gradients import gradient_times_input, integrated_gradients
from attnviz.model.model import Model
from attnviz.model.trace import Trace

TEXT, OTHER = "the cat sat", "the dog sat"
WITHOUT = [torch.no_grad, torch.inference_mode]


def numbers(result: Any) -> list[np.ndarray]:
    """All arrays and numbers of a result, in order."""
    if is_dataclass(result):
        return [array for field in fields(result) for array in numbers(getattr(result, field.name))]
    if isinstance(result, tuple | list):
        return [array for part in result for array in numbers(part)]
    return [np.asarray(result)] if isinstance(result, np.ndarray | float) else []


def of_token(model: Model, trace: Trace) -> object:
    token = model.name_of(int(trace.tokens.ids[1]))
    return attribute_token(model, trace, 2, token), attribute_state(model, trace, 1)


def of_inputs(model: Model, trace: Trace) -> object:
    answer = TokenAnswer(position=2, token=model.name_of(int(trace.tokens.ids[1])))
    methods = ("gradient_times_input", "integrated_gradients", "token_replaced", "norms")
    attributions = attribute_inputs(model, trace, answer, methods=methods, most_points=40)
    chance = random_orders(model, trace, answer, n_orders=2)
    return attributions, deletion_curves(model, trace, answer, attributions, chance, most_points=3)


def of_similarity(model: Model, trace: Trace) -> object:
    return attribute_inputs(model, trace, Similarity(text=OTHER), methods=("gradient_times_input",))


def of_patches(model: Model, trace: Trace) -> object:
    measure, donor = measured(model, trace, Similarity(text="a door")), model.trace(OTHER)
    carried = ("layer", "heads", "query", "pattern")
    return (
        [attribute_patches(model, trace, donor, measure, carried=part) for part in carried],
        patch(model, trace, donor, measure),
    )


def of_scores(model: Model, trace: Trace) -> object:
    return score_sources(model, trace, 1, 0, 2, 1), copying_scores(model)


def of_own_answer(model: Model, trace: Trace) -> object:
    answer = own_answer(model, trace)
    assert answer is not None
    return measured(model, trace, answer).value


def of_functions(_model: Model, _trace: Trace) -> object:
    inputs = torch.arange(6.0).reshape(2, 3)

    def function(vectors: torch.Tensor) -> torch.Tensor:
        return (vectors**3).sum(dim=(1, 2))

    return gradient_times_input(function, inputs), integrated_gradients(function, inputs, inputs * 0)


ASKED = [of_token, of_inputs, of_similarity, of_patches, of_scores, of_own_answer, of_functions]


@pytest.mark.parametrize("without", WITHOUT, ids=["no_grad", "inference_mode"])
@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_gradients_are_taken_where_the_caller_takes_none(
    headed, ask: Callable[[Model, Trace], object], without: Callable[[], AbstractContextManager[object]]
) -> None:
    model, _ = headed("gpt2")
    trace = model.trace(TEXT)
    expected = numbers(ask(model, trace))
    assert expected
    with without():
        found = numbers(ask(model, trace))
        assert not torch.is_grad_enabled()
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_classes_that_an_outcome_reads_are_found_without_gradients(classifying) -> None:
    model, _ = classifying("bert")
    trace, outcome = model.trace(TEXT), ClassAnswer(label="GOOD")
    expected = numbers(attribute_inputs(model, trace, outcome, methods=("norms", "gradient_times_input")))
    with torch.inference_mode():
        found = numbers(attribute_inputs(model, trace, outcome, methods=("norms", "gradient_times_input")))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_model_loaded_in_inference_mode_is_differentiated_too(headed) -> None:
    loaded, folder = headed("gpt2")
    with torch.inference_mode():
        model = attnviz.load_model(str(folder))
        trace = model.trace(TEXT)
        inside = of_token(model, trace)
    for ask in (of_token, of_patches, of_scores):
        for mine, theirs in zip(numbers(ask(model, trace)), numbers(ask(loaded, trace)), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert numbers(inside)
