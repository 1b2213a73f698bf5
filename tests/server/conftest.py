"""A real server, asked over its websocket, without a browser."""

from collections.abc import Iterator

import pytest

from tests.browser.conftest import LEFT_EARLY, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that all tests here share; its log holds no traceback in the end."""
    log = tmp_path_factory.mktemp("server") / "log.txt"
    with running_server(log) as address:
        yield address
    written = LEFT_EARLY.sub("", log.read_text())
    assert "Traceback" not in written, written[-20_000:]
