"""The image with a tiny model baked in, from a Hub on loopback, and one container of it for all tests."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from deploy.image import Engine, NoEngineError, build, find_engine
from tests.browser.conftest import LAUNCH
from tests.browser.find_chromium import chromium_path
from tests.hub import LoopbackHub, save_tiny_bert
from tests.image.container import Container, running

BAKED = "example/tiny"


@pytest.fixture(scope="session")
def engine() -> Engine:
    try:
        return find_engine()
    except NoEngineError as error:
        pytest.fail(str(error))  # whoever asks for these tests wants them to run


@pytest.fixture(scope="session")
def image(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its name."""
    folder = tmp_path_factory.mktemp("hub") / "tiny"
    with LoopbackHub({BAKED: save_tiny_bert(folder)}) as hub:
        build(engine, "attnviz-test", MODELS=BAKED, HF_ENDPOINT=hub.url)
    return "attnviz-test"


@pytest.fixture(scope="session")
def container(engine: Engine, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    with running(engine, image, tmp_path_factory.mktemp("container")) as started:
        yield started


@pytest.fixture(scope="session")
def browser(container: Container, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium in the container's network, which has nothing but loopback."""
    script: Path = tmp_path_factory.mktemp("chromium") / "chromium"
    script.write_text(
        f'#!/bin/sh\nexec nsenter --net=/proc/{container.pid}/ns/net {shlex.quote(chromium_path())} "$@"\n'
    )
    script.chmod(0o755)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=script, args=list(LAUNCH))
        yield started
        started.close()
