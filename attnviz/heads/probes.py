"""What every head does on repeated random tokens, and the names of heads that this gives.

The probes of a model's heads depend on the model alone: the numbers are those of `attnviz.heads.STATISTICS` on
texts that say nothing but repeat themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.errors import SelectionError
from attnviz.heads.head_statistics import CLARK, NEAR, HeadNumber, statistics_on
from attnviz.model.repeated_tokens import trace_repeated
from attnviz.records import Axis, Head, Kind, Progress, Provenance, Record, heads_in

if TYPE_CHECKING:
    from attnviz.model.model import Model

N_TOKEN = 50
"""Different tokens of a text, each of which occurs twice."""
SEEDS = tuple(range(8))
"""Random seeds of the texts whose numbers are averaged: for the heads of SmolLM2-135M-Instruct that repeat tokens, texts differ by
0.1, so that the mean has a standard error of 0.04."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(HeadNumber):
    """A number of every head on repeated random tokens, and the name of heads where it is large."""

    statistic: str
    """Its name in `attnviz.heads.STATISTICS`."""
    called: str
    """Name of a head whose number is above `NAMED`."""


PROBES: Mapping[str, Probe] = MappingProxyType(
    {
        probe.name: probe
        for probe in (
            Probe(
                name="probe_induction",
                title="Induction, random tokens",
                help="The share of its weight that a repeated token gives to what followed it the first time, on random tokens "
                "that come twice.",
                unit="share",
                source="Olsson et al. 2022 (arXiv:2209.11895), prefix matching score",
                statistic="induction",
                called="induction",
            ),
            Probe(
                name="probe_duplicate",
                title="Duplicate token, random tokens",
                help="The share of its weight that a repeated token gives to its other occurrence, on random tokens that come "
                "twice.",
                unit="share",
                source="Wang et al. 2022 (arXiv:2211.00593), duplicate token heads",
                statistic="same_token",
                called="duplicate token",
            ),
            Probe(
                name="probe_previous",
                title="Previous token, random tokens",
                help="The share of its weight that a token gives to the one before it, on repeated random tokens.",
                unit="share",
                source=f"{CLARK}, section 3.1",
                statistic="previous",
                called="previous token",
            ),
            Probe(
                name="probe_first",
                title="First token, random tokens",
                help="The share of its weight that a token gives to the first one, on repeated random tokens.",
                unit="share",
                source="Gu et al. 2024 (arXiv:2410.10781), importance score of the first token, where 0.3 counts as a sink",
                statistic="first",
                called="first token",
            ),
        )
    }
)
"""The probes by name, in the order of the names of a head that has several."""
NAMED = NEAR
"""A head is named after what gets more than this share of its weight: the >50% of Clark et al. 2019
(arXiv:1906.04341), section 3.1, for every probe."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadProbes(Record):
    """The probes of every head of one kind of attention, by their names in `PROBES`."""

    kind: Kind
    means: Mapping[str, Float[np.ndarray, "layer head"]]
    """Shares of weight, 0 to 1, mean over the texts; NaN where a layer has no such head."""
    spreads: Mapping[str, Float[np.ndarray, "layer head"]]
    """Their standard deviation over the texts."""
    n_token: int
    """Different tokens of a text."""
    n_text: int
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        for name in ("means", "spreads"):
            tables = dict(getattr(self, name))
            if tables.keys() != PROBES.keys():
                raise self._unfit(f"{name} has {', '.join(tables)}")
            for table in tables.values():
                table.flags.writeable = False
            object.__setattr__(self, name, MappingProxyType(tables))

    def names(self, head: Head) -> tuple[str, ...]:
        """The probes that a head is named after, in the order of `PROBES`: most heads have no name, some have several."""
        return tuple(name for name in PROBES if self.means[name][head] > NAMED)

    def ranked(self, name: str) -> list[Head]:
        """All heads, those with the largest number of this probe first."""
        table = self.means[name]
        return sorted(heads_in(table), key=lambda place: -float(table[place]))


@typed
def probe_heads(
    model: "Model",
    *,
    n_token: int = N_TOKEN,
    seeds: Sequence[int] = SEEDS,
    progress: Progress | None = None,
) -> dict[Kind, HeadProbes]:
    """Probes every head with repeated random tokens, one text per seed; by kind of attention, without cross-attention.

    With A the weights of a head on such a text: induction is the mean of A[i, j + 1] and duplicate token that of A[i, j] over
    the tokens i with an earlier twin j that they may see; in an encoder, which sees both ways, duplicate token is over
    every token with its twin on either side. Previous token is the mean of A[i, i - 1], first token that of A[i, 0].

    Args:
        n_token: different tokens of a text; fewer where the model reads fewer.
        seeds: of the random tokens, one for each text.
        progress: called with the share that is done.

    Raises:
        SelectionError: no seed, or as `attnviz.model.repeated_tokens.trace_repeated`.
        ModelFailedError, CaptureError, OutOfMemoryError, UnsupportedArchitectureError: as `Model.trace_tokens`.
    """
    if not seeds:
        raise SelectionError(
            "Heads were to be probed with random tokens; no seed was given. Give one or more."
        )
    names = [probe.statistic for probe in PROBES.values()]
    tables: dict[Kind, list[dict[str, np.ndarray]]] = {}
    n_drawn = 0
    for number, seed in enumerate(seeds):
        trace = trace_repeated(model, n_token=n_token, seed=seed)
        n_drawn = int((~trace.tokens.is_special).sum()) // 2
        for kind in trace.kinds:
            if kind != "cross":
                axis = Axis.of(trace.query_tokens(kind))
                numbers = statistics_on(trace, kind, axis, axis, names=names)
                none = np.full(
                    trace.shape(kind), np.nan, dtype=np.float32
                )  # no head may see what it asks for
                tables.setdefault(kind, []).append(
                    {name: numbers.get(probe.statistic, none) for name, probe in PROBES.items()}
                )
        if progress is not None:
            progress((number + 1) / len(seeds))
    return {
        kind: HeadProbes(
            kind=kind,
            means={name: np.mean([numbers[name] for numbers in of_text], axis=0) for name in PROBES},
            spreads={name: np.std([numbers[name] for numbers in of_text], axis=0) for name in PROBES},
            n_token=n_drawn,
            n_text=len(seeds),
            provenance=model.provenance,
        )
        for kind, of_text in tables.items()
    }
