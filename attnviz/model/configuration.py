"""What a network's configuration says of the texts that it reads and writes: how long, and where they begin and end."""

from typing import TYPE_CHECKING

from attnviz.errors import UnsupportedArchitectureError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def position_limit(network: "PreTrainedModel") -> int | None:
    """Number of positions that the model has, without those that RoBERTa-like models keep for padding; None for no limit.

    XLNet writes "no limit" as -1.
    """
    limit = getattr(network.config, "max_position_embeddings", None)
    if limit is None or limit <= 0:
        return None
    positions = getattr(getattr(network, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    return int(limit) if padding is None else int(limit) - padding - 1


def decoder_start(network: "PreTrainedModel") -> int:
    """Id of the token that the decoder of an encoder-decoder model reads first.

    Raises:
        UnsupportedArchitectureError: the configuration does not say.
    """
    for config in (network.config, getattr(network, "generation_config", None)):
        if (start := getattr(config, "decoder_start_token_id", None)) is not None:
            return int(start)
    raise UnsupportedArchitectureError(
        f"The configuration of {type(network).__name__} does not say which token its decoder starts with. "
        "Set decoder_start_token_id in its config.json."
    )


def end_ids(*parts: "PreTrainedModel | None") -> set[int]:
    """Ids of the tokens with which a network, or its head, ends a text."""
    found: set[int] = set()
    for part in filter(None, parts):
        for config in (part.config, getattr(part, "generation_config", None)):
            ends = getattr(config, "eos_token_id", None)
            found |= {ends} if isinstance(ends, int) else set(ends or ())
    return found
