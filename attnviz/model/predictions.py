"""The tokens that a model predicts at a position: its own language head on the last hidden state of a trace.

Source: Devlin et al. 2019, arXiv:1810.04805, section 3.1 (masked language model); Radford et al. 2019, "Language Models
are Unsupervised Multitask Learners", section 2 (the next token).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from attnviz.arguments import typed
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.model.forward import forward
from attnviz.model.model import Model
from attnviz.model.token_labels import labels_of
from attnviz.model.trace import Trace
from attnviz.records import Record, check_index


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions(Record):
    """The most likely tokens, most likely first."""

    position: int
    """Position of the predicted token; for a causal model, the position of the token before it."""
    ids: Int[np.ndarray, " token"]
    labels: tuple[str, ...]
    probabilities: Float[np.ndarray, " token"]
    """Probabilities of these tokens: the softmax over the whole vocabulary."""


@typed
def predict(model: Model, trace: Trace, position: int, *, top: int = 5) -> Predictions:
    """The tokens that the model's own head predicts at a position of a trace, most likely first.

    A masked language model predicts the token at the position, a causal model the next token. Interventions in the
    trace also affect the predictions.

    Raises:
        SelectionError: no such position, or fewer than one token asked for.
        UnsupportedArchitectureError: the checkpoint holds no language head.
        ModelFailedError, OutOfMemoryError: as `attnviz.model.forward.forward`.
    """
    if model.head is None:
        raise UnsupportedArchitectureError(
            f"A prediction of {model.name} at token {position} was asked for; its checkpoint has no language head. "
            "Select a model that has one, such as bert-base-uncased."
        )
    check_index("token", position, len(trace.last_hidden_state), "this text")
    if top < 1:
        raise SelectionError(f"The {top} most likely tokens were asked for. Ask for one or more.")
    vector = torch.tensor(trace.last_hidden_state[position]).to(model.network.device, model.network.dtype)
    with torch.inference_mode():
        logits = forward(model.head, inputs_embeds=vector[None, None]).logits[0, 0]
    likeliest = logits.float().softmax(dim=-1).topk(min(top, len(logits)))
    return Predictions(
        position=position,
        ids=likeliest.indices.cpu().numpy(),
        labels=labels_of(model.tokenizer, likeliest.indices.tolist()),
        probabilities=likeliest.values.cpu().numpy(),
    )
