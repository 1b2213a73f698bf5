"""Does the model depend on word order? The same tokens in another order, with and without position vectors."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from attnviz.effects.masking import cosine_change
from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.capture import forward, share_parameters
from attnviz.records import Record

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shuffle(Record):
    """The tokens of a text in another order; special tokens keep their places."""

    order: Int[np.ndarray, " token"]
    """Position in the text of the token that is now at each place."""
    with_positions: Float[np.ndarray, " token"]
    """1 - cosine of each token's last hidden state in the text and in the new order, by its position in the text."""
    without_positions: Float[np.ndarray, " token"]
    """The same without position vectors: 0 up to rounding, unless the model has a causal mask."""


def shuffle(model: "Model", trace: "Trace", *, seed: int = 0) -> Shuffle:
    """How every token of a text changes when the words are shuffled; the same for the same random seed.

    Raises:
        UnsupportedArchitectureError: the family has no table of positions, or reads two texts.
    """
    placeless = without_positions(model)
    tokens = trace.tokens
    order = np.arange(len(tokens))
    words = np.flatnonzero(~tokens.is_special)
    order[words] = np.random.default_rng(seed).permutation(words)
    text = model.inputs(tokens)
    moved = text | {
        name: text[name][:, torch.from_numpy(order)]
        for name in ("input_ids", "token_type_ids")
        if name in text
    }

    def states(network: nn.Module, given: dict[str, Any]) -> np.ndarray:
        with torch.inference_mode():
            last: np.ndarray = forward(network, **given).last_hidden_state[0].float().cpu().numpy()
        return last

    place = np.argsort(order)  # of each token of the text in the new order
    turned = {
        name: cosine_change(states(network, text), states(network, moved)[place])
        for name, network in (("with_positions", model.network), ("without_positions", placeless))
    }
    return Shuffle(order=order, **turned)


def without_positions(model: "Model") -> nn.Module:
    """The same network, without position vectors added to its tokens; parameters are shared.

    Giving every token position 0 would not work: the bundled model's vector for position 0 is five times as long as
    the others and dominates the token embeddings, and transformers 5.23.0 takes position ids that are all 0 for packed texts of one
    token each, and masks them from each other.

    Raises:
        UnsupportedArchitectureError: the family has no table of positions, or reads two texts.
    """
    network = share_parameters(model.network)
    table = None if network.config.is_encoder_decoder else model.structure.positions
    is_biased = any(call.bias is not None for calls in model.probe(3).layers.values() for call in calls)
    if table is None or is_biased:
        why = (
            "reads two texts, and only models that read one are shuffled"
            if network.config.is_encoder_decoder
            else "adds no position vectors that could be left out"
            if table is None
            else "has relative positions in its scores too, which stay when position vectors are left out"
        )
        raise UnsupportedArchitectureError(
            "A shuffle of the words, with and without position vectors, was asked for; "
            f"{type(network).__name__} {why}. Select a model such as BERT.",
            reason=f"it {why}",
        )
    network.get_submodule(table.name).register_forward_hook(lambda _, __, output: torch.zeros_like(output))
    return network
