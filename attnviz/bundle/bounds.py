"""Limits on the trace in a bundle, so that no file takes more work than a model's own trace.

A small file can take much memory: with vectors of one number, 160 MB hold 2,048 heads of 1,024 tokens, whose weights
take 8.6 GB.
"""

import numpy as np

from attnviz.errors import BundleError
from attnviz.model.trace import Trace

LARGEST_BUNDLE = 160_000_000
"""Most bytes. 1,024 tokens of bert-base-uncased, in 12 layers with queries, keys and values of 768 numbers, take 140 million."""
MOST_TOKENS = 1024
"""The matrix of one head takes 4 MB, and 12 MB as CSV; of 8,192 tokens 268 MB and 800 MB, and the vectors of all layers 1 GB."""
MOST_HEADS = 2048
"""Of all layers of a kind together; GPT-2 XL has 48 x 25."""
MOST_WEIGHTS = 400_000_000
"""Heads x queries x keys, of all layers of a kind together, which pages of all heads go through. Of the models that attnviz
reads, those with many small heads come nearest within 160 MB: TinyLlama has 355 million with 710 tokens, Qwen2 0.5B 352
million with 1,024."""
MOST_WEIGHTS_OF_A_LAYER = 64 * MOST_TOKENS**2
"""Heads x queries x keys in memory at once, up to 268 MB. Llama 3.2 1B has 21 million with 813 tokens."""
MOST_ROLLOUT = 40 * MOST_TOKENS**3
"""Layers x queries x keys x keys: the multiplications of a rollout. SmolLM 135M has 30 layers and reads 1,024 tokens."""
MOST_CHANGES = 2 * MOST_HEADS
"""Heads that interventions change, counted once for each intervention: every head can be changed twice."""
LARGEST_NUMBER = 1e12
"""A score is a sum of at most 10^4 products; below this limit neither a score nor a squared length overflows float32."""


def check_sizes(trace: Trace) -> None:
    """Raises BundleError for a trace that is too large for a bundle."""
    for tokens in (trace.tokens, trace.target_tokens):
        if tokens is not None and len(tokens) > MOST_TOKENS:
            raise BundleError(
                f"This text is {len(tokens):,} tokens long; a bundle holds at most {MOST_TOKENS:,}, since it has all layers and a whole "
                "matrix. Shorten it, or save rows: trace.pattern(layer, head, rows=slice(0, 100)).csv()."
            )
    name = trace.provenance.model
    for kind in trace.kinds:
        n_layer, most_heads = trace.shape(kind)
        n_heads = len(trace.heads(kind))
        if n_heads > MOST_HEADS:
            raise BundleError(
                f"{name} has {n_heads:,} heads; a bundle holds at most {MOST_HEADS:,}. Select a smaller model."
            )
        n_query, n_key = len(trace.query_tokens(kind)), len(trace.key_tokens(kind))
        for size, most, what in (
            (most_heads * n_query * n_key, MOST_WEIGHTS_OF_A_LAYER, "attention weights in one layer"),
            (n_heads * n_query * n_key, MOST_WEIGHTS, "attention weights"),
            (n_layer * n_query * n_key**2, MOST_ROLLOUT, "multiplications in a rollout through its layers"),
        ):
            if size > most:
                raise BundleError(
                    f"{name} has {size / 1e6:,.0f} million {what} for this text; a bundle holds at most "
                    f"{most / 1e6:,.0f} million. Shorten the text."
                )


def check_numbers(name: str, array: np.ndarray) -> None:
    """Raises BundleError for an array of float32 with numbers that are not finite, or too large."""
    if array.dtype == np.float32 and array.size:
        largest = max(float(array.max()), -float(array.min()))
        if not largest <= LARGEST_NUMBER:
            raise BundleError(
                f"{name} holds numbers that are not finite or too large. Select another model or text."
            )
