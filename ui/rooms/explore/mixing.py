"""What takes the model and time: ALTI and value zeroing of a layer, awaited with their progress, and what is said of them."""

from collections.abc import Iterable

from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.records import MIXINGS
from ui.runtime import cache
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.findings import identity_words


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
                f"Computing {MEASURE_NAMES[method]} of layer {layer}",
            )
            if not is_there(work, None, doing, key="mixing_act"):
                return False
    return True


def identity_note(view: View) -> str:
    """Whether what the selected layer mixes was computed from the model's own vectors; empty for other measures."""
    method = view.measure
    if method not in MIXINGS:
        return ""
    return identity_words(cache.mixing(view.selection.source, view.selection.layer, view.kind, method))
