"""What a configuration says about the part that reads text: its layers, how long texts may be, where they begin and end."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.catalogue import CONFIG_FILE
from attnviz.records import Kind

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedConfig, PreTrainedModel


def text_config(config: "PreTrainedConfig") -> "PreTrainedConfig":
    """The configuration of the part that reads text.

    It is nested as ``text_config`` where a model reads images or sounds as well; otherwise it is the configuration itself.
    """
    return getattr(config, "text_config", None) or config


def _side(config: "PreTrainedConfig", kind: Kind) -> "PreTrainedConfig":
    """The configuration of the encoder or the decoder, where these are nested (T5Gemma); otherwise the whole one."""
    if not config.is_encoder_decoder and hasattr(
        config, "num_hidden_layers"
    ):  # T5Gemma's encoder alone has none
        return config
    return getattr(config, "encoder" if kind == "encoder" else "decoder", None) or config


def layer_count(config: "PreTrainedConfig", kind: Kind) -> int:
    """Number of layers with this kind of attention.

    Args:
        config: of the part that reads text.
    """
    side = _side(config, kind)
    if kind != "encoder":  # of a decoder alone too, such as BartForCausalLM
        for name in ("decoder_layers", "num_decoder_layers"):
            if hasattr(side, name):
                return int(getattr(side, name))
    return int(side.num_hidden_layers)


def call_count(config: "PreTrainedConfig", kind: Kind) -> int:
    """Number of attention calls of a pass: of an encoder-decoder model one for each layer of the encoder, two for each of the decoder.

    Args:
        kind: any kind of attention that the model has; of a model that is an encoder or a decoder alone, that one.
    """
    if getattr(config, "is_encoder_decoder", False):
        return layer_count(config, "encoder") + 2 * layer_count(config, "decoder")
    return layer_count(config, kind)


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


def generation_config(folder: Path) -> "GenerationConfig":
    """The settings that ``generate`` goes by: generation_config.json, or else what config.json has of them.

    Source: ``adjust_generation_fn`` of transformers 5.23.0.
    """
    from transformers import GenerationConfig

    try:
        return GenerationConfig.from_pretrained(folder, local_files_only=True)
    except OSError:  # there is no generation_config.json
        return GenerationConfig.from_pretrained(
            folder, config_file_name=CONFIG_FILE, _from_model_config=True, local_files_only=True
        )


def decoder_start(network: "PreTrainedModel") -> int:
    """Id of the token that the decoder of an encoder-decoder model reads first: that with which ``generate`` starts.

    Where ``generate`` has none and fails, it is the one that the model's own training starts with.

    Source: ``_prepare_special_tokens`` of transformers 5.23.0; ``_shift_right`` of its T5Gemma.

    Raises:
        UnsupportedArchitectureError: the configurations do not say.
    """
    generation, side = getattr(network, "generation_config", None), _side(network.config, "decoder")
    for config, name in (
        (generation, "decoder_start_token_id"),
        (generation, "bos_token_id"),
        (network.config, "decoder_start_token_id"),
        (None if side is network.config else side, "bos_token_id"),
    ):
        if isinstance(start := getattr(config, name, None), list) and len(start) == 1:  # one for each text
            [start] = start
        if isinstance(start, int):
            return start
    raise UnsupportedArchitectureError(
        f"The configuration of {type(network).__name__} does not say which token its decoder starts with. "
        "Set decoder_start_token_id in its generation_config.json."
    )


def start_remark(folder: Path | None, start: int) -> str:
    """Which file names the token that a decoder started with, where config.json names another one; else empty."""
    if folder is None:
        return ""
    name = "decoder_start_token_id"
    try:
        other = json.loads((folder / CONFIG_FILE).read_bytes()).get(name)
        settings = json.loads((folder / "generation_config.json").read_bytes())
    except (OSError, ValueError):  # one of them is not there, or was removed since
        return ""
    if other in (None, start) or start not in (settings.get(name), settings.get("bos_token_id")):
        return ""
    return (
        f"The decoder starts with the token of id {start}, as generation_config.json has it and generate does; "
        f"{CONFIG_FILE} has {other}."
    )


def end_ids(network: "PreTrainedModel") -> set[int]:
    """Ids of the tokens with which ``generate`` ends a text."""
    ends = getattr(network.generation_config, "eos_token_id", None)
    return {ends} if isinstance(ends, int) else set(ends or ())
