"""The style of every page: our own, and fixes for Streamlit's."""

from pathlib import Path

from ui import streamlit_fixes

_FILES = (
    *(
        Path(__file__).parent / name
        for name in ("first_look.css", "frame.css", "heading.css", "controls.css", "present.css")
    ),
    *sorted(Path(streamlit_fixes.__file__).parent.glob("*.css")),
)


def style() -> str:
    """CSS."""
    return "".join(file.read_text(encoding="utf-8") for file in _FILES)
