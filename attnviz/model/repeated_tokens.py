"""Random tokens, repeated once in the same order: a text that says nothing but repeats itself.

What a head does on it cannot come from what the words mean.

Source: Olsson et al. 2022, "In-context Learning and Induction Heads" (arXiv:2209.11895), whose prefix matching score is of
random tokens that are repeated.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attnviz.errors import SelectionError
from attnviz.model.model import Model, n_rows
from attnviz.model.token_labels import labels_of
from attnviz.model.trace import Trace
from attnviz.records import Tokens

FEWEST = 2
"""Fewest different tokens: a single token and its twin would be followed by the same token."""


def trace_repeated(model: Model, *, n_token: int, seed: int) -> Trace:
    """The trace of random tokens, read twice in the same order; no token is drawn twice.

    The special tokens that the tokenizer adds to a text surround them. In an encoder-decoder model, the decoder reads the
    same tokens after its start token. Fewer are drawn if the model reads fewer, or has fewer in its vocabulary.

    Args:
        n_token: different tokens; the text has twice as many.
        seed: of the draw.

    Raises:
        SelectionError: the model reads fewer than four tokens beside its special ones, or knows fewer than two.
        ModelFailedError, CaptureError, OutOfMemoryError, UnsupportedArchitectureError: as `Model.trace_tokens`.
    """
    ordinary = _ordinary_ids(model)
    drawn = np.random.default_rng(seed).permutation(ordinary)[:n_token]
    read = model.tokenize(model.decode(drawn.tolist()), cut=True)
    of_text = np.flatnonzero(~read.is_added)
    before, after = read.ids[: of_text[0]], read.ids[of_text[-1] + 1 :]
    target = model.probe().target_tokens if model.network.config.is_encoder_decoder else None
    start = np.zeros(0, dtype=np.int64) if target is None else target.ids
    n_added = max(len(before) + len(after), len(start))
    room = 2 * n_token if model.max_tokens is None else model.max_tokens - n_added
    drawn = drawn[: max(room // 2, 0)]
    if len(drawn) < FEWEST:
        raise SelectionError(
            f"Random tokens were to be read twice; {model.name} has room for {len(drawn)} different ones, and {FEWEST} are "
            "needed. Select another model."
        )
    return model.trace_tokens(
        _repeated(model, before, drawn, after, read.language),
        None if target is None else _repeated(model, start, drawn, (), target.language),
    )


def _ordinary_ids(model: Model) -> Int[np.ndarray, " token"]:
    """Ids of ordinary tokens: those that the model has embeddings for, without special and added ones."""
    readers = [model.network]
    if model.network.config.is_encoder_decoder:
        readers.append(model.network.get_decoder())  # type: ignore[no-untyped-call]
    rows = [n_row for reader in readers if (n_row := n_rows(reader)) is not None]
    known = np.arange(min(len(model.tokenizer), *rows))
    added = [*model.tokenizer.all_special_ids, *model.tokenizer.added_tokens_decoder]
    return known[~np.isin(known, added)]


def _repeated(
    model: Model,
    before: Sequence[int] | np.ndarray,
    drawn: np.ndarray,
    after: Sequence[int] | np.ndarray,
    language: str | None,
) -> Tokens:
    """The tokens twice, between special ones."""
    ids = np.concatenate([before, drawn, drawn, after]).astype(np.int64)
    is_special = np.ones(len(ids), dtype=bool)
    is_special[len(before) : len(ids) - len(after)] = False
    return Tokens(
        text="",
        ids=ids,
        labels=labels_of(model.tokenizer, ids.tolist()),
        is_special=is_special,
        segment=np.zeros(len(ids), dtype=np.int64),
        word=np.where(is_special, -1, np.cumsum(~is_special) - 1),
        language=language,
    )
