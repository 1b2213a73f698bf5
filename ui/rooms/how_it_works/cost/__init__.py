"""What does attention cost? Cells, bytes and multiplications for any number of tokens, counted and measured."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from attnviz.cost.counting import TILE, Layer, Quantity, Way
from attnviz.figures.cost import WAY_NAMES, Growth, Unit, draw_growth, quantity_text
from attnviz.records.table import table_csv
from ui.choice import widgets
from ui.part import Block, Part, Picture, Row, Sheet
from ui.rooms.how_it_works.cost.measured import measured_cost
from ui.rooms.how_it_works.kinds_of_attention.mask import MaskSettings
from ui.runtime import cache
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.glossary import linked

UNITS: dict[Quantity, Unit] = {"cells": "count", "bytes": "bytes", "multiplications": "count"}
FORMULAS: dict[Quantity, dict[Way, str]] = {
    "cells": {"whole": r"h\,n^2", "window": r"h\,n\,w", "streaming": r"h\,n\,t"},
    "bytes": {"whole": r"b\,h\,n^2", "window": r"b\,h\,n\,w", "streaming": r"b\,h\,n\,(t + 2)"},
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


@dataclass(frozen=True, kw_only=True)
class Counted:
    """One layer's attention on the text."""

    view: View
    layer: Layer
    limit: int | None
    """Most tokens that the model reads; None if it names no limit, or is not here."""

    @classmethod
    def of(cls, view: View) -> "Counted":
        """The selected layer."""
        selection = view.selection
        return cls(
            view=view,
            layer=Layer.of(view.trace, selection.layer, view.kind, reach=selection.of(MaskSettings).reach),
            limit=None if selection.bundle else cache.model(selection.model).max_tokens,
        )

    @property
    def quantity(self) -> Quantity:
        """What is counted."""
        return self.view.selection.quantity

    def text(self, n_query: int, n_key: int, way: Way = "whole") -> str:
        """The quantity of the layer for so many tokens."""
        return quantity_text(self.layer.cost(self.quantity, way, n_query, n_key), UNITS[self.quantity])


def finding(counted: Counted) -> str:
    """The cost of the text, and of a million tokens."""
    here = counted.text(len(counted.view.query_tokens), len(counted.view.key_tokens))
    far = counted.text(MOST, MOST)
    return f"{THINGS[counted.quantity].format(here)} for this text; a million tokens would take {far}."


def controls(view: View) -> None:
    """What is counted, and the width of a window."""
    st.segmented_control(**widgets.field("quantity", required=True))
    st.number_input(
        **widgets.field("reach", label="Window, tokens to each side"),
        disabled=view.kind == "cross",
        width=240,
    )


def curves(counted: Counted) -> None:
    """The cost of one layer for any number of tokens."""
    quantity, n_key, limit = counted.quantity, len(counted.view.key_tokens), counted.limit
    tokens = np.unique(
        np.append(np.geomspace(min(FEWEST, n_key), MOST, 200).round(), [FEWEST, n_key]).astype(int)
    )
    marks = {f"this text, {n_key:,}": n_key}
    if limit is not None:
        marks[f"this model's limit, {limit:,}"] = limit

    def cost(way: Way) -> np.ndarray:
        return np.array([counted.layer.cost(quantity, way, n, n) for n in tokens.tolist()], dtype=float)

    chart(
        draw_growth(
            [Growth(way=way, n_token=tokens, cost=cost(way)) for way in ways_of(counted.view)],
            what=f"{quantity} of one layer",
            unit=UNITS[quantity],
            marks=marks,
            theme=counted.view.theme,
        ),
        key="cost_counted",
        alt=f"{quantity.capitalize()} of one layer over the number of tokens, {FEWEST} to {MOST:,}; the table "
        "beside it has the numbers",
    )


def table(counted: Counted) -> None:
    """The formula of each way, and its numbers."""
    view, quantity = counted.view, counted.quantity
    ways, sizes = ways_of(view), sizes_of(len(view.key_tokens), counted.limit)
    for way in ways:
        st.latex(rf"\text{{{WAY_NAMES[way]}: }} {FORMULAS[quantity][way]}")
    st.caption(symbols(quantity, counted.layer, view.trace.n_layers(view.kind)))
    st.table(
        {"tokens": [f"{n:,}" for n in sizes]}
        | {WAY_NAMES[way]: [counted.text(n, n, way) for n in sizes] for way in ways},
        hide_index=True,
    )


def words(counted: Counted) -> None:
    """What is counted, what the numbers mean, and why attention costs so much."""
    view = counted.view
    st.caption(SAID[counted.quantity])
    n_query, n_key = len(view.query_tokens), len(view.key_tokens)
    st.markdown(" ".join(limits(view, counted.layer, n_query, n_key, counted.limit)))
    st.markdown(
        f"Every {linked('Query')} is compared with every {linked('Key')}, so each {linked('Head')} fills a "
        f"{linked('Attention matrix', 'matrix')} of n × n cells: twice the text, four times the cells (Vaswani et al. "
        f"2017, arXiv:1706.03762, table 1). A {linked('Sliding window')} computes only cells near the "
        "diagonal (Longformer, Beltagy et al. 2020, arXiv:2004.05150). "
        f"{linked('Streaming softmax', 'Streaming')} computes all of them, but holds a few "
        "columns at a time, so that memory grows with n, not n² (FlashAttention, Dao et al. 2022, arXiv:2205.14135)."
    )


def csv(counted: Counted) -> bytes:
    """A line for each number of tokens: every quantity of one layer, for each way."""
    columns = [(quantity, way) for quantity in FORMULAS for way in ways_of(counted.view)]
    sizes = sorted({FEWEST, *sizes_of(len(counted.view.key_tokens), counted.limit)})
    rows = ([n, *(counted.layer.cost(quantity, way, n, n) for quantity, way in columns)] for n in sizes)
    header = ["tokens", *(f"{quantity}, {WAY_NAMES[way].lower()}" for quantity, way in columns)]
    return table_csv(header, rows)


def ways_of(view: View) -> list[Way]:
    """The available ways; cross-attention has no diagonal for a window to slide along."""
    return [way for way in FORMULAS["cells"] if way != "window" or view.kind != "cross"]


def sizes_of(n_key: int, limit: int | None) -> list[int]:
    """Numbers of tokens in the tables: this text's, the model's limit, and powers of ten."""
    return sorted({n_key, *([] if limit is None else [limit]), 1_000, 10_000, 100_000, MOST})


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


_MEANS = "both axes logarithmic; a line for each way to compute attention"

PART = Part(
    name="Cost",
    address="cost",
    question="What does attention cost as a text grows?",
    asks=("sentence",),
    longest=8192,
    sheets=(
        Sheet(
            controls=controls,
            screen=Counted.of,
            finding=finding,
            rows=(
                Row(Picture("cost_counted", "Counted", _MEANS, curves), table, widths=(3, 2)),
                words,
                Block(
                    lambda counted: measured_cost(counted.view, counted.layer),
                    (
                        Picture("cost_seconds", "Measured time", _MEANS),
                        Picture("cost_bytes", "Measured memory", _MEANS),
                    ),
                ),
            ),
            numbers="Costs",
            csv=csv,
        ),
    ),
)
