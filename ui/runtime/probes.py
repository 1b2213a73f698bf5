"""Probes of a model's heads, made in worker processes: their numbers, and one head's matrix on the same random tokens."""

from cachetools import LRUCache, cached

from attnviz.heads.probes import N_TOKEN, SEEDS, HeadProbes, probe_heads
from attnviz.model.repeated_tokens import trace_repeated
from attnviz.model.trace import Trace
from attnviz.records import AttentionPattern, Head, Kind, Progress
from ui.runtime import with_model


def probe(name: str, *, progress: Progress) -> dict[Kind, HeadProbes]:
    """The probes of every head, as `attnviz.heads.probes.probe_heads`."""
    return probe_heads(with_model.own(name), progress=progress)


def pattern(name: str, head: Head, kind: Kind) -> AttentionPattern:
    """The matrix of one head on the first text of the probes."""
    return _first_text(name).pattern(*head, kind)


@cached(LRUCache(1), key=lambda name: name)
def _first_text(name: str) -> Trace:
    """The trace of the first text; kept for the last model only, for its next head."""
    return trace_repeated(with_model.own(name), n_token=N_TOKEN, seed=SEEDS[0])
