"""Long texts: read by a process of their own, with the layers that are done, stopped, shared, and refused where a page cannot show them."""

import gc
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attnviz.errors import AttnvizError
from attnviz.model import storage
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from tests.app.screen import (
    DOOR,
    ask_until,
    assert_no_exception,
    assert_nothing_drawn,
    drawn_in_main,
    errors,
    is_stage,
    matrix,
    notices,
    open_page,
    type_text,
)
from ui.part import Part
from ui.rooms import PAGES
from ui.runtime import cache, events, jobs, long_texts, with_model
from ui.runtime.kept_texts import found
from ui.runtime.remembered import Store
from ui.runtime.source import Source
from ui.shell import frame, verdict

SOURCE = Source(model=EMBEDDED, text=DOOR)


@pytest.fixture(autouse=True)
def _a_sentence_is_long(own_numbers, monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "LONG", 8)
    monkeypatch.setattr(storage, "IN_MEMORY", 0)
    monkeypatch.setattr(long_texts, "folder", lambda: tmp_path)
    monkeypatch.setattr(long_texts, "TRACES", Store(1000, size=long_texts._size))
    jobs.forget("read_long", SOURCE)
    yield
    for work in jobs._long.jobs:  # or its trace would be received by the next test
        with suppress(AttnvizError):
            work.wait()


class Gate:
    """Where the network waits, before one of its layers."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> None:
        if threading.current_thread().name == "worker":
            self.reached.set()
            assert self.opened.wait(60)


@contextmanager
def held_before(layer: int):
    gate = Gate()
    hook = cache.model(EMBEDDED).network.encoder.layer[layer].register_forward_pre_hook(gate)
    try:
        yield gate
    finally:
        gate.opened.set()
        hook.remove()


def bar(at: AppTest) -> str:
    [element] = at.get("progress")
    return element.proto.text


def click(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    assert_no_exception(at)
    return at


def is_read(at: AppTest) -> bool:
    return is_stage(at) and not at.get("progress")


def own_weights(layer: int, head: int) -> np.ndarray:
    return cache.model(EMBEDDED).trace(DOOR).weights(layer, head)


def test_layers_are_shown_before_the_others_are_there():
    with held_before(4) as gate:
        at = open_page(text=DOOR, layer=2, head=5)
        assert gate.reached.wait(60)
        ask_until(at, is_stage)
        assert "11 tokens: 4 layers done" in bar(at)
        np.testing.assert_allclose(matrix(at), own_weights(2, 5), atol=1e-4)
        assert any("Layers 0 to 3 are shown" in caption.value for caption in at.caption)
        assert any("Not checked" in caption.value for caption in at.caption)
    ask_until(at, is_read)
    np.testing.assert_allclose(matrix(at), own_weights(2, 5), atol=1e-4)
    ask_until(at, lambda at: any(":green[Checked:]" in link.proto.label for link in at.get("page_link")))


def test_a_layer_that_is_not_there_is_waited_for():
    with held_before(4) as gate:
        at = open_page(text=DOOR, layer=5, head=1)
        assert gate.reached.wait(60)
        ask_until(at, lambda at: "4 layers done" in bar(at))
        assert_nothing_drawn(at)
    ask_until(at, is_read)
    np.testing.assert_allclose(matrix(at), own_weights(5, 1), atol=1e-4)


def test_a_layer_that_is_there_is_shown_meanwhile():
    with held_before(4) as gate:
        at = open_page(text=DOOR, layer=5, head=1)
        assert gate.reached.wait(60)
        ask_until(at, lambda at: "4 layers done" in bar(at))
        click(at, "show_layers")
        assert at.session_state["ui.choice.state.Chosen"].selection.layer == 3
        np.testing.assert_allclose(matrix(at), own_weights(3, 1), atol=1e-4)


def test_it_can_be_stopped_and_begun_again(tmp_path):
    with held_before(4) as gate:
        at = open_page(text=DOOR, layer=5, head=1)
        assert gate.reached.wait(60)
        click(at, "read_long")
    ask_until(at, lambda at: any("Stopped; 11 tokens" in caption.value for caption in at.caption))
    ask_until(at, lambda at: not list(tmp_path.iterdir()))  # its files go with it
    assert_nothing_drawn(at)
    click(at, "read_long")
    ask_until(at, is_read)
    np.testing.assert_allclose(matrix(at), own_weights(5, 1), atol=1e-4)


def test_a_second_visitor_of_the_text_waits_for_no_second_reading(monkeypatch):
    ask_until(open_page(text=DOOR, layer=5, head=1), is_read)
    here = cache.trace(SOURCE)
    monkeypatch.setattr(with_model, "read_long", None)  # it would end the job with an error
    at = open_page(text=DOOR, layer=1, head=1)
    assert is_read(at)
    assert cache.trace(SOURCE) is here


def test_another_long_text_waits_in_line_and_is_told_so():
    with held_before(2) as gate:
        first = open_page(text=DOOR, layer=5)
        assert gate.reached.wait(60)
        other = open_page(text=f"{DOOR} It was cold outside.", layer=5)
        ask_until(other, lambda at: "1 other long text" in bar(at))
    ask_until(other, is_read)
    ask_until(first, is_read)


def test_the_needle_is_looked_for_in_the_process_for_long_texts(monkeypatch):
    monkeypatch.setattr("attnviz.model.trace.LONG", 8)
    at = open_page("pages/long_text.py", model=EMBEDDED, text=DOOR)
    ask_until(at, lambda at: any(button.key == "long_needle_act" for button in at.button))
    at.button(key="long_needle_act").click().run()
    [work] = [work for (name, _), work in jobs._kept.items() if name == "needle" and work._is_long]
    assert work.wait()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_its_numbers_are_files_that_go_with_the_trace(tmp_path):
    long_texts.job(SOURCE, cache.tokens(SOURCE)).wait()
    here = cache.trace(SOURCE)
    layers = here.layers["encoder"]
    assert all(
        storage.file_of(array) is not None
        for layer in layers
        for array in (layer.query, layer.key, layer.value)
    )
    np.testing.assert_array_equal(here.weights(3, 1), own_weights(3, 1))
    size = sum(layer.query.nbytes + layer.key.nbytes + layer.value.nbytes for layer in layers)
    assert size <= long_texts.TRACES.n_bytes <= 1.5 * size + 100_000
    assert files(tmp_path)
    long_texts.TRACES.clear()
    cache.NUMBERS.clear()
    del here, layers
    gc.collect()
    assert files(tmp_path) == []


def test_what_nobody_asks_for_once_it_is_read_is_kept_told_and_dropped_like_all(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(events, "read", lambda *given: told.append(given))
    read = cache.tokens(SOURCE)
    long_texts.job(SOURCE, read).wait()
    [(model, n_token, seconds, text, second)] = told
    assert (model, n_token, text, second) == (EMBEDDED, 11, DOOR, "") and seconds > 0
    assert long_texts.TRACES.n_entries == 1 and files(tmp_path)
    long_texts.TRACES.clear()
    gc.collect()
    assert files(tmp_path) == []
    assert long_texts.trace(SOURCE, read) is None  # and then it is read again
    assert not long_texts.job(SOURCE, read).finished


def test_a_text_that_another_thread_has_read_since_is_not_read_again():
    read = cache.tokens(SOURCE)
    long_texts.job(SOURCE, read).wait()
    jobs.forget("read_long", SOURCE)
    assert long_texts.job(SOURCE, read).finished
    assert long_texts.trace(SOURCE, read) is not None


def test_a_comparison_that_waits_holds_no_files(tmp_path):
    read = cache.tokens(SOURCE)
    long_texts.job(SOURCE, read).wait()
    work = long_texts.verdict_job(SOURCE, "of this test")
    long_texts.TRACES.clear()
    gc.collect()
    assert files(tmp_path) == []
    assert "no longer kept" in str(work.settle(60))


def test_a_trace_beyond_the_limit_with_its_key_is_refused_and_not_read_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(
        long_texts, "TRACES", Store(0.001, size=long_texts._size)
    )  # read_long has another limit
    at = open_page(text=DOOR, layer=5)
    [error] = ask_until(at, errors) and errors(at)
    assert "ATTNVIZ_DISK_MB" in error
    gc.collect()
    assert files(tmp_path) == []
    assert not jobs.state().n_running


def test_a_trace_that_the_disk_has_no_room_for_is_refused(monkeypatch):
    monkeypatch.setattr(long_texts, "DISK_MB", 0)
    at = open_page(text=DOOR, layer=5)
    [error] = ask_until(at, errors) and errors(at)
    assert "ATTNVIZ_DISK_MB" in error


def test_folders_of_servers_that_are_gone_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    prefix = long_texts._PREFIX
    names = [f"{prefix}{gone.pid}-a", f"{prefix}{os.getppid()}-b", "attnviz-texts-c"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "trace-x").touch()
    long_texts.remove_left()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


WORDS = "the door of the old house by the river was open when the cat sat on the mat "
TWO_THOUSAND = (WORDS * 150)[: len(WORDS) * 116]  # 2,000 tokens of SmolLM2


@pytest.mark.parametrize(
    "part", [part for part in PAGES if part.shows_text and part.longest < 2000], ids=lambda part: part.name
)
def test_a_page_that_takes_shorter_texts_says_so_and_draws_nothing(part: Part, monkeypatch):
    monkeypatch.setattr(cache, "LONG", 1024)
    at = open_page(part.file, model=SMOLLM2, text=TWO_THOUSAND)
    assert_no_exception(at)
    assert drawn_in_main(at) == []
    [line] = [
        element.value for element in at.markdown if element.value.startswith(f"{part.name} takes texts")
    ]
    n_token = len(cache.model(SMOLLM2).tokenize(TWO_THOUSAND))
    assert f"up to {part.longest:,} tokens; this one has {n_token:,}." in line
    assert "Look at it in Explore" in [element.proto.label for element in at.get("page_link")]
    assert not jobs.state().n_under_way


def test_a_text_that_no_address_holds_is_there_after_a_reload():
    text = "Ü" * 20_000  # 120,000 bytes in an address
    at = open_page(text="A door.", cut=1)
    type_text(at, text)
    address = dict(at.query_params)
    assert "text" not in address
    assert found(address["kept"][0] if isinstance(address["kept"], list) else address["kept"]) == (text, "")
    again = open_page(
        **{name: value[0] if isinstance(value, list) else value for name, value in address.items()}
    )
    assert again.text_area(key="field_text").value == text


def test_an_address_of_a_text_that_is_gone_says_so():
    at = open_page(kept="0" * 64)
    assert any("no longer kept here" in notice for notice in notices(at))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("A door.\r\nIt opens.".encode("utf-8-sig"), "A door.\nIt opens."),
        ("Die Tür".encode("latin-1"), None),
    ],
    ids=["utf-8", "latin-1"],
)
def test_a_file_takes_the_place_of_the_sentence(data, text):
    at = open_page(text="A cat.")
    [uploader] = [element for element in at.file_uploader if element.key.startswith("text_file_")]
    uploader.set_value(("story.txt", data, "text/plain")).run()
    assert_no_exception(at)
    assert at.text_area(key="field_text").value == (text or "A cat.")
    assert any("byte 6 is none of it" in error.value for error in at.error) == (text is None)


@pytest.mark.parametrize("part", [part for part in PAGES if part.longest >= 2000], ids=lambda part: part.name)
def test_a_page_that_takes_long_texts_draws_one(part: Part, monkeypatch):
    monkeypatch.setattr(frame, "LONG", 8)
    monkeypatch.setattr("attnviz.model.trace.LONG", 8)
    monkeypatch.setattr(verdict, "show", lambda view: None)  # which computes all numbers
    monkeypatch.setattr(cache, "pattern", None)  # a whole matrix
    at = open_page(part.file, model=EMBEDDED, text=DOOR, layer=1, head=2)
    ask_until(
        at, lambda at: not at.get("progress") and not any(button.key == "check_long" for button in at.button)
    )
    assert errors(at) == []
    assert not any("takes texts of" in element.value for element in at.markdown)
