"""Running out of memory, as Python, numpy and torch report it: one sentence."""

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import ModelFailedError, OutOfMemoryError, ShapeError, cause, enough_memory, failures_of

TOO_MUCH = 2**46  # numbers of four bytes; no machine maps 281 TB


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: np.empty(TOO_MUCH, dtype=np.float32),
        lambda: torch.empty(TOO_MUCH),
        lambda: bytearray(TOO_MUCH * 4),
    ],
    ids=["numpy", "torch", "Python"],
)
def test_what_does_not_fit_is_said_in_one_sentence(allocate):
    with (
        pytest.raises(OutOfMemoryError, match=r"memory of this machine\. Shorten the text"),
        enough_memory(),
    ):
        allocate()


def test_other_errors_stay_what_they_are():
    with pytest.raises(RuntimeError, match="something else") as caught, enough_memory():
        raise RuntimeError("something else")
    assert type(caught.value) is RuntimeError


@pytest.mark.parametrize("run", ["trace", "verify"])
def test_a_forward_pass_that_does_not_fit(run, embedded, door_trace, monkeypatch):
    network = embedded.network if run == "trace" else embedded.reference
    hook = network.encoder.layer[3].register_forward_hook(lambda *_: torch.empty(TOO_MUCH))
    try:
        with pytest.raises(OutOfMemoryError, match="Shorten the text, or select a smaller model"):
            embedded.trace("A door.") if run == "trace" else attnviz.verify(embedded, door_trace)
    finally:
        hook.remove()
    assert attnviz.verify(embedded, embedded.trace("A door.")).passed  # and the next text goes through


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KeyError("scale"), "KeyError: 'scale'."),
        (ValueError("\n  no such axis\nsecond line"), "ValueError: no such axis."),
        (ValueError("Not valid:\n    an odd size\nsecond line"), "ValueError: Not valid: an odd size."),
        (RuntimeError("Is it there?"), "RuntimeError: Is it there?"),
        (AssertionError(), "AssertionError."),
        (Exception("a tokenizer's words"), "a tokenizer's words."),
        (TypeError("\x1b[1mbold\x1b[0m\x07 words"), "TypeError: bold words."),
        (ValueError("x" * 400), f"ValueError: {'x' * 300}…."),
    ],
)
def test_a_library_s_error_is_its_type_and_first_line(error, sentence):
    assert cause(error) == sentence


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("No such file: '/root/x/y.json'", "No such file: 'y.json'"),
        ("no file found in directory /tmp/x.", "no file found in directory x."),
        ("/a b/model dir (old)/v1.0/file.gguf is bad and/or worse", "file.gguf is bad and/or worse"),
        ("Can't load '/a/b' or '/c/d e/f'.", "Can't load 'b' or 'f'."),
        ('"/o\'neil/x/y.bin" is cut', '"y.bin" is cut'),
        ("PosixPath('/tmp/x'), [/a/b], `/a/b`, (/a/b/c.bin)", "PosixPath('x'), [b], `b`, (c.bin)"),
        ("path=/a/b/c; file:///home/me/x.bin", "path=c; x.bin"),
        (
            "at /usr/lib/x.py:12: expected key/value pair, 1/2, a / b",
            "at x.py:12: expected key/value pair, 1/2, a / b",
        ),
        ("~/.cache/hub/models--x/y and /model.gguf", "y and model.gguf"),
        ("C:\\Users\\me\\x.bin is open", "x.bin is open"),
        ("//server/share/x, /tmp//double/x/", "x, x/"),
        ("/\u00fcber/\u6587/x.bin", "x.bin"),
        (
            "see https://huggingface.co/models or http://a/b",
            "see https://huggingface.co/models or http://a/b",
        ),
        ("</s> and <pad/> are not in org/model", "</s> and <pad/> are not in org/model"),
    ],
)
def test_of_a_path_only_its_last_part_is_shown(said, kept):
    assert cause(Exception(said)) == cause(Exception(kept))
    assert cause(Exception(said)).rstrip(".") == kept.rstrip(".")


class TestFailuresOf:
    def failing(self, error):
        with pytest.raises(BaseException) as caught, failures_of("It failed", "Do this."):
            raise error
        return caught.value

    def test_whatever_is_raised_is_one_sentence(self):
        error = self.failing(KeyError("scale"))
        assert type(error) is ModelFailedError
        assert str(error) == "It failed: KeyError: 'scale'. Do this."

    def test_a_panic_of_rust_is_no_exception_and_is_one_all_the_same(self):
        panic = type("PanicException", (BaseException,), {})  # as pyo3 makes it
        assert "PanicException: index out of range" in str(self.failing(panic("index out of range")))

    def test_after_an_error_inside_the_gpu_only_another_process_helps(self):
        """torch's class for it is a RuntimeError, and no CPU raises it."""
        error = type("AcceleratorError", (RuntimeError,), {})(
            "CUDA error: device-side assert triggered\nCompile with"
        )
        assert str(self.failing(error)) == (
            "It failed: AcceleratorError: CUDA error: device-side assert triggered. "
            "The GPU answers nothing more in this process: start attnviz again."
        )

    @pytest.mark.parametrize("error", [ShapeError("ours"), KeyboardInterrupt(), SystemExit(2)])
    def test_our_own_errors_and_what_ends_a_program_pass(self, error):
        assert self.failing(error) is error

    def test_memory_that_is_short_stays_what_it_is(self):
        assert type(self.failing(MemoryError())) is OutOfMemoryError
