"""A forward pass of a network, or of the head above it: errors of its own code become one sentence."""

from typing import TYPE_CHECKING, Any

from attnviz.errors import failures_of

if TYPE_CHECKING:
    from torch import nn


def forward(network: "nn.Module", **inputs: Any) -> Any:
    """The output of a network for these arguments of its forward.

    Raises:
        ModelFailedError: the family's code raised an error.
        OutOfMemoryError: the text is too long for the memory that is left.
        AttnvizError: whatever attnviz's attention and hooks raise inside the pass.
    """
    name = type(network).__name__
    with failures_of(f"{name} failed on this text", "Try another text, or select another model."):
        return network(**inputs)
