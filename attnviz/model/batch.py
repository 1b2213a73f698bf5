"""Texts that run through a model together: which ones, and the padding after each."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils.rnn import pad_sequence

from attnviz.model.configuration import text_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MOST_TEXTS = 32
TOKENS_OF_BATCH = 4096
"""Most tokens of a batch, padding included. On two cores larger batches are no faster, and need more memory."""


def batches(
    lengths: Sequence[int], *, most_texts: int = MOST_TEXTS, most_tokens: int = TOKENS_OF_BATCH
) -> Iterator[list[int]]:
    """Numbers of the texts of each batch, short texts first, so that texts of similar length run together.

    A text of more than ``most_tokens`` is a batch of its own.
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == most_texts or (len(batch) + 1) * lengths[number] > most_tokens):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def padded(network: "PreTrainedModel", inputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The arguments of a network's forward for several texts, from those of each, with padding after each.

    Padding comes after a text, whichever side its tokenizer pads, so that every token keeps the position that it has alone.
    Texts of equal length get no mask, like a single text.

    Args:
        inputs: as `attnviz.model.model.Model.inputs`.
    """
    if len(inputs) == 1:
        return dict(inputs[0])
    padding = getattr(text_config(network.config), "pad_token_id", None) or 0
    together: dict[str, Any] = {}
    for name, first in inputs[0].items():
        if not torch.is_tensor(first):
            together[name] = first
            continue
        rows = [row[name][0] for row in inputs]
        fill = padding if name.endswith("input_ids") else 0
        together[name] = pad_sequence(rows, batch_first=True, padding_value=fill)
        if name.endswith("input_ids") and len({len(row) for row in rows}) > 1:
            mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
            together[name.replace("input_ids", "attention_mask")] = mask
    return together
