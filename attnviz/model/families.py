"""Which families attnviz cannot show, and why; they are refused before a checkpoint's weights are read.

What is refused later, by an argument of the attention that attnviz does not know, is in `attnviz.model.capture`.

Source: the modeling modules of transformers 5.23.0, and the papers named with each family.
"""

from typing import TYPE_CHECKING, Any

from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.configuration import text_config

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

ADVICE = "Select a model of another family, such as BERT, RoBERTa or GPT-2."

_OWN_CODE = "its attention is computed in code of its own, which attnviz does not know"

_GLOBAL = (
    "it attends in a sliding window, and the tokens that a task gives global attention have queries, keys and values of "
    "their own (Beltagy et al. 2020, arXiv:2004.05150), so that a head has no one query and key for each token"
)

REASONS = {
    "bigbird_pegasus": "it attends in blocks, some of them random (Zaheer et al. 2020, arXiv:2007.14062), and "
    "does not tell its decoder's attention from the one across",
    "bloom": "it adds a bias for distance (ALiBi, Press et al. 2022, arXiv:2108.12409), and " + _OWN_CODE,
    "codegen": _OWN_CODE,
    "convbert": "it mixes attention with convolutions (Jiang et al. 2020, arXiv:2008.02496), and "
    + _OWN_CODE,
    "diffllama": "its weights are the difference of two softmaxes (Ye et al. 2024, arXiv:2410.05258), which is "
    "another formula than scaled dot-product attention",
    "doge": "it does not say that its attention is a decoder's",
    "falcon": _OWN_CODE,
    "falcon_mamba": "it is a state space model without attention (Gu and Dao 2023, arXiv:2312.00752)",
    "flaubert": _OWN_CODE,
    "fnet": "it mixes tokens by Fourier transforms, without attention (Lee-Thorp et al. 2021, arXiv:2105.03824)",
    "fsmt": _OWN_CODE,
    "funnel": "its scores have terms for relative positions and its layers pool queries (Dai et al. 2020, "
    "arXiv:2006.03236), and " + _OWN_CODE,
    "gpt_neo": _OWN_CODE,
    "gpt_neox_japanese": _OWN_CODE,
    "gptj": _OWN_CODE,
    "ibert": _OWN_CODE,
    "led": _GLOBAL,
    "longformer": _GLOBAL,
    "longt5": "its encoder attends in local blocks (Guo et al. 2022, arXiv:2112.07916), in code of its own, which "
    "attnviz does not know",
    "luke": _OWN_CODE,
    "mamba": "it is a state space model without attention (Gu and Dao 2023, arXiv:2312.00752)",
    "mamba2": "it is a state space model without attention (Dao and Gu 2024, arXiv:2405.21060)",
    "megatron-bert": _OWN_CODE,
    "mpt": "it adds a bias for distance (ALiBi, Press et al. 2022, arXiv:2108.12409), and " + _OWN_CODE,
    "mra": "it approximates attention at several resolutions (Zeng et al. 2022, arXiv:2207.10284), and "
    + _OWN_CODE,
    "mvp": _OWN_CODE,
    "nllb-moe": "it does not tell its decoder's attention from the one across",
    "nystromformer": "it approximates attention by landmarks (Xiong et al. 2021, arXiv:2102.03902), and "
    + _OWN_CODE,
    "openai-gpt": _OWN_CODE,
    "pegasus_x": "its encoder attends in blocks (Phang et al. 2022, arXiv:2208.04347), in code of its own, which "
    "attnviz does not know",
    "prophetnet": "its decoder has a second stream for each token ahead (Qi et al. 2020, arXiv:2001.04063), and "
    + _OWN_CODE,
    "reformer": "it attends within buckets of like tokens (Kitaev et al. 2020, arXiv:2001.04451), and "
    + _OWN_CODE,
    "rembert": _OWN_CODE,
    "roformer": _OWN_CODE,
    "rwkv": "it is a recurrent network without attention (Peng et al. 2023, arXiv:2305.13048)",
    "squeezebert": _OWN_CODE,
    "xglm": _OWN_CODE,
    "xlm": _OWN_CODE,
    "xlnet": "its scores have terms for relative positions (Dai et al. 2019, arXiv:1901.02860), and "
    + _OWN_CODE,
    "yoso": "it samples attention by hashing (Zeng et al. 2021, arXiv:2111.09714), and " + _OWN_CODE,
}
"""Why a family cannot be shown, by ``model_type`` of a configuration."""

registered: dict[type, Any] = {}
"""Classes of attention that `attnviz.register_attention` was given, whose families are none that attnviz does not know; and what it
was given with each."""

COMPOSED = {
    "dpr": "its network gives one vector for a text (Karpukhin et al. 2020, arXiv:2004.04906), and no last hidden states",
    "encoder-decoder": "it joins two models with a configuration each, which transformers' AutoModel does not load. Its encoder "
    "can be shown alone, saved with model.encoder.save_pretrained",
    "rag": "it joins a model that searches documents and one that writes, which transformers' AutoModel does not load",
    "speech-encoder-decoder": "it reads speech, and attnviz shows models of text alone",
    "vision-encoder-decoder": "it reads images, and attnviz shows models of text alone",
}
"""Why models that join several, or give no states of a text, cannot be shown, by ``model_type`` of a configuration."""

_NO_NETWORK = "transformers' AutoModel has no network of it, as it has none of what is only a part of other models, or joins several"

_NOT_ATTENTION = {
    "linear_attention": "linear attention or a recurrence",
    "conv": "convolutions",
    "moe": "feed-forward alone",
}
"""What a layer has instead of attention, by its name in a configuration's ``layer_types``."""


_MODALITIES = {"image": "images", "time": "series of numbers"}
"""Plurals of modalities whose names in transformers' ``input_modalities`` are none."""
_ROTARY = ("rotary", "rope")
"""Names of rotary positions (Su et al. 2021, arXiv:2104.09864) in a configuration's ``position_embedding_type``."""
_MORE_POSITIONS = {"esm": ("rotary",), "granitemoehybrid": ("nope",)}
"""Positions that a family's class computes beside absolute and, where its configuration has them, rotary ones."""


def refuse_unsupported(name: str, config: "PreTrainedConfig") -> None:
    """Does nothing for a configuration whose model, or its nested part for text, attnviz may be able to show.

    Raises:
        UnsupportedArchitectureError: its attention is not known, follows another formula, or is not in each layer; it asks for
            positions that transformers does not compute for its family; or it reads no text.
    """
    text = text_config(config)
    _refuse_positions(name, text)
    reason = (
        COMPOSED.get(config.model_type)
        or (None if _is_registered(text) else REASONS.get(config.model_type) or REASONS.get(text.model_type))
        or _hybrid(text)
        or _reads_more(text)
        or (None if _has_network(config) else _NO_NETWORK)
    )
    if reason is not None:
        raise UnsupportedArchitectureError(
            f"{name} is of the family {config.model_type}, which attnviz cannot show: {reason}. {ADVICE}",
            reason=reason,
        )


def _is_registered(config: "PreTrainedConfig") -> bool:
    """Whether a class of attention from the module beside a configuration was registered."""
    family = type(config).__module__.rpartition(".")[0]
    return any(attention.__module__.startswith(f"{family}.") for attention in registered if family)


def _has_network(config: "PreTrainedConfig") -> bool:
    """Whether an Auto class of transformers makes a network, or one with a language head, of this configuration."""
    from transformers import (
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
        MODEL_FOR_MASKED_LM_MAPPING,
        MODEL_MAPPING,
    )

    mappings = (
        MODEL_MAPPING,
        MODEL_FOR_CAUSAL_LM_MAPPING,
        MODEL_FOR_MASKED_LM_MAPPING,
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    )
    return any(type(config) in mapping for mapping in mappings)


def _reads_more(config: "PreTrainedConfig") -> str | None:
    """What its network reads other than text, according to transformers; None where it reads text alone."""
    from transformers import MODEL_MAPPING

    if type(config) not in MODEL_MAPPING:
        return None
    networks: Any = MODEL_MAPPING[type(config)]
    network = networks[0] if isinstance(networks, tuple) else networks
    given = network.input_modalities
    modalities = (given,) if isinstance(given, str) else tuple(given)
    if modalities == ("text",):
        return None
    return f"it reads {' and '.join(_MODALITIES.get(modality, modality) for modality in modalities)}, and attnviz shows models of text alone"


def _refuse_positions(name: str, config: "PreTrainedConfig") -> None:
    """Raises UnsupportedArchitectureError where a configuration asks for positions that its family's class does not compute.

    transformers 5 dropped the relative positions of BERT and its kin: it reads their checkpoints as if they had absolute ones.
    """
    kind = getattr(config, "position_embedding_type", None)
    rotary = _ROTARY if hasattr(config, "rope_parameters") else ()
    if kind in (None, "absolute", *rotary, *_MORE_POSITIONS.get(config.model_type, ())):
        return
    paper = " (Shaw et al. 2018, arXiv:1803.02155)" if str(kind).startswith("relative_key") else ""
    reason = f"its positions are of the type {kind}{paper}, which transformers does not compute for {config.model_type}"
    raise UnsupportedArchitectureError(
        f"attnviz cannot show {name}: {reason}, so its numbers would be those of another model. Select a checkpoint with "
        "absolute positions.",
        reason=reason,
    )


def _hybrid(config: "PreTrainedConfig") -> str | None:
    """Which layers have no attention; None where all have."""
    types = getattr(config, "layer_types", None) or ()
    without = [number for number, layer_type in enumerate(types) if layer_type in _NOT_ATTENTION]
    if not without:
        return None
    kinds = " and ".join(dict.fromkeys(_NOT_ATTENTION[types[number]] for number in without))
    return f"it has layers without attention weights ({len(without)} of {len(types)}, such as layer {without[0]}): {kinds}"
