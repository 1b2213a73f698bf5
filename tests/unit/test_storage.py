"""Where the arrays of a trace are kept: in memory, in a file without a name, or in one that another process reads."""

import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest

from attnviz.errors import ModelFailedError, OutOfMemoryError
from attnviz.model import storage
from attnviz.model.storage import Storage, delete_with, dumps, file_of, files_in
from ui.runtime.memory import n_bytes

TEXT = "the cat sat when it opened"


@pytest.fixture
def on_disk(monkeypatch):
    monkeypatch.setattr(storage, "IN_MEMORY", 0)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_within_the_budget_an_array_stays_as_it_is():
    array = drawn(3, 5)
    assert Storage(storage.IN_MEMORY).keep(array) is array


@pytest.mark.parametrize("file_bytes", [1, 200, 2**20])
def test_beyond_it_arrays_of_all_forms_come_back(file_bytes, monkeypatch):
    """Of files that end after one array, after some, and after all."""
    monkeypatch.setattr(storage, "_FILE_BYTES", file_bytes)
    kept_in, arrays = (
        Storage(storage.IN_MEMORY + 1),
        [drawn(3, 5), drawn(7, 5, 2).transpose(1, 0, 2), drawn(11, 3) > 0, np.zeros((0, 3))],
    )
    kept = [kept_in.keep(array) for array in arrays]
    kept_in.end()
    for array, back in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(back, array)
        assert back.dtype == array.dtype
    assert not any(back.flags.writeable for back in kept[:3])
    assert n_bytes(kept[:3]) < 500


def test_a_trace_of_a_long_text_is_the_same_numbers_in_a_file(on_disk, tiny_model, monkeypatch):
    model = tiny_model("llama")
    trace = model.trace(TEXT)
    monkeypatch.undo()
    expected = model.trace(TEXT)
    for layer in range(trace.n_layers()):
        for name in ("query", "key", "value", "allowed"):
            ours, theirs = (getattr(each.attention(layer), name) for each in (trace, expected))
            assert file_of(ours) is not None and file_of(theirs) is None
            np.testing.assert_array_equal(ours, theirs)
    assert len({id(file_of(trace.attention(layer).key)) for layer in range(trace.n_layers())}) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_its_file_has_no_name_and_is_closed_with_it(on_disk, tiny_model):
    from pathlib import Path

    def open_files() -> int:
        return sum(
            "deleted" in str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink()
        )

    before = open_files()
    trace = tiny_model("llama").trace(TEXT)
    assert open_files() == before + 1
    del trace
    gc.collect()
    assert open_files() == before


def test_another_process_reads_a_named_file_by_reference(on_disk, tiny_model, tmp_path):
    with files_in(tmp_path):
        trace = tiny_model("llama").trace(TEXT)
    [file] = tmp_path.iterdir()
    assert file.stat().st_size < 10**6
    head = trace.head(1, 2)
    sent = dumps([trace.attention(1), head.key[2:5]])
    assert len(sent) < len(pickle.dumps([trace.attention(1), head.key[2:5]]))
    assert head.query.tobytes() not in sent
    code = (
        "import pickle, sys; layer, part = pickle.loads(sys.stdin.buffer.read());"
        "print(layer.query[2].sum().item(), part.tolist(), layer.query.flags.writeable)"
    )
    read = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert read.stdout.decode().split(None, 1) == [
        str(head.query.sum().item()),
        f"{head.key[2:5].tolist()} False\n",
    ]


def test_and_deletes_it_when_it_reads_no_more(on_disk, tiny_model, tmp_path):
    with files_in(tmp_path):
        sent = dumps(tiny_model("llama").trace(TEXT))
    gc.collect()
    assert len(list(tmp_path.iterdir())) == 1  # of a sender that keeps nothing
    trace = pickle.loads(sent)
    assert len({id(file_of(call.key)) for call in trace.layers["decoder"]}) == 1
    delete_with(trace)
    key = trace.attention(0).key[:1]
    del trace
    gc.collect()
    assert len(list(tmp_path.iterdir())) == 1  # a part of it is still read
    del key
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_what_has_no_name_is_copied(on_disk, tiny_model):
    call = tiny_model("llama").trace(TEXT).attention(1)
    read = pickle.loads(dumps(call))
    np.testing.assert_array_equal(read.key, call.key)
    assert file_of(read.key) is None


def test_a_pass_that_fails_leaves_no_file(on_disk, tiny_model, tmp_path):
    def fail(_: object) -> None:
        assert list(tmp_path.iterdir())
        raise ValueError("stop")

    with files_in(tmp_path), pytest.raises(ModelFailedError):
        model = tiny_model("llama")
        model.trace_tokens(model.tokenize(TEXT), on_layer=fail)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_an_error_in_words(on_disk, tiny_model, tmp_path):
    with files_in(tmp_path / "missing"), pytest.raises(OutOfMemoryError, match="TMPDIR"):
        tiny_model("llama").trace(TEXT)
