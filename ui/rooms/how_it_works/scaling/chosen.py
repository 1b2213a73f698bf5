"""A head's dot products under the selected scale."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz.lessons.scaling import (
    LARGEST_D_K,
    SCALES,
    Products,
)
from attnviz.records import Axis
from ui.choice import widgets
from ui.rooms.how_it_works.scaling.choices import ScalingSettings
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What is shown: a row of the selected head, under a scale."""

    view: View
    products: Products
    scale: float
    d_k: int
    """Dimensions of the random vectors."""

    @property
    def n_seen(self) -> int:
        """Keys that the selected query may see."""
        return int(self.products.allowed[self.view.query].sum())

    @property
    def scales(self) -> dict[str, float]:
        """The model's own scale, no scale, and the selected scale, without duplicates."""
        named = {"The model’s": self.products.scale}
        for scale_name, scale in (("Not scaled", 1.0), ("Yours", self.scale)):
            if scale not in named.values():
                named[scale_name] = scale
        return named

    @property
    def other(self) -> float:
        """The scale to compare the model's with: the first that differs of the selected one, none, the paper's, and half."""
        d_head = self.view.trace.query(*self.view.selection.place, self.view.kind).shape[1]
        own = self.products.scale
        return next(scale for scale in (self.scale, 1.0, d_head**-0.5, own / 2) if scale != own)

    @property
    def token(self) -> str:
        """The selected query, as Markdown."""
        return literal(name(Axis.of(self.view.query_tokens), self.view.query))


def nearest(options: list[float], wanted: float) -> float:
    """The option nearest by ratio."""
    return min(options, key=lambda scale: abs(np.log(scale / wanted)))


def controls(view: View, products: Products) -> Chosen:
    """The controls for the scale and for the random vectors' dimensions."""
    own, selection = products.scale, view.selection
    d_head = view.trace.query(*selection.place, view.kind).shape[1]
    scales = sorted([own, *(scale for scale in SCALES if not np.isclose(scale, own))])
    sizes = sorted({d_head, *(2**power for power in range(LARGEST_D_K.bit_length()))})
    scale = nearest(scales, selection.of(ScalingSettings).scale or own)
    d_k = int(nearest([float(size) for size in sizes], selection.of(ScalingSettings).d_k or d_head))
    left, middle, right = st.columns([3, 3, 1], vertical_alignment="bottom", gap="medium")
    left.select_slider(
        **widgets.field(
            "scale",
            selection.but(scale=scale),
            format_func=lambda scale: f"{scale:.3g}" + " (the model’s)" * (scale == own),
            options=scales,
            value=scale,
        )
    )
    middle.select_slider(
        **widgets.field(
            "d_k",
            selection.but(d_k=d_k),
            format_func=lambda size: f"{size}" + " (this head)" * (size == d_head),
            options=sizes,
            value=d_k,
        )
    )
    with right.popover("More", icon=":material/tune:", key="scaling_more"):
        st.number_input(
            **widgets.field(
                "seed",
                help="Another seed draws other random vectors; the same seed draws the same.",
                label="Random seed of the vectors",
            )
        )
    return Chosen(view=view, products=products, scale=scale, d_k=d_k)
