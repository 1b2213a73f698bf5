"""Memory that is short, as Python, numpy and torch say it: one sentence."""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import OutOfMemoryError, enough_memory

TOO_MUCH = 2**46  # numbers of four bytes; no machine maps 281 TB


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: np.empty(TOO_MUCH, dtype=np.float32),
        lambda: torch.empty(TOO_MUCH),
        lambda: bytearray(TOO_MUCH * 4),
    ],
    ids=["numpy", "torch", "Python"],
)
def test_what_does_not_fit_is_said_in_one_sentence(allocate):
    with (
        pytest.raises(OutOfMemoryError, match=r"memory of this machine\. Shorten the text"),
        enough_memory(),
    ):
        allocate()


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="something else") as caught, enough_memory():
        raise RuntimeError("something else")
    assert type(caught.value) is RuntimeError


@pytest.mark.parametrize("run", ["trace", "verify"])
def test_a_forward_pass_that_does_not_fit(run, embedded, door_trace, monkeypatch):
    network = embedded.network if run == "trace" else embedded.reference
    hook = network.encoder.layer[3].register_forward_hook(lambda *_: torch.empty(TOO_MUCH))
    try:
        with pytest.raises(OutOfMemoryError, match="Shorten the text, or select a smaller model"):
            embedded.trace("A door.") if run == "trace" else attnviz.verify(embedded, door_trace)
    finally:
        hook.remove()
    assert attnviz.verify(embedded, embedded.trace("A door.")).passed  # and the next one goes through
