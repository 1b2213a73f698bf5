"""Work-arounds for Streamlit: each alone, with its symptom and how to see that it is gone, tried with this version."""

from pathlib import Path

import pytest
import streamlit

from ui import session, streamlit_fixes
from ui.streamlit_fixes import TRIED_WITH

FILES = [
    path
    for path in sorted(Path(streamlit_fixes.__file__).parent.iterdir())
    if path.suffix in (".py", ".css", ".js") and path.name != "__init__.py"
]


def test_were_tried_with_the_version_that_is_installed():
    """Where it fails: go through "No longer needed when" in each file, then set `TRIED_WITH`."""
    assert streamlit.__version__ == TRIED_WITH


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_says_what_it_is_for_and_when_it_can_go(path):
    text = path.read_text(encoding="utf-8")
    for part in ("Symptom: ", "Version: ", "No longer needed when: "):
        assert part in text


def test_of_a_version_that_it_was_not_tried_with_is_noticed(monkeypatch):
    monkeypatch.setattr(streamlit, "__version__", "2.0.0")
    with pytest.raises(AssertionError):
        test_were_tried_with_the_version_that_is_installed()


class TestSession:
    """`ui.session`: a typed record for each owner."""

    def test_makes_a_record_once_and_keeps_it(self, monkeypatch):
        held = {}
        monkeypatch.setattr(session.st, "session_state", held)
        link = session.of_session(session.Link)
        assert link.params is None
        link.params = {"layer": "3"}
        assert session.of_session(session.Link) is link
        assert len(held) == 1
