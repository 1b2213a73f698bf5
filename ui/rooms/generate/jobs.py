"""Generates text with a decoder, in a worker process."""

from collections.abc import Mapping

from attnviz.model.continuation import Continuation, Told, continue_text
from attnviz.records import Tokens
from ui.runtime import with_model


def write(
    name: str,
    read: Tokens,
    *,
    n_tokens: int,
    temperature: float,
    seed: int,
    picks: Mapping[int, int],
    progress: Told,
) -> Continuation:
    """A decoder's continuation of some tokens, with the attention of every step; each token is reported at once."""
    return continue_text(
        with_model.own(name),
        read,
        n_tokens=n_tokens,
        temperature=temperature,
        seed=seed,
        picks=picks,
        progress=progress,
    )
