"""Which kinds of attention are there? The same queries, keys and values under another mask, and tile by tile."""

import streamlit as st

from ui.runtime import cache
from ui.shell import errors, verdict

# isort: split
from ui.rooms.explore.pair import pick_query
from ui.rooms.how_it_works.kinds_of_attention.graph import graph
from ui.rooms.how_it_works.kinds_of_attention.mask import MASK_NAMES, controls, mask_name
from ui.rooms.how_it_works.kinds_of_attention.matrices import matrices
from ui.rooms.how_it_works.kinds_of_attention.output import output
from ui.rooms.how_it_works.kinds_of_attention.sources import sources
from ui.rooms.how_it_works.kinds_of_attention.streaming import streaming
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words.glossary import terms

SAID = {
    "none": "Every query sees every key, as in BERT, which reads a whole sentence at once (Devlin et al. 2018, "
    "arXiv:1810.04805).",
    "causal": "A token sees itself and what came before, as in GPT, which must not see the word that it has to predict "
    "(Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3).",
    "window": "A token sees its neighbours only, so that cells grow with n × width instead of n × n (Beltagy et al. "
    "2020, arXiv:2004.05150; Jiang et al. 2023, arXiv:2310.06825).",
    "sentences": "A token sees its own sentence of the pair only: no message crosses from one to the other, as "
    "between two texts in one batch.",
    "own": "Nothing is masked but what this layer of the model masks itself; see its own matrix.",
    "cross": "Every query of the decoder's text sees every key of the encoder's, which has been read already: nothing "
    "in it is left to predict. Mask a cell or a key to see what depends on it.",
}


view = frame("Kinds of attention")
with errors.explained():
    allowed = cache.mask(
        view.selection.source,
        view.kind,
        mask_name(view),
        view.selection.masking.reach,
        view.selection.masking.hidden_keys,
        view.selection.masking.painted,
    )
    _, key = pick_query(view)
    name = mask_name(view)
    own = view.trace.attention(view.selection.layer, view.kind).allowed
    has_own = name == "none" and own is not None and not own.all()
    sentence = SAID["own" if has_own else "cross" if view.kind == "cross" else name]
    st.markdown(f"**{MASK_NAMES[name]}:** {sentence}")
    controls(view)
    matrices(view, allowed, key)
    graph(view, allowed, key)
    output(view, allowed)
    streaming(view)
    sources(view)
terms(
    "Mask",
    "Causal mask",
    "Sliding window",
    "Self-attention",
    "Cross-attention",
    "Encoder",
    "Decoder",
    "Streaming softmax",
)
take(
    view,
    {
        "mask_before": "The model's own",
        "mask_after": "Masked",
        "mask_graph": "Graph",
        "mask_effect": "What it does",
    },
)
verdict.show(view)
