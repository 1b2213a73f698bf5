"""The embedding tables of a network: which rows each looked up, and which table holds the positions."""

from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnviz.model.capture import share_parameters
from attnviz.model.forward import forward
from attnviz.model.model import Model
from attnviz.records import Tokens

Ingredient = Literal["token", "position", "segment"]


def looked_up_by(asked: Any, numbers: np.ndarray) -> bool:
    """Whether a table was asked for these rows; Marian passes only a shape to its table of positions."""
    return isinstance(asked, Tensor) and np.array_equal(asked.reshape(-1).cpu().numpy(), numbers)


def ingredient_of(table: nn.Embedding, asked: Any, tokens: Tokens, network: PreTrainedModel) -> Ingredient:
    """What a table other than the tokens' holds, judged by its lookups; BART's decoder passes ids to its table of positions."""
    is_of_segments = table.num_embeddings == getattr(network.config, "type_vocab_size", 0)
    # RoBERTa has one row for both sentences of a pair
    segments = np.minimum(tokens.segment, table.num_embeddings - 1)
    return "segment" if is_of_segments and looked_up_by(asked, segments) else "position"


def learned_positions(model: Model) -> Float[np.ndarray, "position d_embedding"] | None:
    """The model's learned table of position vectors, sharing its memory; None where the model has none.

    Rows that a family keeps for padding (RoBERTa's first two) are left out.
    """
    embedding_table = find_position_table(model, share_parameters(model.network))
    if embedding_table is None:
        return None
    table, first = embedding_table
    rows: np.ndarray = table.get_parameter("weight").detach().float().cpu().numpy()[first:]
    return rows


def find_position_table(model: Model, network: PreTrainedModel) -> tuple[nn.Embedding, int] | None:
    """The module of a copy of a model that looks up positions, and the row of position 0.

    Args:
        network: a copy that no other thread uses, made by `attnviz.model.capture.share_parameters`.
    """
    probe = model.probe(3)  # with a single token, a position looks like a segment
    tokens = probe.tokens
    embeddings: list[tuple[nn.Embedding, int]] = []

    def look_up(module: nn.Embedding, inputs: tuple[Any, ...], output: Tensor) -> None:
        rows = output.reshape(-1, output.shape[-1])
        if len(rows) != len(tokens) or looked_up_by(inputs[0], tokens.ids):
            return
        if ingredient_of(module, inputs[0], tokens, network) == "position":
            apart = (module.get_parameter("weight") - rows[0]).abs().sum(dim=1)
            embeddings.append((module, int(apart.argmin())))

    tables = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    handles = [table.register_forward_hook(look_up) for table in tables]
    with torch.inference_mode():
        forward(network, **model.inputs(probe.tokens, probe.target_tokens))
    for handle in handles:
        handle.remove()
    return embeddings[0] if embeddings else None
