"""What all tests of pages have in common."""

from collections.abc import Iterator

import pytest
from streamlit.components.v2 import manifest_scanner

from ui.work import cache, with_model


@pytest.fixture(autouse=True)
def _made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page waits for is made in this process, where a test can plant a fault; tests/unit/test_jobs.py and the tests in
    Chromium have the processes."""
    monkeypatch.setattr(cache, "elsewhere", lambda function, *args, **named: function(*args, **named))
    monkeypatch.setattr(with_model, "_model", lambda name: cache.model(name))


@pytest.fixture(autouse=True, scope="session")
def _packages_scanned_once() -> Iterator[None]:
    """Streamlit 1.67 looks through all installed packages for components once a server; AppTest is a server a run."""
    found = manifest_scanner.scan_component_manifests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: found)
        yield
