"""Where there is a GPU: what it computes is what the CPU computes, from every family's trace to effects of the bundled models.

The CPU's numbers are compared with transformers' own in the other files of this folder.
"""

import numpy as np
import pytest
import torch
from transformers import AutoModel

import attnviz
from attnviz.effects.ablation import ablate
from attnviz.effects.input_attribution import attribute_inputs
from attnviz.effects.lens import lens
from attnviz.effects.outcome import Similarity, measured, own_answer
from attnviz.effects.patching import patch
from attnviz.model.continuation import generate
from attnviz.model.interventions import ScaledOutput
from tests import tiny
from tests.tiny import trace_of

if not torch.cuda.is_available():
    pytest.skip(
        "torch sees no CUDA device; runs where there is one and a CUDA build of torch is installed",
        allow_module_level=True,
    )
FAMILIES = list(tiny.TEXT_FAMILIES.values())
TOLERANCE = 1e-4
"""Of float32, whose sums a GPU adds in another order."""
BUNDLED = ("all-MiniLM-L6-v2", "SmolLM2-135M-Instruct")
TEXT, OTHER = "I was watching the door when it opened.", "I was watching the road when it opened."


@pytest.fixture(scope="module")
def on_both(checkpoint):
    """A family's model on the CPU and on the GPU."""
    return lambda name: [
        attnviz.load_model(str(checkpoint(name)), device=device) for device in ("cpu", "cuda")
    ]


def agree(first, second):
    np.testing.assert_allclose(first, second, atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("factor", [None, 0.5])
def test_a_trace_of_the_gpu_is_the_cpu_s_and_verified(family, factor, on_both):
    """As it is, and with a head's output halved."""
    changed = {} if factor is None else {"interventions": [ScaledOutput(layer=0, head=0, factor=factor)]}
    cpu, gpu = on_both(family.name)
    expected, trace = trace_of(cpu, family, **changed), trace_of(gpu, family, **changed)
    assert gpu.network.device.type == "cuda"
    for kind in expected.kinds:
        for layer in range(expected.n_layers(kind)):
            agree(trace.layer_weights(layer, kind), expected.layer_weights(layer, kind))
    agree(trace.last_hidden_state, expected.last_hidden_state)
    assert trace.last_hidden_state.dtype == trace.query(0, 0).dtype == np.float32
    if factor is None:
        report = attnviz.verify(gpu, trace)
        assert report.passed, report.failed


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_verified(name, dtype):
    model = attnviz.load_model(name, device="cuda", dtype=dtype)
    trace = model.trace(TEXT)
    assert trace.query(3, 1).dtype == np.float32
    report = attnviz.verify(model, trace)
    assert report.passed, report.failed


@pytest.mark.parametrize("name", BUNDLED)
def test_effects_are_those_of_the_cpu(name):
    """Heads off, states carried over, gradients and removed tokens: what each of them sends to the GPU and reads back."""
    numbers = []
    for device in ("cpu", "cuda"):
        model = attnviz.load_model(name, device=device)
        trace, other = model.trace(TEXT), model.trace(OTHER)
        outcome = own_answer(model, trace) or Similarity(text=OTHER)
        measure = measured(model, trace, outcome)
        attributions = attribute_inputs(
            model, trace, outcome, methods=["gradient_times_input", "integrated_gradients", "token_replaced"]
        )
        numbers.append(
            [
                ablate(model, trace, measure, layers=[1]).heads[1],
                patch(model, trace, other, measure, carried="layer", rows=[2]).outcomes,
                *(attribution.values for attribution in attributions),
            ]
        )
    for expected, number in zip(*numbers, strict=True):
        agree(number, expected)


def test_a_language_model_writes_and_ranks_as_on_the_cpu():
    expected, written = (
        generate(attnviz.load_model("SmolLM2-135M-Instruct", device=device), TEXT, n_tokens=8)
        for device in ("cpu", "cuda")
    )
    assert written.written == expected.written and len(written.written) == 8
    agree(written.probabilities, expected.probabilities)
    lenses = [
        lens(attnviz.load_model("SmolLM2-135M-Instruct", device=device), expected.trace)
        for device in ("cpu", "cuda")
    ]
    agree(lenses[1].probabilities, lenses[0].probabilities)


def test_a_model_in_memory_on_the_gpu_is_wrapped_where_it_is(embedded):
    network = AutoModel.from_pretrained(embedded.folder).cuda()
    viz = attnviz.wrap(network, embedded.tokenizer)
    trace = viz.trace(TEXT)
    assert viz.network.device.type == "cuda" and attnviz.verify(viz, trace).passed
    agree(trace.layer_weights(3), embedded.trace(TEXT).layer_weights(3))
