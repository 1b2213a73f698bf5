"""What Streamlit and Plotly cannot do themselves, each with its script and style beside it."""

from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent


def register(name: str) -> Any:
    """The mounting command of the component whose .js and .css are in the folder of this name."""
    script, style = _HERE / name / f"{name}.js", _HERE / name / f"{name}.css"
    return st.components.v2.component(
        f"attnviz_{name}",
        html=f'<div class="{name}"></div>',
        css=style.read_text(encoding="utf-8"),
        js=script.read_text(encoding="utf-8"),
    )
