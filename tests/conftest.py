"""Models that several tests use. Each is loaded once and never changed, so tests may share it."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from plotly import graph_objects as go
from transformers.utils import logging
from xdist.scheduler import LoadScopeScheduling

import attnviz
from attnviz import arguments
from attnviz.figures.theme import Figure
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import AttentionPattern, Axis
from tests import memory, tiers, tiny, tiny_refused
from tests.common_look import has_the_common_look

logging.disable_progress_bar()
# What tests compute beside attnviz is computed on the CPU; those of a GPU name it (tests/parity/test_cuda.py).
os.environ.setdefault("ATTNVIZ_DEVICE", "cpu")


RUN_AGAIN = ("tests/browser/", "tests/server/")
"""Folders whose tests are run once more where they fail: they rest on a browser and on processes, not on our code alone."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(RUN_AGAIN):
            item.add_marker(pytest.mark.flaky(reruns=1))
        if config.getoption("jaxtyping_packages") and item.get_closest_marker("as_served"):
            item.add_marker(pytest.mark.skip(reason="functions whose types are checked cannot be pickled"))
    tiers.mark_nightly(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if item.get_closest_marker("stand_ins") is None:
        return (yield)
    with unchecked(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(arguments._Rule, "check", lambda rule, value, name, function: value)
        patch.setattr(AttentionPattern, "_check_numbers", lambda pattern: None)
        return (yield)


class OneServer(LoadScopeScheduling):  # type: ignore[misc]
    """One process has all tests that need a server, so that one is started; files stay whole, for what their tests share."""

    def _split_scope(self, nodeid: str) -> str:
        return "server" if nodeid.startswith(RUN_AGAIN) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)  # -p no:xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneServer | None:
    return OneServer(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the tests that passed only when they were run again: each is to be mended, or moved to the nightly ones."""
    reports = terminalreporter.stats
    failed = {report.nodeid for kind in ("failed", "error") for report in reports.get(kind, ())}
    again = sorted({report.nodeid for report in reports.get("rerun", ())} - failed)
    if again:
        terminalreporter.section("flaky", sep="=", red=True)
        for nodeid in again:
            terminalreporter.line(f"passed only when run again: {nodeid}")


@pytest.fixture(autouse=True)
def _no_models_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTNVIZ_MODELS", raising=False)


def _numbers(figure: go.Figure) -> Any:
    """What is sent of a figure; plotly turns angles by 180 degrees and back, which changes their last digits."""
    return json.loads(figure.to_json(), parse_float=lambda digits: round(float(digits), 9))


@pytest.fixture(autouse=True)
def checked_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every figure that a test draws is what plotly makes of it when it checks each field; the pages draw theirs so in
    tests/app/test_pages.py alone, for it takes a tenth of their tests' time. What has a legend has names for it,
    no text an arrow, and all have the common look."""
    if request.path.parent.name == "app" and request.path.stem != "test_pages":
        return
    unchecked = Figure.__init__

    def checked(self: Figure, traces: list[Any], layout: dict[str, Any]) -> None:
        unchecked(self, traces, layout)
        traces, layout = deepcopy((traces, layout))  # Plotly moves the types in them
        has_the_common_look(traces, layout)
        of_plotly = go.Figure(traces, layout)
        assert _numbers(self) == _numbers(of_plotly)
        built = Figure.__new__(Figure)
        unchecked(built, traces, layout)
        assert len(built.data) == len(traces)  # which builds it
        assert _numbers(built) == _numbers(of_plotly)
        in_legend = [trace for trace in built.data if trace.showlegend is not False]
        is_named = all(trace.name for trace in in_legend)  # else the legend says "trace 0"
        assert is_named or not built.layout.showlegend
        # Plotly gives each text an arrow unless told otherwise; ours are drawn alone.
        assert all(note.showarrow is False or note.text == "" for note in built.layout.annotations)

    monkeypatch.setattr(Figure, "__init__", checked)


@contextmanager
def unchecked() -> Iterator[None]:
    """attnviz as users run it: shapes and types are checked in tests only."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def types_unchecked() -> Iterator[None]:
    """For what attnviz refuses by itself; the checks of types would refuse it first."""
    with unchecked():
        yield


@pytest.fixture(scope="session")
def embedded() -> Model:
    """The embedded all-MiniLM-L6-v2: a trained BERT with 6 layers and 12 heads."""
    return attnviz.load_model("all-MiniLM-L6-v2")


@pytest.fixture(scope="session")
def smollm2() -> Model:
    """The bundled SmolLM2-135M-Instruct: a trained Llama with 30 layers and 9 heads, dequantised once on this machine."""
    return attnviz.load_model("SmolLM2-135M-Instruct")


@pytest.fixture(scope="session")
def door_trace(embedded: Model) -> Trace:
    """The first screen's example: in layer 3, head 1 "it" attends to "door"."""
    return embedded.trace("I was watching the door when it opened.")


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a family's tiny checkpoint, written when first asked for."""
    families = tiny.TEXT_FAMILIES | tiny.TEXT_PARTS | tiny_refused.UNSUPPORTED_FAMILIES
    root = tmp_path_factory.mktemp("checkpoints")
    return cache(lambda name: tiny.save(families[name], root / name))


@pytest.fixture(scope="session")
def tiny_model(checkpoint: Callable[[str], Path]) -> Callable[[str], Model]:
    """A family's tiny model, loaded by attnviz when first asked for."""
    return cache(lambda name: attnviz.load_model(str(checkpoint(name))))


@pytest.fixture(scope="session")
def headed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Model, Path]]:
    """A family's tiny model with its language head, and the folder of its checkpoint."""
    root = tmp_path_factory.mktemp("with_head")

    @cache
    def load(name: str) -> tuple[Model, Path]:
        folder = tiny.save_with_head(name, root / name)
        return attnviz.load_model(str(folder)), folder

    return load


@pytest.fixture(scope="session")
def classifying(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Model, Path]]:
    """A family's tiny model with a classifier of texts, and the folder of its checkpoint."""
    root = tmp_path_factory.mktemp("with_classifier")

    @cache
    def load(name: str) -> tuple[Model, Path]:
        folder = tiny.save_with_classifier(name, root / name)
        return attnviz.load_model(str(folder)), folder

    return load


@pytest.fixture(scope="session")
def kept_bytes() -> Callable[[Trace], int]:
    """Bytes of memory that a trace keeps alive: each buffer once, and whole where only a part is used."""
    return memory.kept_bytes


@pytest.fixture(scope="session")
def door_bundle(embedded: Model, door_trace: Trace) -> bytes:
    """A bundle of the first screen's example, at layer 2, head 7, with "opened" and "the" picked."""
    words = Axis.of(door_trace.tokens)
    return attnviz.write_bundle(
        attnviz.Bundle(
            trace=door_trace,
            report=attnviz.verify(embedded, door_trace),
            kind="encoder",
            layer=2,
            head=7,
            queries=words.without_special(),
            keys=words,
            query=8,
            key=4,
            settings={"special": "shown", "seed": "11"},
            weights_sha256=embedded.weights_sha256,
        )
    )
