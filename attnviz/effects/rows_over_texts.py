"""In which heads does the picture matter? In each of several texts a row of every head is permuted, and the changes are averaged.

One query is drawn in each text, among the text's own tokens that see at least two other keys; for all heads the same. A change
is that of `attnviz.effects.row_shuffle`, the median over few permutations: the mean over the texts averages over more of them.

Source: as there; the mean over texts, with a query drawn in each, is defined here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from attnviz.arguments import typed
from attnviz.effects.row_shuffle import PREDICTION, shuffled_heads
from attnviz.errors import EmptyTextError, SelectionError
from attnviz.maths.quotients import quotients
from attnviz.records import Head, Kind, Progress, Result, heads_in, progress_within
from attnviz.records.table import Table

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

N_SHUFFLES = 3
"""Permutations of each row of each text."""
LONGEST = 64
"""Most tokens of a text that are read, since every permutation of every row runs them again."""
FEWEST_OTHERS = 2
"""Fewest keys besides the query's own: with one, the only other arrangement exchanges two weights."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanShuffledHeads(Result):
    """The change of an outcome while a query's weights are permuted, for each head on its own and over several texts."""

    kind: Kind
    outcome: str
    """What is measured in each text, in words."""
    n_shuffles: int
    changes: Float[np.ndarray, "text layer head"]
    """The median change over the permutations in each text; NaN for even rows."""
    queries: Int[np.ndarray, " text"]
    """The query that was drawn in each text."""
    seeds: Int[np.ndarray, " text"]
    """The seed of each text's permutations, with which `shuffled_heads` gives its changes."""

    @property
    def n_texts(self) -> Int[np.ndarray, "layer head"]:
        """Number of texts whose row of a head can be permuted."""
        return np.asarray(np.isfinite(self.changes).sum(axis=0))

    @property
    def heads(self) -> Float[np.ndarray, "layer head"]:
        """The mean change over these texts; NaN without any."""
        return _mean(self.changes, self.n_texts)

    @property
    def spread(self) -> Float[np.ndarray, "layer head"]:
        """The sample standard deviation over these texts (n - 1); NaN for fewer than two."""
        return np.asarray(np.sqrt(_mean((self.changes - self.heads) ** 2, self.n_texts - 1)))

    def ranked(self) -> list[Head]:
        """The heads whose rows can be permuted, the largest mean change first."""
        means = self.heads
        return sorted(heads_in(means), key=lambda place: -float(means[place]))

    def joined(self, other: "MeanShuffledHeads") -> "MeanShuffledHeads":
        """These changes joined with those over other texts."""
        return replace(
            self,
            changes=np.concatenate([self.changes, other.changes]),
            queries=np.concatenate([self.queries, other.queries]),
            seeds=np.concatenate([self.seeds, other.seeds]),
        )

    def _table(self) -> Table:
        """A row for each head whose rows can be permuted."""
        means, spread, n_texts = self.heads, self.spread, self.n_texts
        rows = [[*place, means[place], spread[place], int(n_texts[place])] for place in heads_in(means)]
        return ["layer", "head", "mean change", "standard deviation", "texts"], rows


@typed
def mean_shuffled_heads(
    model: "Model",
    texts: Iterable[str],
    *,
    kind: Kind | None = None,
    n_shuffles: int = N_SHUFFLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> MeanShuffledHeads:
    """`shuffled_heads` of one query of each of several texts, which makes the prediction or the state at that query the outcome.

    The query and the permutations of a text depend on its tokens and the seed alone, so that parts of the texts join to all of them.

    Args:
        texts: those without a token, or without a query to draw, are left out; long ones are cut at `LONGEST` tokens. An encoder-decoder
            model reads each text as both of its texts.
        n_shuffles: permutations of each row.
        progress: called with the share that is done, 0 to 1.

    Raises:
        CaptureError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        InvalidTextError, ModelFailedError: as `Model.trace`.
        SelectionError: no such kind, fewer than one permutation, the encoder of an encoder-decoder model, or no text has a token that sees
            two other keys.
    """
    given = [text for text in texts if text.strip()]
    is_pair = model.network.config.is_encoder_decoder
    found, queries, seeds = [], [], []
    for number, text in enumerate(given):
        try:
            trace = model.trace(text, text if is_pair else None, cut=True, max_tokens=LONGEST)
        except EmptyTextError:  # such as one of control characters
            continue
        drawn = _drawn(trace, trace.attention(0, kind).kind, seed)
        if drawn is not None:
            query, of_text = drawn
            if trace.kinds == ("decoder",):  # what comes after the query changes nothing at it
                before = model.trace(text, cut=True, max_tokens=query + 1)
                is_beginning = np.array_equal(before.tokens.ids, trace.tokens.ids[: query + 1])
                trace = before if is_beginning else trace  # or a tokenizer's end token follows
            within = progress_within(progress, number / len(given), 1 / len(given))
            found.append(
                shuffled_heads(
                    model, trace, query, kind=kind, n_shuffles=n_shuffles, seed=of_text, progress=within
                )
            )
            queries.append(query)
            seeds.append(of_text)
    if not found:
        raise SelectionError(
            "Rows of heads were to be shuffled over texts; no token of them sees two other keys. Give longer texts."
        )
    if progress is not None:
        progress(1.0)
    is_prediction = found[0].outcome.startswith(PREDICTION)
    return MeanShuffledHeads(
        kind=found[0].kind,
        outcome=f"{PREDICTION if is_prediction else 'turn of the last hidden state'} at the query",
        n_shuffles=n_shuffles,
        changes=np.stack([of_text.heads for of_text in found]),
        queries=np.array(queries, dtype=np.int64),
        seeds=np.array(seeds, dtype=np.int64),
    )


def _drawn(trace: "Trace", kind: Kind, seed: int) -> tuple[int, int] | None:
    """A query and the seed of its permutations; None if no token of the text sees enough other keys."""
    tokens = trace.query_tokens(kind)
    n_others = trace.pattern(0, 0, kind).allowed.sum(axis=1) - (kind != "cross")
    places = np.flatnonzero((n_others >= FEWEST_OTHERS) & ~tokens.is_added)
    if not len(places):
        return None
    random = np.random.default_rng([seed, *tokens.ids.tolist()])
    return int(random.choice(places)), int(random.integers(2**32))


def _mean(
    numbers: Float[np.ndarray, "text layer head"], counts: Int[np.ndarray, "layer head"]
) -> Float[np.ndarray, "layer head"]:
    """The sums over texts divided by counts."""
    return quotients(np.asarray(np.nansum(numbers, axis=0, dtype=np.float64)), counts).astype(np.float32)
