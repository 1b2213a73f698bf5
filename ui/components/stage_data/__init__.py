"""The document and the numbers of the stage, sent to the browser once for each text."""

from collections.abc import Mapping

import msgspec

from attnviz.viewer.data import StageData
from ui.components import register

_mount = register("stage_data")


def stage_data(document: StageData, cells: bytes, *, order: Mapping[str, object]) -> None:
    """Sends what the viewer draws, whatever is selected: Streamlit sends only the hash of a message that the browser already has.

    Args:
        order: what a link has for each field of the selection that is left out of it, in the order of a link.
    """
    _mount(key="stage_data", data={"document": msgspec.to_builtins(document), "order": order}, attached=cells)
