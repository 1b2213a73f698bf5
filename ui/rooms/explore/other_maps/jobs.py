"""Splits a score by its sources, in a worker process."""

from attnviz.effects.score_sources import ScoreSources, score_sources
from attnviz.model.trace import Trace
from attnviz.records import Head, Kind
from ui.runtime import with_model


def split_score(name: str, trace: Trace, head: Head, query: int, key: int, *, kind: Kind) -> ScoreSources:
    """A score by the sources of its query and key, as `attnviz.effects.score_sources.score_sources`."""
    return score_sources(with_model.own(name), trace, *head, query, key, kind=kind)
