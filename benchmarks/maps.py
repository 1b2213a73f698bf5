"""Maps of queries and keys: how long each method and input takes, and how reliable its maps are.

Every map that `attnviz.maps.ranking` compares, of all heads of the embedded model, for ten texts of different
length. `python -m benchmarks.maps` prints this part alone.
"""

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

import attnviz
from attnviz.maps.collection import bundled, collect
from attnviz.maps.joint_map import joint_map
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.maps.projection import arrays
from attnviz.maps.ranking import MAPS, RatedMap, rate
from attnviz.model.catalogue import EMBEDDED
from benchmarks.measurement import Measurement

TEXTS = (
    "Snow fell.",
    "The dog barked at nothing.",
    "She never said who sent the letter.",
    "I was watching the door when it opened.",
    "Paris is the capital of France, and Rome of Italy.",
    "If the bridge is closed, take the ferry that leaves at noon.",
    "The scientists who found the virus warned that it spreads faster in winter.",
    "Although nobody had expected the old printer to work again, it hummed and printed forty pages before lunch.",
    "My sister's cat, which hates rain, ran through the kitchen and hid under the table until the thunder had stopped "
    "and the lights came back.",
    "The committee that the mayor had appointed in spring reported that 17 bridges could be saved if the arches were "
    "raised, and nobody who had seen the river flood the old market was surprised by what it said.",
)
SETTINGS = {
    "dimensions": 2,
    "perplexity": 5.0,
    "iterations": 1000,
    "neighbours": 15,
    "min_dist": 0.1,
    "seed": 0,
}
MOST_SECONDS = 15.0

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method with one input, averaged over texts and heads."""

    method: str
    space: str
    metric: str
    seconds: float
    correlation: float
    nearest: float
    trustworthiness: float
    divergence: float

    def __str__(self) -> str:
        lost = "" if np.isnan(self.divergence) else f"  {self.divergence:.3f} nats lost"
        return (
            f"{self.method:18} {self.space:9} {self.metric:10} {1e3 * self.seconds:7.0f} ms  "
            f"{self.correlation:+6.2f}  {100 * self.nearest:5.1f}%  {self.trustworthiness:5.2f}{lost}"
        )


HEADER = (
    f"{'method':18} {'fed with':9} {'distance':10} {'a map':>10}  {'rho':>6}  {'nearest':>7}  {'trust':>5}"
)


def rows() -> list[Row]:
    """Every method and input, the best order of keys first."""
    model = attnviz.load_model(EMBEDDED)
    traces = [model.trace(text) for text in TEXTS]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as processes:
        layers = [
            [arrays(trace, layer, head) for head in range(trace.n_heads(layer))]
            for trace in traces
            for layer in range(trace.n_layers())
        ]
        rated = [rating for batch in processes.map(_rated, layers) for rating in batch]
    rows_of_map = []
    for choice in MAPS:
        here = [rating for rating in rated if rating.choice == choice]
        is_fed = choice.method != "attention"
        rows_of_map.append(
            Row(
                method=METHOD_NAMES[choice.method],
                space=choice.space if is_fed else "weights",
                metric=choice.metric if is_fed else "",
                seconds=float(np.mean([rating.duration_s for rating in here])),
                correlation=float(np.mean([rating.in_map.order_correlation for rating in here])),
                nearest=float(np.mean([rating.in_map.nearest_agreement for rating in here])),
                trustworthiness=float(np.mean([rating.trustworthiness for rating in here])),
                divergence=float(
                    np.mean([np.nan if rating.divergence is None else rating.divergence for rating in here])
                ),
            )
        )
    return sorted(rows_of_map, key=lambda row: row.correlation)


def _rated(heads: list[Arrays]) -> list[RatedMap]:
    return [rate(*head, choice, **SETTINGS) for choice in MAPS for head in heads]


def measure() -> Iterator[Measurement]:
    """Budgets of many points in one map."""
    model = attnviz.load_model(EMBEDDED)
    sentences = collect(model, bundled(), 3)
    queries, keys = sentences.vectors(1)
    scores = [sentences.scores(number, 1) for number in range(len(sentences.tokens))]
    for method in ("tsne", "umap"):
        joint_map(queries, keys, scores, method=method)  # imported, and UMAP compiled
        start = time.perf_counter()
        joint_map(queries, keys, scores, method=method)
        yield Measurement(
            what=f"{METHOD_NAMES[method]} of {2 * len(queries):,} points, s",
            value=time.perf_counter() - start,
            budget=MOST_SECONDS,
            detail="the bundled sentences; the budget is that of 5,000 points",
        )


def show() -> None:
    """Prints the table of methods and inputs."""
    lengths = [len(attnviz.load_model(EMBEDDED).tokenize(text)) for text in TEXTS]
    print(f"maps of all heads of {EMBEDDED}, mean over {len(TEXTS)} texts of {lengths} tokens")
    print(HEADER)
    for row in rows():
        print(row)


if __name__ == "__main__":
    show()
    for line in measure():
        print(f"{line.what:40} {line.value:6.1f} of {line.budget:.0f} {line.detail}")
    sys.exit(0)
