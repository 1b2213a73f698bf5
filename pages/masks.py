"""Which kinds of attention are there? The same queries, keys and values under another mask, and tile by tile."""

from dataclasses import replace

import numpy as np
import streamlit as st

from ui.choice import (
    state,
    widgets,  # before attnviz loads torch
)
from ui.page import errors, verdict
from ui.work import cache

# isort: split
from attnviz.effects.masking import cosine_change, under_mask
from attnviz.effects.masks import MASKS, MaskName
from attnviz.figures import draw_pattern
from attnviz.figures.effect import draw_effect
from attnviz.figures.sources import Sizes, draw_sources
from attnviz.figures.theme import isolated
from attnviz.model.trace import Trace
from attnviz.records import KINDS, Axis, Kind
from ui.choice.selection import CHOICES
from ui.components.heatmap_events import heatmap_events
from ui.export.take import take
from ui.page.frame import frame
from ui.page.view import View
from ui.sections.masks.predictions import predictions
from ui.sections.masks.streaming import streaming
from ui.sections.pair import pick_key, pick_query
from ui.sections.steps.walk import compare
from ui.words.findings import name
from ui.words.glossary import terms
from ui.words.literal import literal

CONFIG = {"displayModeBar": False}
MASK_NAMES = {
    "none": "None",
    "causal": "Causal",
    "window": "Sliding window",
    "sentences": "One sentence",
}
SAID = {
    "none": "Every query sees every key, as in BERT, which reads a whole sentence at once (Devlin et al. 2018, "
    "arXiv:1810.04805).",
    "causal": "A token sees itself and what came before, as in GPT, which must not see the word it is to guess "
    "(Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3).",
    "window": "A token sees its neighbours only, so that cells grow with n × width instead of n × n (Beltagy et al. "
    "2020, arXiv:2004.05150; Jiang et al. 2023, arXiv:2310.06825).",
    "sentences": "A token sees its own sentence of the pair only: no message crosses from one to the other, as "
    "between two texts in one batch.",
    "cross": "Every query of the decoder's text sees every key of the encoder's, which has been read already: nothing "
    "in it is still to be guessed. Forbid a cell or a key to see what hangs on it.",
}
SOURCES = {
    "encoder": (
        "Self-attention",
        "Queries, keys and values are made from the same tokens, and no token is hidden from those before it.",
    ),
    "decoder": (
        "Masked self-attention",
        "Made from the same tokens too; the mask leaves a token only itself and earlier ones.",
    ),
    "cross": (
        "Cross-attention",
        "Queries are made from the decoder's tokens, keys and values from the encoder's: the text being written "
        "looks at the text that was read.",
    ),
}


def controls(view: View) -> None:
    """Which mask, and where it is applied."""
    name = mask_name(view)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="mask_controls")
    row.segmented_control(
        "Attention mask",
        offered(view),
        required=True,
        format_func=MASK_NAMES.__getitem__,
        help="Which keys a query may see in the right matrix.",
        **widgets.field("mask", replace(view.selection, mask=name)),
    )
    row.segmented_control(
        "Applied in",
        CHOICES["where"],
        required=True,
        format_func=str.capitalize,
        help="Where in the model's own forward pass the mask holds, for what it does to the output.",
        **widgets.field("where"),
    )
    if name == "window":
        row.number_input(
            "Tokens to each side",
            min_value=0,
            max_value=512,
            width=160,
            help="How far a token sees in a sliding window.",
            **widgets.field("reach"),
        )
    with row.popover("More", icon=":material/tune:", key="mask_more"):
        keys = view.trace.key_tokens(view.kind)
        st.multiselect(
            "Masked keys",
            range(len(keys)),
            format_func=lambda position: f"{isolated(keys.labels[position])}·{position}",
            placeholder="Pick tokens",
            help="Takes these columns out of the matrix, whatever the mask.",
            **widgets.field("unseen"),
        )
        st.button(
            "Undo what was painted",
            disabled=not view.selection.flipped,
            on_click=lambda: state.change(flipped=()),
            key="unpaint",
            help="Puts every cell back to what the mask says.",
        )


def offered(view: View) -> list[MaskName]:
    """The masks that mean something here: sentences are kept apart in a pair, and cross-attention has no before."""
    if view.kind == "cross":
        return ["none"]
    return [one for one in MASKS if one != "sentences" or view.trace.tokens.text_pair is not None]


def mask_name(view: View) -> MaskName:
    """The mask that is shown: none where the chosen one is not offered."""
    return view.selection.mask if view.selection.mask in offered(view) else "none"


def mask_title(view: View) -> str:
    """What stands above whatever is under the mask."""
    painted = " and what is painted" if view.selection.flipped or view.selection.unseen else ""
    return f"Mask: {MASK_NAMES[mask_name(view)].lower()}{painted}"


def paint(query: int, key: int) -> None:
    """Forbids a cell that was allowed, or the other way round."""
    cell = f"{query}.{key}"
    painted = state.chosen().flipped
    state.change(
        flipped=tuple(one for one in painted if one != cell) if cell in painted else (*painted, cell)
    )


def matrices(view: View, allowed: np.ndarray, key: int) -> None:
    """The model's own matrix and the masked one, side by side; cells are painted by click or by button."""
    own = view.trace.pattern(view.selection.layer, view.selection.head, view.kind)
    masked = under_mask(view.trace, view.selection.layer, view.selection.head, allowed, view.kind)
    largest = float(max(one.weights.max() for one in (own, masked)))
    before, after = st.columns(2, gap="medium")
    for column, pattern, title, chart in (
        (before, own, "The model's own", "mask_before"),
        (after, masked, mask_title(view), "mask_after"),
    ):
        with column:
            st.markdown(f"**{title}**")
            st.plotly_chart(
                draw_pattern(
                    pattern,
                    colour=view.selection.colour,
                    picked=(view.query, key),
                    largest=largest,
                    theme=view.theme,
                ),
                theme=None,
                key=chart,
                config={"displayModeBar": False, "scrollZoom": False},
                alt=f"{title}, attention matrix of {len(pattern.queries)} queries and {len(pattern.keys)} keys",
            )
    with before:
        heatmap_events(
            own,
            chart="mask_before",
            show="weights",
            picked=(view.query, key),
            on_pick=paint,
            theme=view.theme,
        )
    n_seen, n_all = int(masked.allowed.sum()), masked.allowed.size
    with st.container(horizontal=True, vertical_alignment="bottom", key="paint_cell"):
        pick_key(view, key)
        query_name, key_name = name(own.queries, view.query), name(own.keys, key)
        st.button(
            literal(f"{'Forbid' if allowed[view.query, key] else 'Allow'} {query_name} → {key_name}"),
            icon=":material/edit_off:" if allowed[view.query, key] else ":material/edit:",
            on_click=paint,
            args=(view.query, key),
            key="paint",
            help="Takes this cell out of the masked matrix, or puts it back, as a click on a cell of the model's own does.",
        )
    said = (
        "Tokens are the nodes of a graph and weights its edges: along each a value passes from key to query (Veličković et "
        f"al. 2017, arXiv:1710.10903). {n_seen:,} of {n_all:,} cells, or edges, are left. Click a cell of the model's own matrix to forbid it, or to allow it again."
    )
    if empty := int((~masked.allowed.any(axis=1)).sum()):
        said += f" {empty} quer{'ies see' if empty > 1 else 'y sees'} no key at all; their rows are zero."
    st.caption(said)
    st.page_link(
        "pages/flow.py",
        label="See the edges as lines",
        icon=":material/arrow_forward:",
        query_params=view.selection.to_params(),
        help="Shows this head as lines from each query to its keys, without the mask.",
    )


def output(view: View, allowed: np.ndarray) -> None:
    """What the mask does inside the model's own forward pass."""
    st.subheader("What it does to the output")
    if view.selection.bundle:
        st.info("A bundle holds no model to run again; its sentence can be computed by leaving the bundle.")
        return
    where = view.selection.where
    changed = cache.masked_trace(
        view.selection.source,
        view.kind,
        None if where == "all layers" else view.selection.layer,
        view.selection.head if where == "this head" else None,
        allowed.tobytes(),
    )
    turned(view, changed)
    if view.trace.target_tokens is None:
        predictions(view, changed, f"{mask_title(view)}, in {where}")


def turned(view: View, changed: Trace) -> None:
    """How far the mask turns each token's last hidden state."""
    before, after = view.trace.last_hidden_state, changed.last_hidden_state
    change, where = cosine_change(before, after), view.selection.where
    tokens = Axis.of(view.trace.target_tokens or view.trace.tokens)
    st.markdown(
        "No cell that this model looks at is forbidden, so nothing changes. Forbid one, or pick another mask."
        if np.array_equal(before, after)
        else f"The model has read the sentence again with the mask in {where}. The last hidden state of a token turns by "
        f"{change.mean():.3f} on average (1 − cosine: 0 is no change, 1 a right angle), most for "
        f"{literal(name(tokens, int(change.argmax())))}, by {change.max():.3f}."
    )
    picked = view.query if view.kind != "encoder" or view.trace.target_tokens is None else None
    st.plotly_chart(
        draw_effect(change, tokens, picked=picked, theme=view.theme),
        theme=None,
        key="mask_effect",
        config=CONFIG,
        alt="Change of each token's last hidden state",
    )
    if mask_name(view) == "sentences" and where == "all layers":
        read_alone(view, changed)


def read_alone(view: View, changed: Trace) -> None:
    """Whether the first sentence has become what it is without the second."""
    source, selection = view.selection.source, view.selection
    if selection.flipped or selection.unseen:
        return
    n_own = int((view.trace.tokens.segment == 0).sum())
    alone = cache.trace(replace(source, second="", masked=tuple(one for one in source.masked if one < n_own)))
    if not np.array_equal(
        alone.tokens.ids, changed.tokens.ids[:n_own]
    ):  # RoBERTa puts two signs between them
        return
    compare(
        changed.last_hidden_state[:n_own],
        alone.last_hidden_state,
        f"the vectors of the {n_own} tokens of the first sentence under this mask",
        to="those of the same sentence read alone",
        how="Read twice",
    )


def sources(view: View) -> None:
    """Where queries, keys and values come from, of every kind; with sizes of those that this model has."""
    st.subheader("Where queries, keys and values come from")
    st.markdown(
        "One formula for all kinds; what differs is the text that each part is made from, and the mask "
        "(Vaswani et al. 2017, arXiv:1706.03762, section 3.2)."
    )
    st.latex(r"\mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}} + \text{mask}\right) V")
    for column, kind in zip(st.columns(3, gap="medium"), KINDS, strict=True):
        title, said = SOURCES[kind]
        is_here = kind in view.trace.kinds
        with column:
            st.markdown(f"**{title}**" + ("" if is_here else " · not in this model"))
            st.plotly_chart(
                draw_sources(kind, sizes(view, kind) if is_here else None, theme=view.theme),
                theme=None,
                key=f"sources_{kind}",
                config=CONFIG,
                alt=f"{title}: {said}",
            )
            st.caption(said)
    if view.trace.kinds == ("encoder",):
        st.caption(
            "n and m stand for numbers of tokens, d for lengths of vectors. A decoder such as GPT-2, or an "
            "encoder-decoder such as BART, listed in ATTNVIZ_MODELS, is drawn with its own numbers."
        )


def sizes(view: View, kind: Kind) -> Sizes:
    """The sizes of one head of a kind, for this text."""
    query, key = (one[0] for one in (view.trace.attention(0, kind).query, view.trace.attention(0, kind).key))
    return Sizes(
        query=len(query), key=len(key), d_model=view.trace.last_hidden_state.shape[1], d_head=query.shape[1]
    )


view = frame("Kinds of attention")
with errors.explained():
    allowed = cache.mask(
        view.selection.source,
        view.kind,
        mask_name(view),
        view.selection.reach,
        view.selection.unseen,
        view.selection.flipped,
    )
    _, key = pick_query(view)
    st.markdown(
        f"**{MASK_NAMES[mask_name(view)]}:** {SAID['cross' if view.kind == 'cross' else mask_name(view)]}"
    )
    controls(view)
    matrices(view, allowed, key)
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
take(view, {"mask_before": "The model's own", "mask_after": "Masked", "mask_effect": "What it does"})
verdict.in_sidebar(view.selection)
