"""Token ids that were given in place of a text: as a list or an array, or as a tokenizer of transformers gives them.

Imports no torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.arguments import described, is_number
from attnviz.errors import ArgumentError, EmptyTextError, ShapeError
from attnviz.model.token_labels import labels_in_text
from attnviz.model.tokenization import special_ids
from attnviz.records import Tokens, words_of_labels

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenIds:
    """The ids of one text."""

    ids: Sequence[int]
    segment: Sequence[int] | None = None
    """0 or 1 for each token; None for 0."""
    target: Sequence[int] | None = None
    """What a decoder reads, where there is an encoder too."""


def is_ids(given: Any) -> bool:
    """Whether ids were given, not texts."""
    if isinstance(given, Mapping):
        return "input_ids" in given
    if hasattr(given, "dtype") and hasattr(given, "shape"):
        return _plain(given).dtype.kind in "iu"
    if not isinstance(given, list | tuple) or not given:
        return False
    return all(map(is_number, given)) or all(not isinstance(row, Mapping) and is_ids(row) for row in given)


def _plain(given: Any) -> np.ndarray:
    """An array of numpy, of a tensor on any device too."""
    return np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)


def read_ids(given: Any) -> list[GivenIds]:
    """The ids of each text, without its padding.

    Args:
        given: ids [token] or [text, token]; or what a tokenizer gives: these as ``input_ids``, with ``attention_mask`` (0 for
            padding), ``token_type_ids``, ``decoder_input_ids`` and ``decoder_attention_mask`` as far as it has any.

    Raises:
        ArgumentError: no whole numbers of 0 or more.
        EmptyTextError: a text without ids.
        ShapeError: parts of different shapes.
    """
    named: Mapping[str, Any] = given if isinstance(given, Mapping) else {"input_ids": given}
    ids = _rows(named["input_ids"])
    is_read = _beside(named, "attention_mask", ids)
    segment = _beside(named, "token_type_ids", ids)
    target = _rows(named["decoder_input_ids"]) if named.get("decoder_input_ids") is not None else None
    if target is not None and len(target) != len(ids):
        raise ShapeError(
            f"{len(ids)} texts and {len(target)} decoder_input_ids were given. Give one for each text."
        )
    is_written = None if target is None else _beside(named, "decoder_attention_mask", target)
    texts = []
    for number, row in enumerate(ids):
        kept = row[_kept(is_read, number)]
        if not len(kept):
            raise EmptyTextError(f"Text {number + 1} of {len(ids)} has no ids. Give at least one.")
        texts.append(
            GivenIds(
                ids=kept.tolist(),
                segment=None if segment is None else segment[number][_kept(is_read, number)].tolist(),
                target=None if target is None else target[number][_kept(is_written, number)].tolist(),
            )
        )
    return texts


def _kept(mask: Sequence[np.ndarray] | None, number: int) -> Any:
    """Which ids of a text are no padding."""
    return slice(None) if mask is None else mask[number].astype(bool)


def _rows(given: Any) -> list[np.ndarray]:
    """Ids of each text, of equal length or not."""
    rows = (
        given
        if isinstance(given, list | tuple) and given and not is_number(given[0])
        else np.atleast_2d(_plain(given))
    )
    arrays = [row.astype(np.int64) if row.dtype == bool else row for row in map(_plain, rows)]
    if not arrays or any(row.ndim != 1 or row.dtype.kind not in "iu" or (row < 0).any() for row in arrays):
        raise ArgumentError(
            f"Ids were given as {described(given)}; they are whole numbers of 0 or more, [token] or [text, token]. Pass those."
        )
    return arrays


def _beside(named: Mapping[str, Any], name: str, ids: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """A number for each id; None where it was not given."""
    if named.get(name) is None:
        return None
    rows = _rows(named[name])
    if [len(row) for row in rows] != [len(row) for row in ids]:
        raise ShapeError(f"{name} has another shape than input_ids. Give a number for each id.")
    return rows


def tokens_of(
    tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int], segment: Sequence[int] | None = None
) -> Tokens:
    """The tokens of ids as they are, whatever text the tokenizer would make them of.

    Words are told by the pieces alone: one begins with every piece that does not go on a word, as "##ing" does.

    Args:
        segment: as `GivenIds`.
    """
    labels, pieces = labels_in_text(tokenizer, ids)
    is_special = np.isin(ids, list(special_ids(tokenizer)))
    return Tokens(
        text=str(tokenizer.decode(list(ids), skip_special_tokens=True)),
        ids=np.array(ids, dtype=np.int64),
        labels=labels,
        pieces=pieces,
        is_special=is_special,
        segment=np.zeros(len(ids), dtype=np.int64) if segment is None else np.array(segment, dtype=np.int64),
        word=words_of_labels(labels, is_special),
        template="ids",
        in_text=tuple(np.flatnonzero(is_special).tolist()),
    )
