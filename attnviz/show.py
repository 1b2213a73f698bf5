"""The stage for attention that somebody holds, in one line; see `attnviz.Trace.show`."""

from collections.abc import Sequence
from typing import Any

from attnviz.arguments import typed
from attnviz.model.arrays import pattern_source
from attnviz.model.trace import Trace
from attnviz.records import Tokens


@typed
def show(
    attention: Any,
    tokens: Sequence[str] | Tokens,
    *,
    key_tokens: Sequence[str] | Tokens | None = None,
    layer: int = 0,
    head: int = 0,
    theme: str = "auto",
) -> Any:
    """The stage of weights from elsewhere in a notebook: every head, query and key can be looked at.

    Args:
        attention: what a model of transformers gives with ``output_attentions=True``, all outputs or ``attentions`` of them: a
            [1, head, query, key] for each layer; an ``ActivationCache`` of TransformerLens; or an array [layer, head, query, key],
            [head, query, key] or [query, key] of torch, jax or numpy.
        tokens, key_tokens: as for `attnviz.Trace.from_arrays`, which raises the same.
        layer, head: what is selected first.
        theme: as for `attnviz.Trace.show`.
    """
    trace = Trace.from_arrays(tokens, weights=pattern_source(attention), key_tokens=key_tokens)
    return trace.show(layer, head, theme=theme)
