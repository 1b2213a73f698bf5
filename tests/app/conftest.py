"""What all tests of pages have in common."""

from collections.abc import Iterator

import pytest
from streamlit.components.v2 import manifest_scanner


@pytest.fixture(autouse=True, scope="session")
def _packages_scanned_once() -> Iterator[None]:
    """Streamlit 1.67 looks through all installed packages for components once a server; AppTest is a server a run."""
    found = manifest_scanner.scan_component_manifests()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", lambda: found)
        yield
