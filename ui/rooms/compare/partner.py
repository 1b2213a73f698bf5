"""B of a comparison: its choices, how it differs from the selection, and its view."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import streamlit as st

from attnviz.errors import SelectionError
from attnviz.model.catalogue import locate, offer, offers
from attnviz.records import MIXINGS
from ui.choice import state
from ui.choice.exchanged import other_sentence
from ui.choice.fields import Number, Positions, Text
from ui.choice.fitting import nearest_words, not_shown
from ui.choice.selection import Selection, choices
from ui.runtime import cache
from ui.shell import downloads, errors
from ui.shell.view import View
from ui.words.literal import literal

FEWEST_ZOOMED = 12
"""Entries per side of the smallest part that can be zoomed to."""
FIELDS = {
    "head": ("other_head",),
    "layer": ("other_layer",),
    "sentence": ("other_text", "other_second"),
    "model": ("other_model",),
    "masked": ("other_masked",),
}
"""What can differ in B, and the selection's fields for it; the first field is set whenever it differs."""
Place = tuple[int | None, int | None]
"""Positions of a query and a key; None where there is none."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerB:
    """What differs in B of a comparison from the selection, and the zoomed part of both."""

    PREFIX: ClassVar = "other_"

    model: Annotated[
        str,
        Text(
            title="Model of B",
            help="Compares the selected model with this one; tokens are matched by their text.",
        ),
    ] = ""
    """Empty for A's model."""
    text: Annotated[
        str,
        Text(title="Sentence B", help="Compares the selected sentence with this one; empty for the same."),
    ] = ""
    """Empty for A's, second sentence included."""
    second: Annotated[
        str,
        Text(
            title="Second sentence of B (optional)",
            help="Read together with sentence B as a pair.",
        ),
    ] = ""
    """Empty for none if B has its own sentence."""
    masked: Annotated[
        tuple[int, ...] | None,
        Positions(title="Masked in B", help="In B these tokens are replaced by the mask token."),
    ] = None
    """Positions of B's tokens replaced by the mask token; None for A's if B reads the same text."""
    layer: Annotated[
        int | None, Number(title="Layer of B", help="Compares the selected layer with this one.")
    ] = None
    head: Annotated[
        int | None, Number(title="Head of B", help="Compares the selected head with this one.")
    ] = None
    zoom: Annotated[
        int | None,
        Number(
            FEWEST_ZOOMED, help="Shows this many queries and keys around the selected pair; all if empty."
        ),
    ] = None

    def renewed(self, before: str, after: str) -> dict[str, str]:
        """Sentence B for another sentence, where it was made from the previous one."""
        return {"other_text": other_sentence(after)} if self.text == other_sentence(before) else {}


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
    usual = "layer" if view.is_of_layer else "head"
    return view.selection.but(**start("masked" if view.selection.masked else usual, view, key))


def other(selection: Selection) -> Selection:
    """B of a comparison: the same selection except for what is set for B."""
    b = selection.of(PartnerB)
    reads_other = bool(b.model or b.text)
    masked = () if reads_other else selection.masked
    return replace(
        selection,
        model=b.model or selection.model,
        text=b.text or selection.text,
        second=b.second if b.text else selection.second,
        source_language="" if b.model else selection.source_language,
        target_language="" if b.model else selection.target_language,
        template="plain" if b.model else selection.template,
        masked=masked if b.masked is None else b.masked,
        bundle="" if reads_other or b.masked is not None else selection.bundle,
        layer=selection.layer if b.layer is None else b.layer,
        head=selection.head if b.head is None else b.head,
    )


def view_of_b(view: View, shown: Selection) -> View | None:
    """B arranged like A, with the nearest existing layer and head; None after showing why it cannot be drawn.

    Where its model has no attention of A's kind, it is that model's first kind.
    """
    asked_for = other(shown)
    with errors.explained(key="cut_other"):
        chosen = offer(asked_for.model)
        if not asked_for.bundle and locate(chosen) is None:
            downloads.panel(chosen)
            return None
        trace, fitted = cache.trace(asked_for.source), asked_for
        kind = view.kind if view.kind in trace.kinds else trace.kinds[0]

        def fit(name: str, count: int, things: str) -> None:
            nonlocal fitted
            asked = asked_for.value(name)
            if asked >= count:
                fitted = fitted.but(**{name: count - 1})
                if differs(shown, name):
                    state.pin(**{FIELDS[name][0]: count - 1})
                sentence = nearest_words(name, asked, count, things)
                st.caption(f":material/info: B: {literal(sentence)}")

        fit("layer", trace.n_layers(kind), f"{asked_for.model} has layers")
        n_heads = trace.n_heads(fitted.layer, kind)
        fit("head", n_heads, f"layer {fitted.layer} of {asked_for.model} has heads")
        b = replace(view, selection=fitted, trace=trace, kind=kind)
        if b.measure in MIXINGS and b.measure not in b.measures:
            raise SelectionError(f"B: {not_shown(b.measure, fitted, trace)}. Select weights, or another B.")
        return b
    return None
