"""Which kinds of attention are there? The same queries, keys and values under another mask, and tile by tile."""

import streamlit as st

from attnviz.effects.masking import under_mask
from attnviz.figures import draw_pattern
from attnviz.figures.graph import EDGES_OF_QUERY, Edges, draw_graph, strongest_edges
from attnviz.figures.numbers import counted, number_text, share_text
from attnviz.heads.facts import received
from attnviz.records import AttentionPattern
from ui.components.plotly_figure.heatmap_events import heatmap_events
from ui.part import Block, Part, Picture, Sheet
from ui.rooms.explore.pair import pick, pick_key, pick_query
from ui.rooms.how_it_works.kinds_of_attention import around
from ui.rooms.how_it_works.kinds_of_attention.mask import (
    MASK_NAMES,
    Masked,
    controls,
    mask_name,
    mask_title,
    paint,
    under_words,
)
from ui.rooms.how_it_works.kinds_of_attention.output import output
from ui.rooms.how_it_works.kinds_of_attention.tiles_and_sources import sources, streaming
from ui.shell.chart import chart
from ui.shell.export.captions import WEIGHT
from ui.shell.navigation import link_to
from ui.words.findings import name, received_words
from ui.words.glossary import linked
from ui.words.literal import literal

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


def lead(masked: Masked) -> None:
    """What the mask lets a token see."""
    view, mask = masked.view, mask_name(masked.view)
    own = view.trace.attention(view.selection.layer, view.kind).allowed
    has_own = mask == "none" and own is not None and not own.all()
    said = SAID["own" if has_own else "cross" if view.kind == "cross" else mask]
    st.markdown(f"**{MASK_NAMES[mask]}:** {said}")


def matrices(masked: Masked) -> None:
    """The model's own matrix and the masked one, side by side; a click or a button paints cells."""
    view, own, allowed = masked.view, masked.own, masked.allowed
    picked = view.query, masked.key
    largest = float(max(pattern.weights.max() for pattern in (own, masked.pattern)))
    to_paint = heatmap_events(
        own,
        show="weights",
        picked=picked,
        on_pick=paint,
        on_label=lambda *clicked: pick(list(clicked)),
        theme=view.theme,
    )
    for column, pattern, title, place, listeners in zip(
        st.columns(2, gap="medium"),
        (own, masked.pattern),
        ("The model's own", mask_title(view)),
        ("mask_before", "mask_after"),
        ([to_paint], []),
        strict=True,
    ):
        with column:
            st.markdown(f"**{title}**")
            chart(
                draw_pattern(
                    pattern,
                    colour=view.selection.colour,
                    picked=picked,
                    largest=largest,
                    hatched=True,
                    theme=view.theme,
                ),
                key=place,
                alt=f"{title}, attention matrix of {len(pattern.queries)} queries and {len(pattern.keys)} keys",
                listeners=listeners,
            )
    with st.container(horizontal=True, vertical_alignment="bottom", key="paint_cell"):
        pick_key(view, masked.key)
        query_name, key_name = name(own.queries, view.query), name(own.keys, masked.key)
        st.button(
            literal(f"{'Mask' if allowed[picked] else 'Allow'} {query_name} → {key_name}"),
            icon=":material/edit_off:" if allowed[picked] else ":material/edit:",
            on_click=paint,
            args=picked,
            key="paint",
            help="Masks this cell, or allows it again, as selecting a cell of the model's own matrix does.",
        )
    st.caption(cells_left(masked.pattern))
    link_to(
        "Several heads",
        label="See the edges as lines",
        help="Shows this head as lines from each query to its keys, without the attention mask.",
    )


def cells_left(masked: AttentionPattern) -> str:
    """How many cells of a matrix both masks allow, and how many queries see nothing."""
    allowed = masked.allowed
    sentence = (
        f"{int(allowed.sum()):,} of {allowed.size:,} cells are left; hatched cells may not be seen. Select a cell of the model's own "
        "matrix to mask it, or to allow it again."
    )
    if empty := int((~allowed.any(axis=1)).sum()):
        sentence += f" {empty} quer{'ies see' if empty > 1 else 'y sees'} no key at all; their rows are zero."
    return sentence


def graph(masked: Masked) -> None:
    """Nodes and arrows, and how many of them are drawn."""
    st.subheader("The same weights as a graph")
    view, pattern = masked.view, masked.pattern
    place, kind = view.selection.place, view.kind
    has_norms = "norms" in view.trace.measures(kind)
    norms = under_mask(view.trace, *place, masked.allowed, kind, measure="norms") if has_norms else None
    edges = strongest_edges(pattern, view.query)
    picture, words = st.columns([3, 2], gap="medium", vertical_alignment="center")
    with picture:
        chart(
            draw_graph(pattern, view.query, key=masked.key, theme=view.theme),
            key="mask_graph",
            alt=f"{mask_title(view)}: the tokens as nodes, {counted(len(edges.weight), 'arrow')} from key to query; the text beside it "
            "names the strongest to the selected query",
        )
    with words:
        facts = received(pattern, norms, view.query, share_text, number_text)
        sentence = received_words(pattern, view.query, facts, under_words(view))
        st.markdown(f"**{literal(sentence)}**")
        st.markdown(
            "Tokens are nodes, clockwise from the top, and weights are edges. An arrow points from key to query, the way the key's "
            f"{linked('Value')} goes; the thicker the arrow, the larger the weight, which is not how much the value adds: that "
            f"is the {linked('Norm-based weight')}. Blue arrows end at the selected "
            f"{linked('Query')}, a loop is a token's weight on itself, and what the mask forbids has no arrow "
            "(Veličković et al. 2018, arXiv:1710.10903)."
        )
    st.caption(drawn_words(edges, pattern))


def drawn_words(edges: Edges, pattern: AttentionPattern) -> str:
    """How many of the nodes and edges are drawn, and their share of the weight."""
    n_nodes, n_tokens = len(edges.queries), len(pattern.queries)
    if pattern.kind == "cross":  # its keys are separate nodes
        n_nodes, n_tokens = n_nodes + len(edges.keys), n_tokens + len(pattern.keys)
    nodes = f"{n_nodes} of {n_tokens} tokens and " if n_nodes < n_tokens else ""
    return (
        f"Drawn: {nodes}{len(edges.weight):,} of {edges.n_edges:,} edges, the strongest and up to {EDGES_OF_QUERY} of the "
        f"selected query, with {share_text(edges.share)} of all weight."
    )


PART = Part(
    name="Kinds of attention",
    address="kinds_of_attention",
    question="What if a token could see fewer others?",
    longest=8192,
    terms=(
        "Mask",
        "Causal mask",
        "Sliding window",
        "Self-attention",
        "Cross-attention",
        "Encoder",
        "Decoder",
        "Streaming softmax",
    ),
    sheets=(
        Sheet(
            when=lambda view: view is not None and view.trace.is_long(view.kind),
            strip=pick_query,
            controls=around.controls,
            screen=around.Around.of,
            finding=around.finding,
            rows=(
                around.lead,
                Block(
                    around.matrices,
                    (
                        Picture("mask_before", "The model's own", WEIGHT),
                        Picture("mask_after", "Sliding window", WEIGHT),
                    ),
                ),
                streaming,
                sources,
            ),
            numbers="Cells around the query",
            csv=around.csv,
        ),
        Sheet(
            strip=pick_query,
            controls=controls,
            screen=Masked.of,
            rows=(
                lead,
                Block(
                    matrices,
                    (
                        Picture("mask_before", "The model's own", WEIGHT),
                        Picture("mask_after", "Masked", WEIGHT),
                    ),
                ),
                Picture(
                    "mask_graph", "Graph", "arrow from key to query; its thickness: attention weight", graph
                ),
                Picture(
                    "mask_effect",
                    "What it does",
                    "bar height: change of each token's last hidden state by the mask, 1 − cosine",
                    output,
                ),
                streaming,
                sources,
            ),
        ),
    ),
)
