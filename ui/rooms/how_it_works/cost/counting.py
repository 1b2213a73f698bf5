"""What attention costs, counted: curves, a table, formulas and limits."""

from dataclasses import replace

import numpy as np
import streamlit as st

from attnviz.cost.counting import TILE, Layer, Quantity, Way
from attnviz.figures.cost import WAY_NAMES, Growth, Unit, draw_growth, quantity_text
from attnviz.records.table import table_csv
from ui.choice import widgets
from ui.rooms.how_it_works.cost.limits import limit_of
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.glossary import linked

UNITS: dict[Quantity, Unit] = {"cells": "count", "bytes": "bytes", "multiplications": "count"}


FORMULAS: dict[Quantity, dict[Way, str]] = {
    "cells": {
        "whole": r"h\,n^2",
        "window": r"h\,n\,w",
        "streaming": r"h\,n\,t",
    },
    "bytes": {
        "whole": r"b\,h\,n^2",
        "window": r"b\,h\,n\,w",
        "streaming": r"b\,h\,n\,(t + 2)",
    },
    "multiplications": {
        "whole": r"h\,n^2\,(d_k + d_v)",
        "window": r"h\,n\,w\,(d_k + d_v)",
        "streaming": r"h\,n^2\,(d_k + d_v)",
    },
}


THINGS: dict[Quantity, str] = {
    "cells": "One layer's attention has {} cells",
    "bytes": "One layer's attention weights take {}",
    "multiplications": "One layer's attention takes {} multiplications",
}


SAID: dict[Quantity, str] = {
    "cells": "Cells that are held at once, in all heads of the layer.",
    "bytes": "Memory of the cells that are held at once, in all heads of the layer; streaming also keeps a running "
    "maximum and a running sum for each row. Queries, keys, values and output are needed in every way and not counted.",
    "multiplications": "Multiplications of queries with keys and of weights with values, in all heads of the layer. "
    "Not counted: the softmax, one exponential a cell, and making Q, K and V, which grows with n alone.",
}

FEWEST, MOST = 16, 1_000_000


def counted(view: View, layer: Layer) -> None:
    """The cost of one layer for any number of tokens."""
    quantity, unit = view.selection.quantity, UNITS[view.selection.quantity]
    n_query, n_key = (len(of(view.kind)) for of in (view.trace.query_tokens, view.trace.key_tokens))
    limit = limit_of(view)
    here, far = (
        quantity_text(layer.cost(quantity, "whole", *size), unit) for size in ((n_query, n_key), (MOST, MOST))
    )
    st.markdown(f"**{THINGS[quantity].format(here)} for this text; a million tokens would take {far}.**")
    st.markdown(
        f"Every {linked('Query')} is compared with every {linked('Key')}, so each {linked('Head')} fills a "
        f"{linked('Attention matrix', 'matrix')} of n × n cells: twice the text, four times the cells (Vaswani et al. "
        f"2017, arXiv:1706.03762, table 1). A {linked('Sliding window')} computes only cells near the "
        "diagonal (Longformer, Beltagy et al. 2020, arXiv:2004.05150). "
        f"{linked('Streaming softmax', 'Streaming')} computes all of them, but holds a few "
        "columns at a time, so that memory grows with n, not n² (FlashAttention, Dao et al. 2022, arXiv:2205.14135)."
    )
    left, right, _ = st.columns([3, 2, 2], vertical_alignment="bottom")
    left.segmented_control(**widgets.field("quantity", required=True))
    right.number_input(
        **widgets.field("reach", label="Window, tokens to each side"), disabled=view.kind == "cross"
    )
    ways = ways_of(view)
    tokens = np.unique(
        np.append(np.geomspace(min(FEWEST, n_key), MOST, 200).round(), [FEWEST, n_key]).astype(int)
    )
    marks = {f"this text, {n_key:,}": n_key}
    if limit is not None:
        marks[f"this model's limit, {limit:,}"] = limit
    picture, formulas = st.columns([3, 2], gap="medium")
    with picture:
        chart(
            draw_growth(
                [
                    Growth(
                        way=way,
                        n_token=tokens,
                        cost=np.array(
                            [layer.cost(quantity, way, n, n) for n in tokens.tolist()], dtype=float
                        ),
                    )
                    for way in ways
                ],
                what=f"{quantity} of one layer",
                unit=unit,
                marks=marks,
                theme=view.theme,
            ),
            key="cost_counted",
            alt=f"{quantity.capitalize()} of one layer over the number of tokens, {FEWEST} to {MOST:,}; the table "
            "beside it has the numbers",
        )
    with formulas:
        for way in ways:
            st.latex(rf"\text{{{WAY_NAMES[way]}: }} {FORMULAS[quantity][way]}")
        st.caption(symbols(quantity, layer, view.trace.n_layers(view.kind)))
        sizes = sizes_of(n_key, limit)
        st.table(
            {
                "tokens": [f"{n:,}" for n in sizes],
                **{
                    WAY_NAMES[way]: [quantity_text(layer.cost(quantity, way, n, n), unit) for n in sizes]
                    for way in ways
                },
            },
            hide_index=True,
        )
    st.caption(SAID[quantity])
    st.markdown(" ".join(limits(view, layer, n_query, n_key, limit)))


def ways_of(view: View) -> list[Way]:
    """The available ways; cross-attention has no diagonal for a window to slide along."""
    return [way for way in FORMULAS["cells"] if way != "window" or view.kind != "cross"]


def sizes_of(n_key: int, limit: int | None) -> list[int]:
    """Numbers of tokens in the tables: this text's, the model's limit, and powers of ten."""
    return sorted({n_key, *([] if limit is None else [limit]), 1_000, 10_000, 100_000, MOST})


def as_csv(view: View, layer: Layer, limit: int | None) -> bytes:
    """A line for each number of tokens: every quantity of one layer, for each way."""
    columns = [(quantity, way) for quantity in FORMULAS for way in ways_of(view)]
    sizes = sorted({FEWEST, *sizes_of(len(view.key_tokens), limit)})
    rows = ([n, *(layer.cost(quantity, way, n, n) for quantity, way in columns)] for n in sizes)
    return table_csv(
        ["tokens", *(f"{quantity}, {WAY_NAMES[way].lower()}" for quantity, way in columns)], rows
    )


def symbols(quantity: Quantity, layer: Layer, n_layer: int) -> str:
    """The meaning of the formulas' letters, with this model's numbers."""
    width = (1 if layer.causal else 2) * layer.reach + 1
    streaming = f"$t$ = {TILE} keys read at a time (all where there are fewer)"
    own = {
        "cells": streaming,
        "bytes": f"$b$ = {layer.number_bytes} bytes a number, {streaming}",
        "multiplications": f"$d_k$ = {layer.d_head} numbers of a key, $d_v$ = {layer.d_value} of a value",
    }
    return (
        f"$n$ tokens, $h$ = {layer.n_head} heads, a window of $w$ = {width} keys (fewer at the ends of the text), "
        f"{own[quantity]}. The model has {n_layer} such layers."
    )


def limits(view: View, layer: Layer, n_query: int, n_key: int, limit: int | None) -> list[str]:
    """What the numbers mean for this text and this model, a sentence each."""
    sentences = []
    if view.kind == "cross":
        sentences.append(
            f"Cross-attention of this text has {n_query} queries and {n_key} keys, so {n_query * n_key:,} cells a head; "
            "the lines take n of each."
        )
    if view.kind == "decoder":
        sentences.append(
            f"The causal mask forbids {n_query * (n_query - 1) // 2:,} of the {n_query * n_key:,} cells of each head, but the whole matrix "
            "is computed all the same and the forbidden cells are set to zero weight."
        )
    if view.selection.bundle:
        sentences.append("A bundle does not say how long a text its model reads.")
    elif limit is None:
        sentences.append("This model names no limit: its positions go on for as long as memory does.")
    else:
        cells = quantity_text(layer.cost("bytes", "whole", limit, limit), "bytes")
        sentences.append(
            f"This model reads at most {limit:,} tokens, special ones included: the limit was fixed when it was made, "
            f"whatever the machine. At that length one layer's weights take {cells}."
        )
    each = replace(layer, n_head=1).cost("bytes", "whole", MOST, MOST)
    sentences.append(
        f"At 1,000,000 tokens the weights of a single head would take {quantity_text(each, 'bytes')}, those of one "
        f"layer {quantity_text(layer.cost('bytes', 'whole', MOST, MOST), 'bytes')}."
    )
    return sentences
