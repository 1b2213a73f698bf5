"""What a decoder writes, in a worker process."""

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
    """What a decoder writes after some tokens, with the attention of every step; each token is told as it is written."""
    return continue_text(
        with_model.own(name),
        read,
        n_tokens=n_tokens,
        temperature=temperature,
        seed=seed,
        picks=picks,
        progress=progress,
    )
