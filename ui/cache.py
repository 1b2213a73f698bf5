"""attnviz's calls, remembered: everybody who looks at the same text shares one trace.

Arguments are plain values. Results are read-only records, shared and not copied.
"""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attnviz import models, verification
from attnviz import projection as projections
from attnviz.catalogue import offer
from attnviz.models import Model
from attnviz.records import Kind, Projection, VerificationReport
from attnviz.trace import Trace

MOST_TOKENS = 1024
"""Longest text that is shown, whatever the model reads: one head's matrix is 4 MB then, and the weights of
all heads, which verification holds for a moment, are 600 MB for bert-base's 12 x 12."""

# A trace of 1,024 tokens by a model of bert-base's size holds 113 MB; 12 of them stay under 1.4 GB.
MOST_TRACES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a trace is made from."""

    model: str
    text: str
    second: str
    cut: bool


@st.cache_resource(max_entries=3, show_spinner="Loading the model …")
def model(name: str) -> Model:
    """The model of this name on offer; a path is not a name."""
    return models.load_model(offer(name).name)


@st.cache_resource(max_entries=MOST_TRACES, show_spinner=False)
def trace(source: Source) -> Trace:
    """Trace of a text."""
    second = source.second if source.second.strip() else None
    return model(source.model).trace(source.text, second, cut=source.cut, max_tokens=MOST_TOKENS)


@st.cache_resource(max_entries=200, show_spinner=False)
def report(source: Source) -> VerificationReport:
    """The verdict on a trace."""
    return verification.verify(model(source.model), trace(source))


@st.cache_resource(max_entries=4, show_spinner=False)
def reference_weights(source: Source, layer: int, kind: Kind) -> np.ndarray:
    """The model's own weights [head, query, key] of one layer."""
    return verification.reference_weights(model(source.model), trace(source), layer, kind)


@st.cache_resource(max_entries=200, show_spinner=False)
def projection(
    source: Source,
    layer: int,
    head: int,
    kind: Kind,
    *,
    metric: str,
    perplexity: float,
    iterations: int,
    seed: int,
) -> Projection:
    """Map of one head."""
    return projections.project(
        trace(source),
        layer,
        head,
        kind=kind,
        metric=metric,
        perplexity=perplexity,
        iterations=iterations,
        seed=seed,
    )
