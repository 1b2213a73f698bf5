"""What takes the model and time: ALTI and value zeroing of a layer, awaited with their progress."""

from collections.abc import Iterable

from attnviz.records import MIXINGS
from ui.runtime import cache
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.findings import SHOWN_NAMES


def mixing_is_there(view: View, layers: Iterable[int]) -> bool:
    """Whether the matrices of these layers are known, as those of other measures always are; shows the progress until they are.

    Raises:
        AttnvizError: one of `ui.shell.waiting.REFUSALS`.
    """
    method, source = view.measure, view.selection.source
    if method not in MIXINGS:
        return True
    for layer in layers:
        if not cache.is_mixed(source, layer, view.kind, method):
            work, doing = (
                cache.mixing_job(source, layer, method),
                f"Computing {SHOWN_NAMES[method]} of layer {layer}",
            )
            if not is_there(work, None, doing, key="mixing_act"):
                return False
    return True
