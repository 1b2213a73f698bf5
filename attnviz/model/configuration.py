"""What a configuration says about the part that reads text: its layers, how long texts may be, where they begin and end."""

from typing import TYPE_CHECKING

from attnviz.errors import UnsupportedArchitectureError
from attnviz.records import Kind

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


def text_config(config: "PreTrainedConfig") -> "PreTrainedConfig":
    """The configuration of the part that reads text.

    It is nested as ``text_config`` where a model reads images or sounds as well; otherwise it is the configuration itself.
    """
    return getattr(config, "text_config", None) or config


def _side(config: "PreTrainedConfig", kind: Kind) -> "PreTrainedConfig":
    """The configuration of the encoder or the decoder, where these are nested (T5Gemma); otherwise the whole one."""
    if not config.is_encoder_decoder:
        return config
    return getattr(config, "encoder" if kind == "encoder" else "decoder", None) or config


def layer_count(config: "PreTrainedConfig", kind: Kind) -> int:
    """Number of layers with this kind of attention.

    Args:
        config: of the part that reads text.
    """
    side = _side(config, kind)
    if config.is_encoder_decoder and kind != "encoder":
        for name in ("decoder_layers", "num_decoder_layers"):
            if hasattr(side, name):
                return int(getattr(side, name))
    return int(side.num_hidden_layers)


def position_limit(network: "PreTrainedModel") -> int | None:
    """Number of positions that the model has, without those that RoBERTa-like models keep for padding; None for no limit.

    XLNet writes "no limit" as -1. A block-sparse BigBird attends to all tokens only in texts up to a length (transformers 5.23.0,
    ``max_tokens_to_attend`` in BigBirdModel.forward), and is shown only for these.
    """
    limit = getattr(_side(network.config, "encoder"), "max_position_embeddings", None)
    if getattr(network.config, "attention_type", None) == "block_sparse":
        full = (5 + 2 * network.config.num_random_blocks) * network.config.block_size
        limit = full if limit is None else min(limit, full)
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
    if (side := _side(network.config, "decoder")) is not network.config and side.bos_token_id is not None:
        return int(side.bos_token_id)  # transformers 5.23.0, ``_shift_right`` of T5Gemma
    raise UnsupportedArchitectureError(
        f"The configuration of {type(network).__name__} does not say which token its decoder starts with. "
        "Set decoder_start_token_id in its config.json."
    )


def end_ids(*parts: "PreTrainedModel | None") -> set[int]:
    """Ids of the tokens with which a network, or its head, ends a text."""
    ids: set[int] = set()
    for part in filter(None, parts):
        for config in (part.config, getattr(part, "generation_config", None)):
            ends = getattr(config, "eos_token_id", None)
            ids |= {ends} if isinstance(ends, int) else set(ends or ())
    return ids
