"""Families whose attention class computes its scores itself, where transformers lets no other attention be registered.

For each family a function computes, with its own modules, what its scores are made of; each module gets a subclass
whose forward calls attnviz's attention with these. `attnviz.model.reference` keeps the family's forward, and listens to
its softmax.

Source: the modeling modules of transformers 5.23.0, and the papers named with each function.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from attnviz.arguments import typed
from attnviz.errors import ModelNotAvailableError, UnsupportedArchitectureError
from attnviz.model.capture import attnviz_attention
from attnviz.model.families import ADVICE, registered

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAttention:
    """What a family's attention class computes before its scores, and after the outputs of its heads."""

    inputs: Callable[..., Mapping[str, Any]]
    """From a module and the arguments of its forward to the arguments of `attnviz.model.capture.attnviz_attention`."""
    finish: Callable[[Any, Tensor], tuple[Tensor, ...] | tuple[Tensor, None]] = lambda module, output: (
        output,
        None,
    )
    """From a module and the heads' outputs, side by side, to what its forward returns."""
    is_causal: bool = False
    """Whether it is a decoder's, also where the module does not say so as BigBird's does."""


def _mpnet(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    **_: Any,
) -> dict[str, Any]:
    """T5's bias for relative positions, added to scaled scores (Song et al. 2020, arXiv:2004.09297)."""
    query, key, value = (
        _by_head(project(hidden_states), module.num_attention_heads)
        for project in (module.q, module.k, module.v)
    )
    return {
        "query": query,
        "key": key,
        "value": value,
        "attention_mask": attention_mask,
        "position_bias": position_bias,
    }


def _big_bird(
    module: Any, hidden_states: Tensor, attention_mask: Tensor | None = None, **_: Any
) -> dict[str, Any]:
    """Plain attention: BigBird's where it attends to all tokens (Zaheer et al. 2020, arXiv:2007.14062)."""
    query, key, value = (
        _by_head(project(hidden_states), module.num_attention_heads)
        for project in (module.query, module.key, module.value)
    )
    return {"query": query, "key": key, "value": value, "attention_mask": attention_mask}


def _deberta_v2(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor,
    output_attentions: bool = False,
    query_states: Tensor | None = None,
    relative_pos: Tensor | None = None,
    rel_embeddings: Tensor | None = None,
) -> dict[str, Any]:
    """Disentangled attention (He et al. 2021, arXiv:2006.03654, equation 4).

    To q · k are added the query times the key of the distance (content to position), and the key times the query of the
    distance (position to content). All are divided by sqrt(d (1 + n)), where n is the number of such terms.
    """
    n_head = module.num_attention_heads
    query = module.transpose_for_scores(
        module.query_proj(hidden_states if query_states is None else query_states), n_head
    )
    key, value = (
        module.transpose_for_scores(project(hidden_states), n_head)
        for project in (module.key_proj, module.value_proj)
    )  # [batch x head, token, d_head]
    n_term = 1 + sum(term in module.pos_att_type for term in ("c2p", "p2c"))
    bias = (
        module.disentangled_attention_bias(query, key, relative_pos, rel_embeddings, n_term)
        if module.relative_attention
        else None
    )
    query, key, value = (array.reshape(-1, n_head, *array.shape[1:]) for array in (query, key, value))
    return {
        "query": query,
        "key": key,
        "value": value,
        "attention_mask": attention_mask.bool(),
        "scaling": (query.shape[-1] * n_term) ** -0.5,
        "position_bias": bias.reshape(-1, n_head, *bias.shape[1:]) if isinstance(bias, Tensor) else None,
    }


def _deberta(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor,
    output_attentions: bool = False,
    query_states: Tensor | None = None,
    relative_pos: Tensor | None = None,
    rel_embeddings: Tensor | None = None,
) -> dict[str, Any]:
    """As `_deberta_v2`, with query, key and value from one product and distances that are not put into buckets."""
    query, key, value = module.transpose_for_scores(module.in_proj(hidden_states)).chunk(3, dim=-1)
    query = query + module.transpose_for_scores(module.q_bias[None, None])
    value = value + module.transpose_for_scores(module.v_bias[None, None])
    n_term = 1 + len(module.pos_att_type)
    scale = (query.shape[-1] * n_term) ** -0.5
    bias = None
    if module.relative_attention and rel_embeddings is not None and relative_pos is not None:
        bias = module.disentangled_att_bias(query * scale, key, relative_pos, rel_embeddings, n_term)
    return {
        "query": query,
        "key": key,
        "value": value,
        "attention_mask": attention_mask.bool(),
        "scaling": scale,
        "position_bias": bias if isinstance(bias, Tensor) else None,
    }


_CLASSES = {
    "modeling_mpnet.MPNetSelfAttention": OwnAttention(
        inputs=_mpnet, finish=lambda module, output: (module.o(output),)
    ),
    "modeling_big_bird.BigBirdSelfAttention": OwnAttention(inputs=_big_bird),
    "modeling_deberta_v2.DisentangledSelfAttention": OwnAttention(inputs=_deberta_v2),
    "modeling_deberta.DisentangledSelfAttention": OwnAttention(inputs=_deberta),
}
"""By module and name of a family's class, so that unused families are not imported."""


@typed
def register_attention(
    attention: type[nn.Module],
    inputs: Callable[..., Mapping[str, Any]],
    finish: Callable[[Any, Tensor], tuple[Any, ...]] | None = None,
    *,
    is_causal: bool = False,
) -> None:
    """Lets attnviz into a class of attention that computes its scores itself, for models that are loaded or wrapped after this.

    attnviz computes the class's attention from what ``inputs`` gives, and `attnviz.verify` compares it with the class's own
    forward, whose softmax (``torch.softmax``) and product of weights and values it observes: a term that was forgotten
    fails there. `attnviz.explain_family` shows what was found.

    Args:
        attention: the class of the module, as ``type(model.layers[0].attention)``; of any code.
        inputs: called with the module and the arguments of its forward; gives ``query`` [batch, head, query, d_head], ``key`` and
            ``value`` [batch, kv_head, key, d_head], and as far as there are any ``attention_mask`` [batch, 1 or head, query, key],
            boolean or added to the scores, ``scaling`` (1 / sqrt(d_head) if left out), ``position_bias`` [batch, head, query, key] and
            ``softcap``.
        finish: called with the module and the heads' outputs side by side, [batch, query, head x d_value]; gives what the forward
            returns. None for the outputs, and None for the weights.
        is_causal: whether it is a decoder's self-attention.

    >>> import attnviz
    >>> class Plain(torch.nn.Module):
    ...     def forward(self, states):
    ...         ...
    >>> attnviz.register_attention(Plain, lambda module, states: {"query": states, "key": states, "value": states})
    """
    own = OwnAttention(inputs=inputs, is_causal=is_causal)
    own = own if finish is None else replace(own, finish=finish)
    registered[attention] = own


def _known(family: type[nn.Module]) -> OwnAttention | None:
    """The entry for a family's attention class; None for classes not known here."""
    known: OwnAttention | None = registered.get(family)
    return known or _CLASSES.get(f"{family.__module__.rpartition('.')[2]}.{family.__name__}")


def take_over(network: "PreTrainedModel") -> None:
    """Replaces each attention class that is known here by attnviz's attention.

    Raises:
        ModelNotAvailableError: a DeBERTa of the first version in another dtype than float32.
        UnsupportedArchitectureError: a DeBERTa with more than disentangled attention.
    """
    if network.config.model_type in ("deberta", "deberta-v2"):
        _refuse_more(network)
    if (
        network.config.model_type == "big_bird"
    ):  # as the family itself does for texts up to the limit that attnviz gives it
        network.base_model.set_attention_type("original_full")  # type: ignore[operator]
    for module in network.modules():
        family: Any = type(module)
        if (own := _known(family)) is not None:
            module.__class__ = _taken_over(family, own)


def _refuse_more(network: "PreTrainedModel") -> None:
    """Refuses DeBERTas with more than disentangled attention, and those that transformers cannot run."""
    config, reason = network.config, None
    if config.model_type == "deberta" and network.dtype != torch.float32:  # some of its biases stay float32
        dtype = str(network.dtype).removeprefix("torch.")
        raise ModelNotAvailableError(
            f"DeBERTa was to be loaded in {dtype}, in which transformers cannot run it. Load it in float32."
        )
    if getattr(config, "talking_head", False):
        reason = "it mixes the scores and the weights of all heads (Shazeer et al. 2020, arXiv:2003.02436)"
    elif getattr(config, "conv_kernel_size", 0):
        reason = "it convolves the embeddings into what layer 0 leaves, so that no layer leaves what the next one reads"
    if reason is not None:
        raise UnsupportedArchitectureError(
            f"This model is of the family {config.model_type}, which attnviz can show, but {reason}. {ADVICE}",
            reason=reason,
        )


def given_back(module: nn.Module) -> OwnAttention | None:
    """Restores the own class of a module that was taken over; None for all other modules."""
    if (own := taken_over(type(module))) is not None:
        module.__class__ = type(module).__bases__[0]
    return own


def taken_over(class_: type[nn.Module]) -> OwnAttention | None:
    """What the family computes whose class this one took the place of; None for all other classes."""
    return _known(class_.__bases__[0])


@cache
def _taken_over(family: Any, own: OwnAttention) -> type[nn.Module]:
    """The subclass of a family's class on attnviz's attention."""

    def forward(module: nn.Module, *args: Any, **named: Any) -> Any:
        output, _ = attnviz_attention(module, **own.inputs(module, *args, **named))
        return own.finish(module, output.flatten(2))  # [batch, query, head x d_value]

    return subclass(family, own, forward)


def subclass(family: type[nn.Module], own: OwnAttention, forward: Callable[..., Any]) -> type[nn.Module]:
    """A family's class with another forward, and with ``is_causal``, which classes on a registered attention have."""
    is_causal = property(
        lambda module: own.is_causal or bool(getattr(module, "is_decoder", False))
    )  # BigBird's name
    return type(f"Attnviz{family.__name__}", (family,), {"forward": forward, "is_causal": is_causal})


def _by_head(vectors: Tensor, n_head: int) -> Tensor:
    """[batch, token, head x d_head] as [batch, head, token, d_head]."""
    return vectors.reshape(*vectors.shape[:-1], n_head, -1).transpose(1, 2)
