"""What Streamlit and Plotly cannot do themselves, each with its script and style beside it; what several share is in shared/."""

from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent


def register(name: str, *shared: str) -> Any:
    """The mounting command of the component whose .js and .css are in the folder of this name.

    Args:
        shared: names of files in shared/ that its script and style go on from.
    """
    files = [*(_HERE / "shared" / one for one in shared), _HERE / name / name]
    return st.components.v2.component(
        f"attnviz_{name}",
        html=f'<div class="{name}"></div>',
        css=_joined(files, ".css"),
        js=_joined(files, ".js"),
    )


def _joined(files: list[Path], suffix: str) -> str:
    paths = [one.with_suffix(suffix) for one in files]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths if path.exists())
