"""Every cache of the code is in the list of what is kept, and README has the list."""

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attnviz.figures.heatmap import _scale
from attnviz.figures.theme import THEMES
from ui.limits import LIMITS
from ui.runtime import jobs, uploads, with_model
from ui.runtime.memory import n_bytes
from ui.runtime.remembered import MODELS, NUMBERS, Store
from ui.runtime.stores import BOUNDED, KEPT, table

ROOT = Path(__file__).parents[2]
DECORATORS = {"cache", "lru_cache", "cached_property", "cached", "cache_data", "cache_resource"}
STORES = {"Store", "LRUCache", "TTLCache", "WeakValueDictionary"}


def name_of(node: ast.expr) -> str:
    """`cache` of `@cache`, `@functools.cache` and `@st.cache(…)`."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def caches(source: str) -> set[str]:
    """Functions and names of a module whose results or values are kept."""
    cached = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and DECORATORS & set(map(name_of, node.decorator_list)):
            cached.add(node.name)
        value = getattr(node, "value", None)
        if (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(value, ast.Call)
            and name_of(value) in STORES
        ):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            cached.add(name_of(target))
    return cached


def test_every_cache_of_the_code_is_listed():
    files = [ROOT / "app.py", ROOT / "attention.py"]
    for folder in ("attnviz", "ui", "pages"):
        files += sorted((ROOT / folder).rglob("*.py"))
    cached = {
        f"{path.relative_to(ROOT).as_posix()}:{name}"
        for path in files
        for name in caches(path.read_text(encoding="utf-8"))
    }
    stores = {
        "ui/runtime/remembered.py:NUMBERS",
        "ui/runtime/remembered.py:MODELS",
        "ui/runtime/remembered.py:_entries",  # of those two
        "ui/runtime/with_model.py:MODELS",
        "ui/runtime/with_model.py:own",  # in that one
    }
    assert cached == stores | {place for kept in BOUNDED for place in kept.where}


def test_the_check_can_fail():
    source = """
@functools.lru_cache(maxsize=2)
def one(): ...
@st.cache_data
def two(): ...
@NUMBERS.remembers()
def three(): ...
FOUR: LRUCache[str, int] = LRUCache(7)
"""
    assert caches(source) == {"one", "two", "FOUR"}


def test_readme_has_the_table():
    """Where it fails: `python -m ui.runtime.stores` prints it."""
    assert "\n".join(table()) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_each_limit_in_bytes_is_the_operator_s():
    usual = {limit.variable: limit.usual for limit in LIMITS}
    assert [(store.variable, str(store.megabytes)) for store in KEPT] == [
        (store.variable, usual[store.variable]) for store in KEPT
    ]
    assert NUMBERS.most_bytes == int(usual["ATTNVIZ_CACHE_MB"]) * 1e6
    assert MODELS.most_bytes == with_model.MODELS.maxsize == int(usual["ATTNVIZ_MODELS_MB"]) * 1e6
    variables = {match for kept in BOUNDED for match in re.findall(r"ATTNVIZ_\w+", kept.by)}
    assert variables <= set(usual)


@contextmanager
def kept_in(name: str) -> Iterator[None]:
    """One thing more in this store, of at least 1,000 bytes."""
    match name:
        case "results" | "models":
            entries = {"results": NUMBERS, "models": MODELS}[name]._entries
            entries["one more"] = bytes(1000), "one more"
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
    assert jobs.state().kept_bytes <= KEPT[2].megabytes * 1e6
