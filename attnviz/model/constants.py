"""Constants that a checkpoint's file may hold and that its class makes itself, or does not read.

What may be left out of a model without changing its numbers. Each constant is known by its family, name and shape, and
by its numbers where these can be computed; nothing else of a layer is left out.

Source: the buffers of the classes of transformers 5.23.0, and ``_keys_to_ignore_on_load_unexpected`` of these and of
transformers 4, whose checkpoints have them.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from attnviz.model.configuration import text_config

_ROUNDING = 1e-5
"""Relative difference between frequencies that two versions of torch compute in float32."""
_HALF_ROUNDINGS = 10
"""Relative difference, in roundings of the file's type, between frequencies computed in half precision and in float32: an exponent
of up to ln 10,000, about 9, is rounded."""
_WAVES = 1e-3
"""Difference between sines, or cosines, of 1,000 positions that are rounded differently; their table has two axes."""
_LARGE_NEGATIVE = -1e4
"""Masked scores are at most this in GPT-2, and -1e9, infinite in float16, in GPT-NeoX."""


def _counts(tensor: Tensor, config: PreTrainedConfig) -> bool:
    return _is_row(tensor) and _equals(tensor, torch.arange(tensor.shape[-1]))


def _zeros(tensor: Tensor, config: PreTrainedConfig) -> bool:
    return _is_row(tensor) and not tensor.any()


def _causal(tensor: Tensor, config: PreTrainedConfig) -> bool:
    """Whether this is a square mask, in which a query sees itself and what comes before it."""
    n = tensor.shape[-1] if tensor.ndim else 0
    if tensor.shape not in ((n, n), (1, 1, n, n)):
        return False
    return _equals(tensor.reshape(n, n), torch.ones(n, n, dtype=torch.bool).tril())


def _masked_score(tensor: Tensor, config: PreTrainedConfig) -> bool:
    return tensor.numel() == 1 and tensor.item() <= _LARGE_NEGATIVE


def _one_number(tensor: Tensor, config: PreTrainedConfig) -> bool:
    return tensor.numel() == 1


def _buckets(tensor: Tensor, config: PreTrainedConfig) -> bool:
    """T5's cross-attention, whose bias for distances the first checkpoints hold and no version reads."""
    return tensor.shape == (config.relative_attention_num_buckets, config.num_heads)


def _unread_positions(tensor: Tensor, config: PreTrainedConfig) -> bool:
    """A table of learned positions beside relative or rotary ones, which do not read it."""
    is_read = (
        config.position_embedding_type != "rotary"
        if config.model_type == "esm"
        else config.position_biased_input
    )
    width = getattr(config, "embedding_size", config.hidden_size)
    return not is_read and tensor.shape == (config.max_position_embeddings, width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Constant:
    """One constant of a file, by its name within the network."""

    families: frozenset[str] | None
    """By ``model_type``; None for any class that makes a buffer of that name."""
    name: re.Pattern[str]
    """How a tensor's name ends, from the beginning of a module's or a tensor's name on."""
    is_as_known: Callable[[Tensor, PreTrainedConfig], bool]
    """Whether it has the shape, and the numbers where they are known."""


_Judge = Callable[[Tensor, PreTrainedConfig], bool]


def _constant(families: str | None, name: str, is_as_known: _Judge) -> _Constant:
    of = None if families is None else frozenset(families.split())
    return _Constant(families=of, name=re.compile(rf"(?:^|\.)(?:{name})$"), is_as_known=is_as_known)


_FAIRSEQ = "bart mbart plbart pegasus blenderbot blenderbot-small marian m2m_100 opt biogpt"
_KNOWN = (
    _constant(None, r"position_ids", _counts),
    _constant(None, r"token_type_ids", _zeros),
    _constant("gpt2 gpt_bigcode", r"(attn|crossattention)\.bias", _causal),
    _constant("gpt2 gpt_bigcode", r"(attn|crossattention)\.masked_bias", _masked_score),
    _constant("gpt_neox", r"attention\.bias", _causal),
    _constant("gpt_neox", r"attention\.masked_bias", _masked_score),
    _constant(_FAIRSEQ, r"(encoder|decoder)\.version", _one_number),
    _constant(
        "t5 mt5 umt5",
        r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
        _buckets,
    ),
    _constant("deberta deberta-v2 esm", r"embeddings\.position_embeddings\.weight", _unread_positions),
)
"""What is left out beside buffers that the class makes, which are compared with these."""

_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


class Constants:
    """The constants of one model's class."""

    def __init__(self, whole: PreTrainedModel) -> None:
        parameters = {_last(name) for name, _ in whole.named_parameters()}
        self._config = text_config(whole.config)
        self._made = {
            name: [buffer, *_without_scaling(whole, name)]
            for name, buffer in whole.named_buffers()
            if _last(name) not in parameters
        }
        self._unread = [re.compile(pattern) for pattern in whole._keys_to_ignore_on_load_unexpected or ()]

    def is_known(self, names: Iterable[str], tensor: Tensor) -> bool | None:
        """Whether a tensor without a place in the model is the constant that it is named after; None where no constant has its name.

        Args:
            names: the file's name of it and the class's.
        """
        for name in names:
            if (judged := self._judged(name, tensor)) is not None:
                return judged
        return None

    def is_unread(self, name: str) -> bool:
        """Whether transformers lists a name as one that the class does not read; a list that says nothing of shapes."""
        return any(_begins(pattern, name) for pattern in self._unread)

    def _judged(self, name: str, tensor: Tensor) -> bool | None:
        last = _last(name)
        made = [buffers for path, buffers in self._made.items() if _last(path).endswith(last)]
        for known in _KNOWN:
            is_of_class = bool(made) if known.families is None else self._config.model_type in known.families
            if is_of_class and known.name.search(name):
                return known.is_as_known(tensor, self._config)
        layer = _LAYER.search(name)
        if layer is not None and int(layer[1]) >= self._config.num_hidden_layers and self.is_unread(name):
            return True  # a layer that predicts tokens farther ahead, as DeepSeek-V3's last one
        if made:
            return any(_is_close(tensor, buffer) for buffers in made for buffer in buffers)
        return None


def _without_scaling(whole: PreTrainedModel, buffer: str) -> list[Tensor]:
    """Frequencies of rotary positions before the configuration's scaling, as transformers before version 5 wrote them."""
    module: Any = whole.get_submodule(buffer.rpartition(".")[0])
    kind = getattr(module, "rope_type", "default")
    if (
        not isinstance(kind, str)
        or kind == "default"
        or not hasattr(module, "compute_default_rope_parameters")
    ):
        return []
    return [module.compute_default_rope_parameters(module.config)[0]]


def _is_close(tensor: Tensor, buffer: Tensor) -> bool:
    """Whether a constant of a file equals the class's within what its type rounds."""
    if tensor.shape != buffer.shape:
        return False
    if not (tensor.is_floating_point() and buffer.is_floating_point()):
        return _equals(tensor, buffer)
    kind = torch.finfo(tensor.dtype)
    rounding = _ROUNDING if kind.bits > 16 else _HALF_ROUNDINGS * kind.eps
    least = _WAVES if buffer.ndim == 2 else kind.smallest_normal * kind.eps
    return torch.allclose(tensor.double(), buffer.double(), rtol=rounding, atol=least)


def _is_row(tensor: Tensor) -> bool:
    return tensor.ndim == 1 or (tensor.ndim == 2 and len(tensor) == 1)


def _equals(tensor: Tensor, known: Tensor) -> bool:
    """Whether these are the same numbers, whatever the types, after rounding to the tensor's."""
    return torch.equal(tensor.squeeze().double(), known.to(tensor.dtype).squeeze().double())


def _begins(pattern: re.Pattern[str], name: str) -> bool:
    """Whether a pattern is found in a name where a module or a tensor begins: "attn.bias" is not in "c_attn.bias"."""
    return any(f".{name}"[dot.start()] == "." for dot in pattern.finditer(name))


def _last(name: str) -> str:
    """The name of a tensor within its module; older checkpoints have some buffers in every layer, or in another module."""
    return name.rpartition(".")[2]
