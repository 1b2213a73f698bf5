"""B of a comparison: how it differs from the selection, and its view."""

from dataclasses import replace
from typing import Any

import streamlit as st

from attnviz.model.catalogue import locate, offer, offers
from ui.choice import state
from ui.choice.exchanged import other_sentence
from ui.choice.selection import Selection
from ui.runtime import cache
from ui.shell import downloads, errors
from ui.shell.view import View
from ui.words.literal import literal

# What can differ in B, and the selection's fields for it; the first field is set whenever it differs.
FIELDS = {
    "head": ("other_head",),
    "layer": ("other_layer",),
    "sentence": ("other_text", "other_second"),
    "model": ("other_model",),
    "masked": ("other_masked",),
}


Place = tuple[int | None, int | None]  # positions of a query and a key; None where there is none


def differs(selection: Selection, what: str) -> bool:
    """Whether B has its own ``what``: head, layer, sentence, model or masked tokens."""
    return selection.value(FIELDS[what][0]) not in (None, "")


def start(what: str, view: View, key: int) -> dict[str, Any]:
    """The default for B's own ``what``: head, layer, sentence, model or masked tokens."""
    selection, trace, kind = view.selection, view.trace, view.kind
    match what:
        case "head":
            return {"other_head": (selection.head + 1) % trace.n_heads(selection.layer, kind)}
        case "layer":
            return {"other_layer": (selection.layer + 1) % trace.n_layers(kind)}
        case "sentence":
            return {"other_text": other_sentence(selection.text), "other_second": selection.second}
        case "model":
            return {"other_model": other_models(selection)[0]}
        case _:
            position = view.query if trace.key_tokens(kind).is_special[key] else key
            return {"other_masked": () if selection.masked else (position,)}


def other_models(selection: Selection) -> list[str]:
    """The models on offer except A's, those on disk first."""
    others = [offer for offer in offers() if offer.name != selection.model]
    return [other.name for other in sorted(others, key=lambda name: locate(name) is None)]


def with_b(view: View, key: int) -> Selection:
    """The selection with a B; by default the unmasked text, or the next head."""
    if any(differs(view.selection, what) for what in FIELDS):
        return view.selection
    usual = "layer" if view.measure == "rollout" else "head"
    return view.selection.but(**start("masked" if view.selection.masked else usual, view, key))


def view_of_b(view: View, shown: Selection) -> View | None:
    """B arranged like A, with the nearest existing layer and head; None after showing why it cannot be drawn.

    Where its model has no attention of A's kind, it is that model's first kind.
    """
    other = shown.other
    with errors.explained(key="cut_other"):
        chosen = offer(other.model)
        if not other.bundle and locate(chosen) is None:
            downloads.panel(chosen)
            return None
        trace, fitted = cache.trace(other.source), other
        kind = view.kind if view.kind in trace.kinds else trace.kinds[0]

        def fit(name: str, count: int, things: str) -> None:
            nonlocal fitted
            asked = other.value(name)
            if asked >= count:
                fitted = fitted.but(**{name: count - 1})
                if differs(shown, name):
                    state.pin(**{FIELDS[name][0]: count - 1})
                sentence = state.nearest_words(name, asked, count, things)
                st.caption(f":material/info: B: {literal(sentence)}")

        fit("layer", trace.n_layers(kind), f"{other.model} has layers")
        n_heads = trace.n_heads(fitted.layer, kind)
        fit("head", n_heads, f"layer {fitted.layer} of {other.model} has heads")
        return replace(view, selection=fitted, trace=trace, kind=kind)
    return None
