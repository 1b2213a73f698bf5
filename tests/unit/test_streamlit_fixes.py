"""Work-arounds for Streamlit: each alone, with its symptom and how to see that it is gone, tried with this version."""

from pathlib import Path

import streamlit

from tests.findings import assert_none
from ui import session, streamlit_fixes
from ui.streamlit_fixes import TRIED_WITH

PARTS = ("Symptom: ", "Version: ", "No longer needed when: ")
FILES = [
    path
    for path in sorted(Path(streamlit_fixes.__file__).parent.iterdir())
    if path.suffix in (".py", ".css", ".js") and path.name != "__init__.py"
]


def test_were_tried_with_the_version_that_is_installed():
    """Where it fails: go through "No longer needed when" in each file, then set `TRIED_WITH`."""
    assert streamlit.__version__ == TRIED_WITH


def unsaid(text: str) -> list[str]:
    """What a work-around does not say of itself."""
    return [part.rstrip() for part in PARTS if part not in text]


def test_each_says_what_it_is_for_and_when_it_can_go():
    assert len(FILES) > 10
    assert_none(
        f"ui/streamlit_fixes/{path.name} does not say {part!r}"
        for path in FILES
        for part in unsaid(path.read_text(encoding="utf-8"))
    )


def test_check_can_fail():
    whole = "Symptom: it flickers.\nVersion: 1.\nNo longer needed when: it does not.\n"
    assert unsaid(whole) == []
    assert_none(
        f"not noticed: {part!r} is missing"
        for part in PARTS
        if unsaid(whole.replace(part, "")) != [part.rstrip()]
    )


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
