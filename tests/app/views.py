"""Views of hand-written traces, for the parts of pages."""

from collections.abc import Callable
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

from attnviz.model.trace import Trace
from attnviz.records import LayerAttention
from tests import hand_made, small_records
from tests.app.screen import drawn
from ui.choice.selection import Selection
from ui.choice.state import Chosen
from ui.session import of_session
from ui.shell.view import View

D_HEAD, D_VALUE, D_MODEL = 4, 3, 6
LABELS = ["[CLS]", "cat", "door", "##s", "[SEP]"]


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers of which few are equal."""
    return (rng.integers(-40, 41, shape) / 16).astype(np.float32)


def trace_of(
    seed: int,
    labels: list[str] = LABELS,
    *,
    kind: str = "encoder",
    targets: list[str] | None = None,
    n_head: int = 4,
    n_layer: int = 2,
    with_matrix: bool = False,
    **changes: Any,
) -> Trace:
    """Random queries, keys and values of two layers; the scale 1/2 is that of four dimensions."""
    rng = np.random.default_rng(seed)
    of_query = labels if targets is None else targets
    n_query, n_key = len(of_query), len(labels if kind == "cross" else of_query)
    allowed = np.tril(np.ones((1, n_query, n_key), dtype=bool)) if kind == "decoder" else None
    layers = tuple(
        LayerAttention(
            **{
                "kind": kind,
                "layer": layer,
                "query": whole(rng, n_head, n_query, D_HEAD),
                "key": whole(rng, n_head, n_key, D_HEAD),
                "value": whole(rng, n_head, n_key, D_VALUE),
                "scale": 0.5,
                "allowed": allowed,
                "output_weight": whole(rng, n_head, D_VALUE, D_MODEL) if with_matrix else None,
            }
            | changes
        )
        for layer in range(n_layer)
    )
    return Trace(
        tokens=hand_made.tokens(labels),
        target_tokens=None if targets is None else hand_made.tokens(targets),
        layers={kind: layers},
        last_hidden_state=np.zeros((n_query, D_MODEL), dtype=np.float32),
        provenance=small_records.PROVENANCE,
    )


def view_of(trace: Trace, *, query: int = 2, key: int = 1, **chosen: Any) -> View:
    """A page that shows the third head of the second layer, unless something else is chosen."""
    given = {"layer": 1, "head": 2, "query": query, "key": key, "kind": trace.kinds[0]} | chosen
    return View(
        part=None,  # type: ignore[arg-type]
        selection=Selection(model="m", text=trace.tokens.text).but(**given),
        query=query,
        trace=trace,
        kind=trace.kinds[0],
        theme="light",
        places=None,  # type: ignore[arg-type]
    )


def drawn_of(view: View, section: Callable[[], object]) -> AppTest:
    """What a part of a page draws of a view."""

    def draw() -> None:
        of_session(Chosen).selection = view.selection
        section()

    return drawn(draw)
