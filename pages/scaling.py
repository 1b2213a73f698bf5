"""Why are scores divided by the square root of d_k? What any scale does to scores, to a row of weights, and to exp."""

import numpy as np
import streamlit as st

from attnviz.lessons.scaling import (
    exponentials,
    products_of,
)
from ui.choice import state
from ui.components.token_strip import token_strip
from ui.rooms.how_it_works.scaling.chosen import controls
from ui.rooms.how_it_works.scaling.curves import MEASURES, curves
from ui.rooms.how_it_works.scaling.overflow import overflow
from ui.rooms.how_it_works.scaling.spread import spread
from ui.shell import errors, verdict
from ui.shell.export.take import take
from ui.shell.frame import frame

view = frame("Scaling")
selection = view.selection
csv = None
with errors.explained():
    products = products_of(view.trace, *selection.place, view.kind)
    strip = st.container()
    chosen = controls(view, products)
    weights = np.zeros(products.products.shape[1], dtype=np.float32)
    if chosen.n_seen:
        scores = products.row(view.query, chosen.scale)
        weights[products.allowed[view.query]] = exponentials(scores, np.float32, subtract=True).weights
    with strip:
        token_strip(
            view.query_tokens,
            query=view.query,
            key=-1 if selection.key is None else selection.key,
            weights=weights if view.kind != "cross" else None,
            mask_label=None,
            on_pick=lambda position: state.change(query=position, key=None),
            on_mask=state.mask,
            theme=view.theme,
        )
    spread(chosen)
    if chosen.n_seen:
        csv = curves(chosen)
        overflow(products, view.query, chosen.token, chosen.scales)
    else:
        st.info(f"The query {chosen.token} may see no key, so its row has no scores.")
take(
    view,
    {
        "spread_random": "Random vectors",
        "spread_model": "This model",
        **{f"sharp_{key}": what.capitalize() for key, what in MEASURES.items()},
    },
    csv=csv,
    numbers="Curves" if csv else "Matrix",
)
verdict.show(view)
