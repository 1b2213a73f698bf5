"""Shapley values of the tokens of a text: what each changes when it joins the others, averaged over random orders.

The tokens that have not joined are replaced by the baseline, as `attnviz.effects.token_removal` does, so that an order leads from
the text without words to the text itself, and what its tokens change sums to the difference of the two outcomes exactly.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.effects.outcome import AnyOutcome
from attnviz.effects.token_embeddings import Baseline, removable
from attnviz.effects.token_removal import outcomes_without
from attnviz.errors import SelectionError
from attnviz.records import Progress, Record

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

N_PERMUTATIONS = 64
"""Orders of the tokens. On the 14 tokens of a prompt of SmolLM2-135M-Instruct they have 678 different sets of tokens, 30 s of
processor time; a standard error falls with the square root of their number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShapleySample(Record):
    """What each token changes in each of some random orders."""

    changes: Float[np.ndarray, "permutation token"]
    """The outcome with the token minus the outcome just before it joins; 0 for tokens that are kept."""
    difference: float
    """f(text) - f(baseline), to which each permutation sums up to rounding."""

    @property
    def values(self) -> Float[np.ndarray, " token"]:
        """The mean over the permutations: unbiased estimates of the Shapley values.

        Source: Castro, Gómez and Tejada 2009, "Polynomial calculation of the Shapley value based on sampling" (Computers &
        Operations Research 36:1726, doi:10.1016/j.cor.2008.04.004), section 3, ApproShapley.
        """
        return np.asarray(self.changes.mean(axis=0, dtype=np.float64))

    @property
    def standard_errors(self) -> Float[np.ndarray, " token"]:
        """S / √m with the standard deviation s of a token's m changes; NaN for one permutation.

        Source: as `values`: the changes of a token are drawn independently, one in each permutation.
        """
        n = len(self.changes)
        if n < 2:
            return np.full(self.changes.shape[1], np.nan)
        return np.asarray(self.changes.std(axis=0, ddof=1, dtype=np.float64) / np.sqrt(n))

    def joined(self, other: "ShapleySample") -> "ShapleySample":
        """These permutations joined with others of the same text, outcome and seed."""
        return replace(self, changes=np.concatenate([self.changes, other.changes]))


@typed
def sample_shapley(
    model: "Model",
    trace: "Trace",
    outcome: AnyOutcome,
    *,
    baseline: Baseline | None = None,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
    part: tuple[int, int] = (0, 1),
    progress: Progress | None = None,
) -> ShapleySample:
    """What each token changes in random orders of the tokens that may be replaced; equal sets of tokens run once.

    A permutation depends on the seed and its number alone, so that more of them join those that are there: after the first 64,
    ``n_permutations=128, part=(1, 2)`` are the next 64.

    Args:
        trace: of the text without interventions.
        baseline: what replaces a token; None for the model's own.
        n_permutations: of all parts together.
        part: index of a part, from 0, and the number of parts, in the order of the permutations; join parts with
            `ShapleySample.joined`.
        progress: called with the share that is done, 0 to 1.

    Raises:
        As `attnviz.effects.token_removal.outcomes_without`.
        SelectionError: also a part without a permutation.

    Source: Shapley 1953, "A Value for n-Person Games", with tokens as players; the estimate by permutations as
    `ShapleySample.values`.
    """
    places = np.flatnonzero(removable(model, trace.tokens))
    n_token, n_place, (number, n_part) = len(trace.tokens), len(places), part
    first, end = (n_permutations * at // n_part for at in (number, number + 1))
    if first == end:
        raise SelectionError(
            f"Shapley values from {n_permutations} permutations in {n_part} parts were asked for; part {number} has none. Ask for at "
            "least one permutation in each part."
        )
    random = np.random.default_rng(seed)
    drawn = np.array([random.permutation(n_place) for _ in range(end)], dtype=np.int64)[first:]
    ranks = np.full((len(drawn), n_token), -1)  # kept tokens are there from the start
    ranks[:, places] = drawn  # when each token joins
    removed = ranks[:, None, :] >= np.arange(n_place + 1)[:, None]  # [permutation, step, token]
    outcomes = outcomes_without(
        model, trace, outcome, removed.reshape(-1, n_token), baseline=baseline, progress=progress
    )
    outcomes = outcomes.reshape(len(drawn), n_place + 1).astype(np.float64)
    changes = np.zeros((len(drawn), n_token))
    changes[:, places] = np.take_along_axis(np.diff(outcomes, axis=1), ranks[:, places], axis=1)
    return ShapleySample(changes=changes, difference=float(outcomes[0, -1] - outcomes[0, 0]))
