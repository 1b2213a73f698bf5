"""Are these numbers the model's own? Every comparison for the sentence at hand."""

import streamlit as st

from ui.rooms.verification.comparisons import checks
from ui.rooms.verification.examples import every_preset
from ui.rooms.verification.grid import grid
from ui.rooms.verification.row import row
from ui.shell import errors
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words.glossary import linked

view = frame("Verification")
st.markdown(
    "These numbers come from a file. What the file says of them stands below as recorded, until its text is run again on "
    "the same weights."
    if view.selection.bundle
    else "The model runs on attnviz's own scaled dot-product attention. For each text the same model, with the same "
    "parameters, runs once more on the attention function that the transformers library has for its family, and each "
    "layer is compared as it passes."
)
st.latex(r"\text{attention}(Q, K, V) = \text{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V")
st.caption(
    f"Vaswani et al. 2017, arXiv:1706.03762, equation 1. Each {linked('Query')} and {linked('Key')} has $d_k$ numbers; the "
    f"{linked('Softmax')} turns their {linked('Score', 'scores')} into {linked('Weight', 'weights')}, with which the "
    f"{linked('Value', 'values')} are averaged."
)
with errors.explained():
    checks(view)
    left, right = st.columns([2, 3], gap="medium")
    with left:
        grid(view)
    with right:
        row(view)
    if not view.selection.bundle:
        every_preset(view)
take(view, {"errors": "Differences of all heads"})
