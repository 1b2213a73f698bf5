"""What tests of several files have in common."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from attnviz.bundle.bundle import Bundle
from attnviz.bundle.writing import write_bundle
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from tests import calls
from tests.bundles import bundle_of
from tests.waiting import begin_with_new_processes
from ui.runtime import process, watchers, workers
from ui.runtime.jobs import TELLS_PROGRESS, Job


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """UMAP is compiled in every process that runs it, which takes 15 s: its tests run nightly."""
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if item.nodeid.startswith("tests/unit/") and parameters.get("method") == "umap":
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(autouse=True, scope="session")
def _nothing_imported_beforehand() -> Iterator[None]:
    """Most calls in these tests need neither torch nor a model; processes import them when a call does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "IMPORTED", ())
        begin_with_new_processes()
        yield


@pytest.fixture(scope="session")
def door(embedded: Model, door_trace: Trace) -> Bundle:
    """The first screen's example, with "it" and "door" picked."""
    return bundle_of(
        embedded,
        door_trace,
        layer=3,
        head=1,
        query=7,
        key=5,
        settings={"seed": "3", "metric": "cosine"},
    )


@pytest.fixture(scope="session")
def packed(door: Bundle) -> bytes:
    return write_bundle(door)


@pytest.fixture
def pair_trace(embedded: Model) -> Trace:
    """Of two texts, in which words come twice."""
    return embedded.trace("the cat saw the cat", "it ran")


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets whose session is running."""

    def look_as(name: str) -> None:
        monkeypatch.setattr(watchers, "session_id", lambda: name)

    return look_as


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[tuple[Job, Path]]:
    """As many calls as there are processes, each of which runs until the file exists."""
    end = tmp_path / "end"
    yield Job([(calls.until, (end,), TELLS_PROGRESS)] * workers.WORKERS), end
    end.touch()
