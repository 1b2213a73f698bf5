"""Does a row of weights matter? It is replaced by its own permutations inside the forward pass, and an outcome is measured.

The permuted row keeps its weights and only gives them to other keys, so that what changes is the picture: which key has which
weight. Nothing else of the head changes, and no other row.

Two numbers, since neither replaces the other. **The change**: how far the outcome is from the model's own, the median over the
permutations. Source: Jain and Wallace 2019, "Attention is not Explanation" (arXiv:1902.10186), section 4.2.1, who permute all
weights of an attention and report the median total variation distance of the predictions.

**p** compares the model's own arrangement of the weights with arrangements by chance: the share of them, its own among them, whose
outcome is at least as far from the mean outcome of all. If the model's arrangement were one by chance too, p would be at most 0.05 in
at most 5% of rows, whatever the outcome's distribution; so a large p says "as any other arrangement", not "no change". The
statistic is defined here; the test is exact by Phipson and Smyth 2010 (Stat. Appl. Genet. Mol. Biol. 9:39) and Hemerik and
Goeman 2018, "Exact testing with simple permutations" (arXiv:1411.7565), theorem 2, since the mean does not depend on which
arrangement is the model's. p is never below 1 / (1 + permutations), and for a row whose whole weight is on one of n keys
hardly below 1 / n: an arrangement by chance puts it there as well in 1 of n cases.

What an outcome is compared by:

- the next token's distribution: the change is the total variation distance ½ Σ|p - p'|, the share of the probability that moves;
  for p the outcome is ln p of the token that the model predicts. That token is a choice by the model's own arrangement, which makes p
  too small only where a permutation predicts another token, and so the row matters in any case.
- a token's last state: the change is 1 - cosine, or the length of the difference; for p the outcome is the state, of length 1 for 1 -
  cosine. The mean over all permutations of a row is the even row, so p asks whether the model's arrangement takes the
  token farther from where a row without a picture leaves it than others do.
- another outcome: its number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from attnviz.arguments import typed
from attnviz.effects.outcome import AnyOutcome, TokenState, measured, outcome_from, unchanged, words_of
from attnviz.errors import SelectionError
from attnviz.maths.significance import p_value
from attnviz.model.answers import token_logits
from attnviz.model.interventions import ReplacedOutput
from attnviz.model.variants import Variant, states_of_variants
from attnviz.records import (
    Axis,
    Head,
    Kind,
    Progress,
    Result,
    Tokens,
    by_layer,
    check_index,
    head_table,
    heads_in,
)
from attnviz.records.table import Table, entry_names

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace

N_SHUFFLES = 19
"""Fewest permutations whose least p-value, 1/20, is 0.05. In the first layer of SmolLM2-135M-Instruct, with 14 tokens, they and
the row itself take 1 s of processor time."""

N_SHUFFLES_OF_EACH = 7
"""Permutations of each row where all heads are asked for: 270 heads of SmolLM2-135M-Instruct, 14 tokens, take a minute of
processor time. The median of the changes needs no more; a p below 1/8 does, of `shuffled_row`."""

EVEN = 1e-6
"""Weights that differ by at most this share of the largest are equal: the rounding of a softmax in float32."""

TIED = 1e-3
"""Distances from the mean that differ by at most this share are equal: arrangements alike but for weights that are nearly 0."""

PREDICTION = "next token's distribution"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShuffledRow(Result):
    """What becomes of an outcome while the weights of one query are given to its keys in random orders."""

    kind: Kind
    layer: int
    head: int
    query: int
    outcome: str
    """What is measured, in words; "" for a function."""
    key_tokens: Tokens
    keys: Int[np.ndarray, " place"]
    """Positions of the keys whose weights are permuted."""
    weights: Float[np.ndarray, " place"]
    """The model's own weights of these keys."""
    orders: Int[np.ndarray, "shuffle place"]
    """In each permutation, key i has the weight that is the model's own of key orders[i]; none if the weights are equal."""
    changes: Float[np.ndarray, " shuffle"]
    """How far the outcome is from the model's own: 0 to 1 for the next token's distribution, 1 - cosine for a state."""
    distances: Float[np.ndarray, " arrangement"]
    """Of the outcome from the mean outcome of all arrangements, the model's own first."""
    rounding: float
    """Changes up to this are none: four times that of the model's own row computed again, at least float32's epsilon."""

    @property
    def is_even(self) -> bool:
        """Whether the weights are equal, or there is only one: a permutation then changes nothing, and tells nothing."""
        return not len(self.orders)

    @property
    def has_effect(self) -> bool:
        """Whether any permutation changes the outcome by more than rounding; False for a head that the output ignores."""
        return bool((self.changes > self.rounding).any())

    @property
    def change(self) -> float:
        """The median change over the permutations; NaN for an even row, 0 without an effect."""
        if self.is_even:
            return float("nan")
        return float(np.median(self.changes)) if self.has_effect else 0.0

    @property
    def p(self) -> float:
        """How often an arrangement by chance is as far from the mean as the model's own; NaN for an even row, 1 without an effect."""
        if self.is_even:
            return float("nan")
        own, others = self.distances[0], self.distances[1:]
        is_as_far = others >= own * (1 - TIED) if self.has_effect else np.ones(len(others), dtype=bool)
        return p_value(int(is_as_far.sum()), len(others))

    def _table(self) -> Table:
        """A row for each permutation: the key that gets the largest weight, the change, the distance from the mean."""
        names = entry_names(Axis.of(self.key_tokens))
        rows = [
            [number, names[self.keys[int(self.weights[order].argmax())]], change, distance]
            for number, (order, change, distance) in enumerate(
                zip(self.orders, self.changes, self.distances[1:], strict=True), 1
            )
        ]
        return ["permutation", "key with the largest weight", "change", "distance from the mean"], rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShuffledHeads(Result):
    """The change of an outcome while a query's weights are permuted, for each head on its own."""

    kind: Kind
    query: int
    outcome: str
    """What is measured, in words; "" for a function."""
    n_shuffles: int
    heads: Float[np.ndarray, "layer head"]
    """The median change over the permutations; NaN for even rows."""
    p_values: Float[np.ndarray, "layer head"]
    """As `ShuffledRow.p`, of this many permutations; of many heads some are small by chance (`attnviz.maths.significance.holm`)."""

    def ranked(self) -> list[Head]:
        """The heads whose row can be permuted, the largest change first."""
        return sorted(heads_in(self.heads), key=lambda place: -float(self.heads[place]))

    def _table(self) -> Table:
        """A row for each head whose row can be permuted."""
        rows = [[*place, self.heads[place], self.p_values[place]] for place in heads_in(self.heads)]
        return ["layer", "head", "change", "p"], rows


@typed
def shuffled_row(
    model: "Model",
    trace: "Trace",
    layer: int,
    head: int,
    query: int,
    outcome: AnyOutcome | None = None,
    *,
    kind: Kind | None = None,
    keeps_special: bool = False,
    n_shuffles: int = N_SHUFFLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> ShuffledRow:
    """How far an outcome changes when a query's weights are given to its keys in random orders; see the module.

    Args:
        trace: of the text without interventions.
        query: position of the token, from 0.
        outcome: as `attnviz.effects.outcome.measured` takes it; None for the distribution that the language head predicts at
            the query, and without one for the query's own last state.
        keeps_special: whether special tokens keep their weights, and only the others are permuted.
        n_shuffles: permutations, drawn with the seed, each as likely as any other.
        progress: called with the share that is done, 0 to 1.

    Raises:
        CaptureError, OutOfMemoryError: as `attnviz.model.variants.states_of_variants`.
        SelectionError: no such layer, head, query or kind; fewer than one permutation; or, without an outcome, a query of an encoder whose
            states the model does not give.
    """
    place = Head(layer, head)
    (row,) = _shuffled(model, trace, [place], query, outcome, kind, keeps_special, n_shuffles, seed, progress)
    return row


@typed
def shuffled_heads(
    model: "Model",
    trace: "Trace",
    query: int,
    outcome: AnyOutcome | None = None,
    *,
    kind: Kind | None = None,
    keeps_special: bool = False,
    n_shuffles: int = N_SHUFFLES_OF_EACH,
    seed: int = 0,
    progress: Progress | None = None,
) -> ShuffledHeads:
    """`shuffled_row` of each head of a model in turn, with the same permutations; arguments and errors as there."""
    places = list(trace.heads(kind))
    rows = _shuffled(model, trace, places, query, outcome, kind, keeps_special, n_shuffles, seed, progress)
    of = dict(zip(places, rows, strict=True))
    layers = by_layer(places)
    return ShuffledHeads(
        kind=rows[0].kind,
        query=query,
        outcome=rows[0].outcome,
        n_shuffles=n_shuffles,
        heads=head_table([[of[place].change for place in of_layer] for of_layer in layers]),
        p_values=head_table([[of[place].p for place in of_layer] for of_layer in layers]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """What of the last hidden states is compared."""

    words: str
    scale: float
    """Size of the outcome, of which float32's epsilon is rounding."""
    of: Callable[[Tensor], tuple[Tensor, Tensor]]
    """Of states [variant, token, d_model], how far each variant is from the model's own, [variant], and what is averaged over
    arrangements, [variant, d]."""


def _shuffled(
    model: "Model",
    trace: "Trace",
    places: Sequence[Head],
    query: int,
    outcome: AnyOutcome | None,
    kind: Kind | None,
    keeps_special: bool,
    n_shuffles: int,
    seed: int,
    progress: Progress | None,
) -> list[ShuffledRow]:
    """The rows of some heads, in their order; all permutations of all heads share batches."""
    if n_shuffles < 1:
        raise SelectionError(f"{n_shuffles} permutations of a row were asked for; ask for at least one.")
    trace.refuse_given("the effect of a row")
    kind = trace.attention(0, kind).kind
    check_index("query", query, len(trace.query_tokens(kind)), "this text")
    compared = _comparison(model, trace, kind, query, outcome)
    is_kept = trace.key_tokens(kind).is_special & keeps_special
    variants: list[Variant] = []
    rows = []
    for layer, head in places:
        attention, only = trace.head(layer, head, kind), slice(query, query + 1)
        weights, is_seen = attention.weights(only)[0], np.isfinite(attention.scores(only)[0])
        keys = np.flatnonzero(is_seen & ~is_kept)
        own = weights[keys]
        is_even = len(keys) < 2 or np.ptp(own) <= EVEN * own.max()
        random = np.random.default_rng(seed)
        drawn = [random.permutation(len(keys)) for _ in range(0 if is_even else n_shuffles)]
        orders = np.array(drawn, dtype=np.int64).reshape(-1, len(keys))
        arrangements = np.tile(weights, (1 + len(orders), 1)).astype(np.float64)  # the model's own first
        arrangements[1:, keys] = own[orders]
        outputs = (arrangements @ trace.value(layer, head, kind)).astype(np.float32)
        first = len(variants)
        if not is_even:
            variants += [
                [ReplacedOutput(kind=kind, layer=layer, head=head, output=output[None], positions=(query,))]
                for output in outputs
            ]
        rows.append((layer, head, keys, own, orders, slice(first, len(variants))))
    changes = np.zeros(len(variants))
    vectors: dict[int, np.ndarray] = {}
    for some, states in states_of_variants(model, trace, variants, progress=progress):
        with torch.inference_mode():
            change, vector = (of.double().cpu().numpy() for of in compared.of(states))
        changes[list(some)] = change
        vectors.update(zip(some, vector, strict=True))
    made = []
    for layer, head, keys, own, orders, of_row in rows:
        of_arrangements = np.array([vectors[at] for at in range(of_row.start, of_row.stop)])
        away = of_arrangements - of_arrangements.mean(axis=0) if len(orders) else np.zeros((0, 1))
        of_own = float(changes[of_row][0]) if len(orders) else 0.0
        made.append(
            ShuffledRow(
                kind=kind,
                layer=layer,
                head=head,
                query=query,
                outcome=compared.words,
                key_tokens=trace.key_tokens(kind),
                keys=keys,
                weights=own,
                orders=orders,
                changes=changes[of_row][1:].astype(np.float32),
                distances=np.linalg.norm(away, axis=1).astype(np.float32),
                rounding=max(4 * of_own, float(np.finfo(np.float32).eps) * compared.scale),
            )
        )
    return made


def _comparison(
    model: "Model", trace: "Trace", kind: Kind, query: int, outcome: AnyOutcome | None
) -> _Comparison:
    if isinstance(outcome, str):
        outcome = outcome_from(outcome)
    if outcome is None:
        if kind == "encoder" and trace.target_tokens is not None:
            raise SelectionError(
                "The effect of a row of the encoder on its own token was asked for; of an encoder-decoder model the decoder's states are "
                "the last. Give an outcome, such as state:0, a token of the decoder."
            )
        if model.language_head is not None:
            return _of_prediction(model, trace, query)
        outcome = TokenState(position=query)
    measure = measured(model, trace, outcome)
    words, states = words_of(measure, trace), torch.tensor(trace.last_hidden_state)[None]
    if isinstance(outcome, TokenState):
        at, is_turn = outcome.place(len(trace.last_tokens)), outcome.by == "turn"

        def state(hidden: Tensor) -> tuple[Tensor, Tensor]:
            vectors = hidden[:, at]
            return measure(hidden), functional.normalize(vectors, dim=-1) if is_turn else vectors

        scale = 1.0 if is_turn else float(states[0, at].norm())
        return _Comparison(words=words, scale=scale, of=state)
    base = unchanged(trace, measure)

    def number(hidden: Tensor) -> tuple[Tensor, Tensor]:
        numbers = measure(hidden)
        return (numbers - base).abs(), numbers[:, None]

    return _Comparison(words=words, scale=abs(base), of=number)


def _of_prediction(model: "Model", trace: "Trace", query: int) -> _Comparison:
    def logs(hidden: Tensor) -> Tensor:
        logits = token_logits(model, hidden[:, query].to(torch.promote_types(hidden.dtype, torch.float32)))
        return logits.log_softmax(dim=-1)

    with torch.inference_mode():
        base = logs(torch.tensor(trace.last_hidden_state)[None])
    answer = int(base[0].argmax())

    def prediction(hidden: Tensor) -> tuple[Tensor, Tensor]:
        made = logs(hidden)
        return (made.exp() - base.exp()).abs().sum(dim=-1) / 2, made[:, answer, None]

    return _Comparison(
        words=f"{PREDICTION} at “{trace.last_tokens.labels[query]}” (token {query})",
        scale=1.0,
        of=prediction,
    )
