"""attnviz's calls, remembered: everybody who looks at the same text shares one trace.

Arguments are plain values. Results are read-only records, shared and not copied.
"""

import numpy as np
import streamlit as st

import attnviz
from attnviz.catalogue import offer
from attnviz.records import Kind, Projection, VerificationReport
from attnviz.trace import Trace
from attnviz.verification import reference_weights as reference_weights_of
from ui.state import Selection

# A trace of 512 tokens by bert-base-uncased holds 57 MB; 24 of them stay under 1.4 GB.
MOST_TRACES = 24


@st.cache_resource(max_entries=3, show_spinner="Loading the model …")
def model(name: str) -> attnviz.Model:
    """The model of this name on offer; a path is not a name."""
    return attnviz.load_model(offer(name).name)


@st.cache_resource(max_entries=MOST_TRACES, show_spinner=False)
def _trace(name: str, text: str, second: str, cut: bool) -> Trace:
    return model(name).trace(text, second or None, cut=cut)


@st.cache_resource(max_entries=200, show_spinner=False)
def _report(name: str, text: str, second: str, cut: bool) -> VerificationReport:
    return attnviz.verify(model(name), _trace(name, text, second, cut))


@st.cache_data(max_entries=50, show_spinner=False)
def _reference_weights(
    name: str, text: str, second: str, cut: bool, layer: int, head: int, kind: Kind
) -> np.ndarray:
    return reference_weights_of(model(name), _trace(name, text, second, cut), layer, head, kind)


@st.cache_resource(max_entries=200, show_spinner=False)
def _projection(
    name: str,
    text: str,
    second: str,
    cut: bool,
    layer: int,
    head: int,
    kind: Kind | None,
    metric: str,
    perplexity: float,
    iterations: int,
    seed: int,
) -> Projection:
    return attnviz.project(
        _trace(name, text, second, cut),
        layer,
        head,
        kind=kind,
        metric=metric,
        perplexity=perplexity,
        iterations=iterations,
        seed=seed,
    )


def trace(selection: Selection) -> Trace:
    """Trace of the selected text by the selected model."""
    return _trace(selection.model, selection.text, selection.second, selection.cut)


def report(selection: Selection) -> VerificationReport:
    """The verdict on that trace."""
    return _report(selection.model, selection.text, selection.second, selection.cut)


def reference_weights(selection: Selection, kind: Kind) -> np.ndarray:
    """The model's own weights [query, key] of the selected head."""
    return _reference_weights(
        selection.model,
        selection.text,
        selection.second,
        selection.cut,
        selection.layer,
        selection.head,
        kind,
    )


def projection(selection: Selection, kind: Kind) -> Projection:
    """Map of the selected head, with the selected settings."""
    return _projection(
        selection.model,
        selection.text,
        selection.second,
        selection.cut,
        selection.layer,
        selection.head,
        kind,
        selection.metric,
        selection.perplexity,
        selection.iterations,
        selection.seed,
    )
