"""A real server, asked over its websocket, without a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import running_server
from tests.log_lines import errors


@pytest.fixture(scope="session")
def server_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server that all tests here share has written."""
    return tmp_path_factory.mktemp("server") / "log.txt"


@pytest.fixture(scope="session")
def server(server_log: Path) -> Iterator[str]:
    """A server that all tests here share; at the end its log holds no error, and only lines of values by key."""
    with running_server(server_log) as address:
        yield address
    assert errors(server_log) == []
