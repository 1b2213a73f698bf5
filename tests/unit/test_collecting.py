"""Python's garbage collector passes over what was there when the server became ready, and over nothing that came later."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from ui.runtime import cache, jobs, memory, profiles, serving


@pytest.fixture
def _as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()


class _InACircle:
    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("_as_it_was")
def test_what_is_loaded_for_the_first_visitor_is_never_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NoJob:
        def __init__(self, *_: object) -> None: ...
        def wait(self) -> None: ...

    class Model:
        weights_sha256 = ""

    monkeypatch.setattr(cache, "model", lambda _: Model)
    monkeypatch.setattr(profiles, "naming_profile", lambda _: None)
    monkeypatch.setattr(jobs, "Job", NoJob)
    loaded, dropped = _InACircle(), _InACircle()
    was_dropped = weakref.ref(dropped)
    del dropped
    serving._make_ready()
    assert was_dropped() is None  # garbage is not kept for good
    assert not any(
        thing is loaded for thing in gc.get_objects()
    )  # which leaves out what the collector passes over
    later = weakref.ref(_InACircle())
    gc.collect()
    assert later() is None
    was_loaded = weakref.ref(loaded)
    del loaded
    gc.collect()
    memory.give_back()  # which in a worker would make copies of what it shares with others
    assert was_loaded() is not None
    memory.collect_all()  # when nobody is there
    assert was_loaded() is None and gc.get_freeze_count()
