"""An outcome of a text from which tokens are removed, without moving the others."""

from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float

from attnviz.arguments import typed
from attnviz.effects.outcome import AnyOutcome, measured
from attnviz.effects.token_embeddings import Baseline, EmbeddedText, removable
from attnviz.errors import ShapeError
from attnviz.model.interventions import Intervention, MaskedKeys
from attnviz.model.variants import TOKENS_AT_ONCE, measured_variants
from attnviz.records import Progress

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

TokenRemoval = Literal["token_replaced", "keys_masked"]
"""``token_replaced``: the baseline, such as the padding token, replaces the token, and nothing is left of it.
``keys_masked``: no query of any head and layer sees the token's key, as if it were padding. Its own
hidden state is still computed, and still counts where an outcome reads it, as the mean over all tokens does."""


@typed
def outcomes_without(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    removed: Bool[np.ndarray, "variant token"],
    removal: TokenRemoval = "token_replaced",
    *,
    baseline: Baseline | None = None,
    progress: Progress | None = None,
) -> Float[np.ndarray, " variant"]:
    """The outcome without some tokens, for each variant; equal variants run once.

    Tokens are those of the text that is read; of an encoder-decoder model, of the text that the encoder reads: keys
    are masked in the encoder and across, and the decoder's text stays.

    Args:
        trace: of the text without interventions.
        removed: True for tokens that are removed; where tokens are replaced, special and mask tokens stay.
        baseline: what replaces a token; None for the model's own, see `attnviz.effects.token_embeddings.BASELINES`.
        progress: called with the share that is done, 0 to 1.

    Raises:
        As `measured`, and `attnviz.effects.token_embeddings.EmbeddedText` or
        `attnviz.model.variants.states_of_variants`.
        ShapeError: ``removed`` does not have the text's number of tokens.
    """
    if removed.shape[1] != len(trace.tokens):
        raise ShapeError(
            f"{removed.shape[1]} tokens were to be taken away or kept; the text has {len(trace.tokens)}. Name each token once."
        )
    measure = measured(model, trace, outcome)
    if removal == "token_replaced":
        removed = removed & removable(model, trace.tokens)
    distinct, places = np.unique(removed, axis=0, return_inverse=True)
    if removal == "keys_masked":
        variants = [_masked(trace, removed) for removed in distinct]
        numbers = measured_variants(model, trace, variants, measure, progress=progress)
        return numbers[places.reshape(-1)]
    text = EmbeddedText(model, trace, baseline)
    numbers = np.zeros(len(distinct), dtype=np.float32)
    n_at_once = max(1, TOKENS_AT_ONCE // len(trace.tokens))
    for start in range(0, len(distinct), n_at_once):
        some = slice(start, start + n_at_once)
        with torch.inference_mode():
            numbers[some] = text.outcomes(measure, text.without(distinct[some])).float().cpu().numpy()
        if progress is not None:
            progress(min(1.0, (start + n_at_once) / len(distinct)))
    return numbers[places.reshape(-1)]


def _masked(trace: "Trace", is_removed: Bool[np.ndarray, " token"]) -> list[Intervention]:
    if not is_removed.any():
        return []
    return [
        MaskedKeys(kind=kind, allowed=np.tile(~is_removed, (len(trace.query_tokens(kind)), 1)))
        for kind in trace.kinds
        if trace.target_tokens is None or kind in ("encoder", "cross")
    ]
