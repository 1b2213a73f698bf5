"""The stores keep to their limits, and docs/limits.md has them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from attnviz.figures.heatmap import _scale
from attnviz.figures.theme import THEMES
from tests import hand_made
from ui.limits import LIMITS
from ui.runtime import jobs, long_texts, uploads, with_model
from ui.runtime.memory import n_bytes
from ui.runtime.metrics import KEPT
from ui.runtime.remembered import MODELS, NUMBERS, Store

ROOT = Path(__file__).parents[2]


def test_the_page_of_limits_has_the_table():
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    for store in KEPT:
        assert f"| `{store.name}`: {store.holds} | {store.megabytes:,} MB | `{store.variable}` |" in text


def test_each_limit_in_bytes_is_the_operator_s():
    usual = {limit.variable: limit.usual for limit in LIMITS}
    assert [(store.variable, str(store.megabytes)) for store in KEPT] == [
        (store.variable, usual[store.variable]) for store in KEPT
    ]
    assert NUMBERS.most_bytes == int(usual["ATTNVIZ_CACHE_MB"]) * 1e6
    assert MODELS.most_bytes == with_model.MODELS.maxsize == int(usual["ATTNVIZ_MODELS_MB"]) * 1e6


@contextmanager
def kept_in(name: str) -> Iterator[None]:
    """One thing more in this store, of at least 1,000 bytes."""
    match name:
        case "results" | "models":
            entries = {"results": NUMBERS, "models": MODELS}[name]._entries
            entries["one more"] = bytes(1000), "one more"
            yield
            del entries["one more"]
        case "disk":
            entries = long_texts.TRACES._entries
            entries["one more"] = hand_made.trace(np.full((1, 1, 20, 20), 0.05), ["a"] * 20), "one more"
            yield
            del entries["one more"]
        case "jobs":
            jobs.job("one more", "key", lambda: []).n_bytes = 1000
            yield
            del jobs._kept["one more", "key"]
        case "uploads":
            with uploads.arriving(1000):
                yield


@pytest.mark.parametrize("store", KEPT, ids=lambda store: store.name)
def test_how_much_there_is_can_be_told(store):
    n_byte, n_entry = store.n_bytes(), store.n_entries()
    with kept_in(store.name):
        assert store.n_entries() == n_entry + 1
        assert n_byte + 1000 <= store.n_bytes() <= store.megabytes * 1e6
    assert (store.n_bytes(), store.n_entries()) == (n_byte, n_entry)


def test_what_is_small_is_small():
    for palette in THEMES.values():
        for logarithmic in (False, True):
            _scale(palette, logarithmic=logarithmic)
    assert _scale.cache_info().currsize <= 2 * len(THEMES) + 2
    assert sum(n_bytes(_scale(palette)) for palette in THEMES.values()) < 100_000


def test_a_store_never_holds_more_than_its_limit():
    """A thousand results of every size, the largest of them larger than the store."""
    store = Store(0.1)
    for number in range(1000):
        store.found_or_made(number, lambda number=number: bytes(number * 150))
        assert store.n_bytes <= store.most_bytes == 100_000
        assert sum(map(n_bytes, store._entries.values())) == store.n_bytes
    assert store.n_entries > 0
    assert jobs.state().kept_bytes <= next(store for store in KEPT if store.name == "jobs").megabytes * 1e6
