"""Which families gate a merge: one of each structure. All are compared every night."""

from typing import Any

import pytest

from tests import tiny

STRUCTURES = {
    "bert": "an encoder with learned positions and segments, norms after each part",
    "roberta": "positions counted from the padding token on, no segments",
    "albert": "one layer's modules called by every layer, narrow embeddings",
    "modernbert": "rotary positions, norms before each part, layers that see a window",
    "gpt2": "a decoder; queries, keys and values from one product",
    "gpt-neox": "attention and MLP side by side, a part of each head rotated",
    "llama": "heads that share keys and values",
    "gemma3": "norms on queries and keys, windows, scaled embeddings",
    "laguna": "layers with different numbers of heads, a gate before W_O",
    "gemma2": "softcapped scores",
    "mpnet": "an attention class of its own that holds W_O, positions as a bias of the scores",
    "deberta-v2": "an attention class of its own, terms of contents and distances in the scores",
    "deepseek-v3": "keys and values through a narrow product, values of another width than keys",
    "opt": "a last hidden state of another width than the stream",
    "mixtral": "experts in the place of an MLP",
    "bart": "encoder and decoder, with cross-attention",
    "t5": "encoder and decoder, positions as a bias of the scores",
}
"""Family to what it alone has."""


def family_of(value: Any) -> str | None:
    """The family that a parameter of a test names, holds, or is."""
    name = value if isinstance(value, str) else getattr(getattr(value, "family", value), "name", None)
    return name if name in tiny.TEXT_FAMILIES else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        families = {family_of(value) for value in parameters.values()} - {None}
        if item.nodeid.startswith("tests/parity/") and families - STRUCTURES.keys():
            item.add_marker(pytest.mark.nightly)
