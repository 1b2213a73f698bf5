"""Llama and GPT-2 in float64 on transformers' own attention, changed by torch's hooks: another way to the numbers of patches.

A site is a part of a module's input or output; of a head's queries and keys the vectors before rotary positions, which are turned
alike in both texts.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers as tf
from torch import Tensor, nn


class Site(NamedTuple):
    """Columns of what enters or leaves a module."""

    module: nn.Module
    is_input: bool
    columns: slice = slice(None)


Edit = tuple[Site, Callable[[Tensor], Tensor]]
"""A site and what becomes of its columns, [token, d]."""


class Hooked:
    """A checkpoint of one of the two families, read by transformers alone."""

    def __init__(self, folder: Path) -> None:
        loaded: Any = tf.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64)
        self.network = loaded.eval()
        config = self.network.config
        self.is_llama = config.model_type == "llama"
        self.layers = self.network.layers if self.is_llama else self.network.h
        self.n_layer, self.n_head = config.num_hidden_layers, config.num_attention_heads
        self.n_kv_head = config.num_key_value_heads if self.is_llama else self.n_head
        self.d_head = config.head_dim if self.is_llama else config.hidden_size // self.n_head

    def site(self, carried: str, layer: int, head: int = 0) -> Site:
        """Where a state is; of keys and values the head is one of those that are shared."""
        block, d = self.layers[layer], self.d_head
        attention = block.self_attn if self.is_llama else block.attn
        joining = attention.o_proj if self.is_llama else attention.c_proj
        columns = slice(head * d, (head + 1) * d)
        plain = {"before": (block, True), "layer": (block, False), "attention": (joining, False)}
        if carried in plain:
            return Site(*plain[carried])
        if carried == "mlp":
            return Site(block.mlp, False)
        if carried == "heads":
            return Site(joining, True, columns)
        if self.is_llama:
            return Site(getattr(attention, f"{carried[0]}_proj"), False, columns)
        start = ("query", "key", "value").index(carried) * self.n_head * d
        return Site(attention.c_attn, False, slice(start + head * d, start + (head + 1) * d))

    def run(
        self, ids: Any, edits: Sequence[Edit] = (), reads: Sequence[Site] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """The last hidden states, [token, d_model], and what is at the sites that are read, after the edits."""
        at_sites: dict[int, Tensor] = {}
        handles = []

        def change(site: Site, function: Callable[[Tensor], Tensor]) -> None:
            def changed(states: Tensor) -> Tensor:
                made = states.clone()
                made[0, :, site.columns] = function(states[0, :, site.columns])
                return made

            handles.append(_listen(site, changed))

        def read(number: int, site: Site) -> None:
            def noted(states: Tensor) -> Tensor:
                at_sites[number] = states[0, :, site.columns].detach().clone()
                return states

            handles.append(_listen(site, noted))

        for site, function in edits:
            change(site, function)
        for number, site in enumerate(reads):
            read(number, site)
        try:
            last = self.network(input_ids=torch.tensor(ids)[None], use_cache=False).last_hidden_state[0]
        finally:
            for handle in handles:
                handle.remove()
        return last, [at_sites[number] for number in range(len(reads))]

    def weights(self, ids: Any, layer: int) -> Tensor:
        """Attention weights of a layer, [head, query, key]."""
        with torch.no_grad():
            output = self.network(input_ids=torch.tensor(ids)[None], output_attentions=True, use_cache=False)
        weights: Tensor = output.attentions[layer][0]
        return weights


def put(states: Tensor, positions: Sequence[int] | None = None) -> Callable[[Tensor], Tensor]:
    """An edit that puts states in place of those that are there, at some positions or all."""

    def function(own: Tensor) -> Tensor:
        made = own.clone()
        at = slice(None) if positions is None else list(positions)
        made[at] = states[at]
        return made

    return function


def _listen(site: Site, function: Callable[[Tensor], Tensor]) -> Any:
    if site.is_input:

        def before(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if args:
                return (function(args[0]), *args[1:]), named
            return args, named | {"hidden_states": function(named["hidden_states"])}

        return site.module.register_forward_pre_hook(before, with_kwargs=True)

    def after(_: nn.Module, __: Any, output: Any) -> Any:
        return (function(output[0]), *output[1:]) if isinstance(output, tuple) else function(output)

    return site.module.register_forward_hook(after)
