"""Every head of a model, measured on a batch of texts while the model reads them.

The statistics are those of `attnviz.heads.statistics_on` for the trace of each text, within rounding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from attnviz.corpus.columns import (
    ACTIVATION,
    DIRECTIONS,
    EDGES,
    MEASURED,
    N_POSITION,
    NORMS,
    QUERY,
    distance_name,
    position_name,
)
from attnviz.corpus.labels import Labels
from attnviz.errors import ModelFailedError
from attnviz.heads.head_statistics import STATISTICS, Statistic
from attnviz.heads.layer_cells import AxisPair
from attnviz.maths.attention import attention_weights, expand_heads
from attnviz.model.batch import padded
from attnviz.model.capture import AttentionCall, Length, Recording, run_recorded
from attnviz.model.changes import Changes
from attnviz.records import KINDS, Axis, Kind, Tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from attnviz.model.model import Model
    from attnviz.model.structure import OutputMap

Read = tuple[Tokens, Tokens | None]
"""The tokens that a model reads of a text, and those that the decoder of an encoder-decoder model reads."""


def lengths_of(texts: Sequence[Read]) -> list[Length]:
    """How many tokens the model reads of each text."""
    return [
        Length(read=len(tokens), written=None if target is None else len(target)) for tokens, target in texts
    ]


@dataclass(frozen=True, slots=True)
class TextNumbers:
    """What was measured of one text; heads are kind by kind in the order of `KINDS`, layer by layer."""

    numbers: Float[np.ndarray, "head column"]
    """NaN where a number is not defined."""
    n_words: dict[str, int]
    """By relation, the number of words that depend on another; empty without labels."""
    n_found: dict[str, Int[np.ndarray, "head direction"]]
    """By relation, how many of them each head finds; see `Words`."""


def measured(
    model: "Model", texts: Sequence[Read], names: Sequence[str], labels: Sequence[Labels | None] | None = None
) -> list[TextNumbers]:
    """Numbers of every head for each of some texts, which run through the model as one batch.

    Args:
        names: the columns, of `attnviz.corpus.columns`.
        labels: of each text's words; None where a text has none.

    Raises:
        ModelFailedError, CaptureError, OutOfMemoryError, UnsupportedArchitectureError: as `attnviz.model.capture.record_forward`;
            for a batch, without saying which text.
    """
    measuring = Measuring(model.network, texts, model.output_maps, labels or [None] * len(texts))
    inputs = [model.inputs(*text) for text in texts]
    states = run_recorded(model.network, measuring, **padded(model.network, inputs))
    if not bool(torch.isfinite(states).all()):
        raise ModelFailedError(
            f"The last hidden states of {type(model.network).__name__} hold NaN or infinity for a text, so there is nothing to "
            "measure. Leave that text out."
        )
    return measuring.by_text(names)


class Measuring(Recording):
    """A recording that measures every head instead of keeping its queries, keys and values."""

    def __init__(
        self,
        network: "PreTrainedModel",
        texts: Sequence[Read],
        output_maps: Mapping[Kind, tuple["OutputMap", ...]],
        labels: Sequence[Labels | None],
    ) -> None:
        super().__init__(network, Changes(), lengths=lengths_of(texts))
        self._read, self._maps, self._labels = texts, output_maps, labels
        self._words: Words | None = None
        self._found: dict[Kind, list[Tensor]] = {}
        self._cells: dict[Kind, _Cells] = {}
        self._seen: dict[tuple[Kind, int], tuple[Tensor | None, _Seen]] = {}
        self._layers: dict[Kind, list[dict[str, Tensor]]] = {}

    def by_text(self, names: Sequence[str]) -> list[TextNumbers]:
        """What was measured of each text: the columns of these names, in this order."""
        rows, text_numbers = [], []
        for kind in KINDS:
            for number, layer in enumerate(self._layers.get(kind, ())):
                none = torch.full_like(layer[ACTIVATION], torch.nan)
                rows.append(torch.stack([layer.get(name, none) for name in names], dim=-1))
                if self._words is not None:
                    n_word = self._words.n_word
                    text_numbers.append(
                        self._found[kind][number]
                        if kind in self._found
                        else torch.zeros(
                            (*none.shape, n_word, len(DIRECTIONS)), dtype=torch.bool, device=none.device
                        )
                    )
        numbers = torch.cat(rows, dim=1).float().cpu().numpy()  # [text, head, column]
        if self._words is None:
            return [TextNumbers(number, {}, {}) for number in numbers]
        is_found = torch.cat(text_numbers, dim=1).cpu().numpy()  # [text, head, word, direction]
        return [
            TextNumbers(
                of_text,
                {name: len(words) for name, words in related.items()},
                {name: column[:, words].sum(axis=1) for name, words in related.items()},
            )
            for of_text, column, related in zip(numbers, is_found, self._words.relations, strict=True)
        ]

    def keep(self, call: AttentionCall) -> None:
        """Measures the heads of a call, each text without its padding."""
        kind, layer, allowed = call.kind, call.layer, call.allowed
        n_head = call.query.shape[1]
        query = call.query.float()
        key = expand_heads(call.key, n_head).float()
        value = expand_heads(call.value, n_head).float()
        bias = None if call.bias is None else call.bias.float()
        if kind not in self._cells:
            self._cells[kind] = _Cells.of(kind, self._read, query.shape[2], key.shape[2], query.device)
        cells = self._cells[kind]
        place = kind, id(allowed)
        if place not in self._seen:
            self._seen[place] = allowed, _Seen(cells, allowed)  # keeping the mask keeps its id unique
        seen = self._seen[place][1]
        weights = attention_weights(query, key, call.scale, softcap=call.softcap, allowed=allowed, bias=bias)
        weights *= cells.is_query[:, None, :, None]  # [text, head, query, key]
        maps = self._maps.get(kind)
        gram = None if maps is None else _gram(maps[layer].weight, query.device)
        statistics = _statistics(weights, cells, seen)
        statistics |= _of_activation(weights, value, gram, cells)
        if any(label is not None for label in self._labels) and (
            kind == "encoder" or (kind == "decoder" and self._read[0][1] is None)
        ):
            if self._words is None:
                read = [tokens for tokens, _ in self._read]
                self._words = Words(read, self._labels, query.shape[2], query.device)
            self._found.setdefault(kind, []).append(self._words.hits(weights))
        if gram is not None:
            weights = weights * _lengths(value, gram)[:, :, None, :]
            total = weights.sum(dim=-1, keepdim=True)
            weights /= torch.where(total > 0, total, 1.0)
            of_norms = _statistics(weights, cells, seen, with_places=False)
            statistics |= {name + NORMS: number for name, number in of_norms.items()}
        self._layers.setdefault(kind, []).append(statistics)


_STEPS = {"self": 0, "previous": -1, "next": 1}
"""Statistics that are the weight on one diagonal, whose sums are there for the distances."""


def _on(what: str) -> list[Statistic]:
    """The statistics of profiles that are the weight on some keys, or on some pairs."""
    return [statistic for name in MEASURED if (statistic := STATISTICS[name]).on == what]


class Words:
    """The words of a batch, and what each depends on, to find the relations that a head links.

    For a word with a parent, the word that it depends on, a head gives the word that it attends to most and the word that
    attends to it most, itself left out; it finds the relation where that is the parent.

    Source: Clark et al. 2019 (arXiv:1906.04341), section 4.2: both directions, the token itself and special tokens left out;
    weights of words as in `attnviz.records.arrange`.

    Args:
        labels: None for a text without labels.
        n_token: tokens of the longest text.
    """

    def __init__(
        self, texts: Sequence[Tokens], labels: Sequence[Labels | None], n_token: int, device: torch.device
    ) -> None:
        self.n_word = max((len(label.heads) for label in labels if label is not None), default=0)
        """Number of words of the longest text."""
        belongs = np.zeros((len(texts), self.n_word, n_token), dtype=np.float32)
        heads = np.zeros((len(texts), self.n_word), dtype=np.int64)
        self.relations: list[dict[str, Int[np.ndarray, " word"]]] = []
        """Of each text, by relation, the words that depend on another; both words have tokens."""
        for number, (tokens, labels_of_text) in enumerate(zip(texts, labels, strict=True)):
            self.relations.append({})
            if labels_of_text is None:
                continue
            words = labels_of_text.word_of(tokens)
            at = np.flatnonzero(words >= 0)
            belongs[number, words[at], at] = 1
            heads[number, : len(labels_of_text.heads)] = labels_of_text.heads
            has_tokens = np.isin(np.arange(len(labels_of_text.heads)), words)
            related = (labels_of_text.heads >= 0) & has_tokens & has_tokens[labels_of_text.heads]
            for name in set(labels_of_text.relations):
                of_name = np.flatnonzero(related & (np.array(labels_of_text.relations) == name))
                if len(of_name):
                    self.relations[-1][name] = of_name
        self._keys = torch.tensor(belongs, device=device)  # [text, word, token], whose weights are summed
        lengths = self._keys.sum(dim=-1, keepdim=True)
        self._queries = self._keys / lengths.clamp(min=1)  # whose rows are averaged
        self._no_word = lengths[..., 0] == 0  # [text, word]
        self._heads = torch.tensor(heads, device=device)

    def hits(self, weights: Float[Tensor, "text head query key"]) -> Bool[Tensor, "text head word direction"]:
        """Whether a head links each word most with the word that it depends on, in both `DIRECTIONS`."""
        of_words = self._queries[:, None] @ weights @ self._keys[:, None].mT  # [text, head, word, word]
        none = self._no_word[:, :, None] | self._no_word[:, None, :]
        none = none | torch.eye(none.shape[-1], dtype=torch.bool, device=none.device)
        of_words = of_words.masked_fill(none[:, None], 0.0)
        wanted = self._heads[:, None].clamp(min=0)  # [text, 1, word]
        pairs = []
        for cells in (of_words, of_words.mT):
            most, which = cells.max(dim=-1)  # [text, head, word]
            pairs.append((which == wanted) & (most > 0))
        return torch.stack(pairs, dim=-1)


class _Cells:
    """The cells of a batch that are summed, the same for every layer of a kind; all tensors are on the model's device."""

    def __init__(
        self,
        *,
        is_query: Bool[Tensor, "text query"],
        is_key: Bool[Tensor, "text key"],
        is_own: Bool[Tensor, "text query"],
        columns: dict[str, Bool[Tensor, "text key"]],
        pairs: dict[str, Bool[Tensor, "text query key"]],
        is_one_text: bool,
    ) -> None:
        self.is_query, self.is_key, self.is_own = is_query, is_key, is_own
        self.names = tuple(columns)
        self.columns = torch.stack(list(columns.values()), dim=-1).float()  # [text, key, column]
        self.pair_names = tuple(pairs)
        self.pairs = torch.stack(list(pairs.values()), dim=-1)  # [text, query, key, pair]
        n_query, n_key = is_query.shape[1], is_key.shape[1]
        self.is_one_text = is_one_text
        steps = torch.arange(1 - n_query, n_key, device=is_query.device)  # the diagonals, key minus query
        self.far = steps.abs().float()
        self.middle = n_query - 1  # the diagonal of each token with itself
        edges = torch.tensor([*EDGES], device=is_query.device)
        bins = torch.sign(steps) * torch.bucketize(steps.abs(), edges)
        self.bins = torch.nn.functional.one_hot(
            bins + len(EDGES), 2 * len(EDGES) + 1
        ).float()  # [diagonal, bin]

    @classmethod
    def of(
        cls, kind: Kind, texts: Sequence[Read], n_query: int, n_key: int, device: torch.device
    ) -> "_Cells":
        axes = []
        for tokens, target in texts:
            written = tokens if target is None else target
            axes.append(
                (
                    Axis.of(tokens if kind == "encoder" else written),
                    Axis.of(written if kind == "decoder" else tokens),
                )
            )

        def stacked(arrays: list[np.ndarray], *shape: int) -> Tensor:
            whole = np.zeros((len(arrays), *shape), dtype=bool)
            for filled, part in zip(whole, arrays, strict=True):
                filled[tuple(map(slice, part.shape))] = part
            return torch.tensor(whole, device=device)

        is_one_text = kind != "cross"
        pairs = [AxisPair(queries, keys, is_one_text=is_one_text) for queries, keys in axes]
        return cls(
            is_query=stacked([np.ones(len(tokens), dtype=bool) for tokens, _ in axes], n_query),
            is_key=stacked([np.ones(len(tokens), dtype=bool) for _, tokens in axes], n_key),
            is_own=stacked([~axis.tokens.is_added for axis, _ in axes], n_query),
            columns={
                statistic.name: stacked([statistic.of(keys) for _, keys in axes], n_key)
                for statistic in _on("keys")
            },
            pairs={
                statistic.name: stacked([statistic.of(pair) for pair in pairs], n_query, n_key)
                for statistic in _on("pairs")
                if statistic.name not in _STEPS and statistic.of(pairs[0]) is not None
            },
            is_one_text=is_one_text,
        )


class _Seen:
    """How many queries of each text may see a key that counts for a number; the head axis is 1 where all heads see the same."""

    def __init__(self, cells: _Cells, allowed: Tensor | None) -> None:
        seen = (cells.is_query[:, :, None] & cells.is_key[:, None, :])[:, None]  # [text, 1, query, key]
        seen = seen if allowed is None else seen & allowed  # [text, 1 or head, query, key]
        self.n_key = seen.sum(dim=-1)  # [text, 1 or head, query]
        self.n_query = (self.n_key > 0).sum(dim=-1)  # [text, 1 or head]
        as_number = seen.float()
        of_keys = as_number @ cells.columns[:, None]  # [text, 1 or head, query, column]
        self.columns = (of_keys > 0).sum(dim=-2)  # [text, 1 or head, column]
        self.positions = as_number.sum(dim=-2)[..., :N_POSITION]  # [text, 1 or head, position]
        self.pairs = torch.stack(
            [
                (seen & cells.pairs[:, None, ..., pair]).any(dim=-1).sum(dim=-1)
                for pair in range(cells.pairs.shape[-1])
            ],
            dim=-1,
        )  # [text, 1 or head, pair]
        self.diagonals = diagonal_sums(as_number) if cells.is_one_text else None


def diagonal_sums(cells: Float[Tensor, "*batch query key"]) -> Float[Tensor, "*batch diagonal"]:
    """Sums over each diagonal, from that of the last query and the first key to that of the first query and the last key.

    >>> diagonal_sums(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([3., 5., 2.])
    """
    n_query, n_key = cells.shape[-2:]
    # rows padded to n_diagonal + 1 and read as rows of n_diagonal: each slides one place further to the right
    n_diagonal = n_query + n_key - 1
    slid = pad(cells.flip(-2), (0, n_query)).flatten(-2)[..., : n_query * n_diagonal]
    sums: Tensor = slid.reshape(*cells.shape[:-2], n_query, n_diagonal).sum(dim=-2)
    return sums


def _statistics(
    weights: Float[Tensor, "text head query key"], cells: _Cells, seen: _Seen, *, with_places: bool = True
) -> dict[str, Float[Tensor, "text head"]]:
    """The statistics of rows that sum to 1, and the weight at each distance and position."""
    received = weights.sum(dim=-2)  # [text, head, key]
    numbers: dict[str, Tensor] = {"entropy": _entropy(weights, seen)}
    of_columns = _ratio(received @ cells.columns, seen.columns)  # [text, head, column]
    numbers |= dict(zip(cells.names, of_columns.unbind(-1), strict=True))
    at_pairs = weights.flatten(2) @ cells.pairs.flatten(1, 2).float()  # [text, head, pair]
    numbers |= dict(zip(cells.pair_names, _ratio(at_pairs, seen.pairs).unbind(-1), strict=True))
    if with_places:
        at = _ratio(received[..., :N_POSITION], seen.positions)
        numbers |= {position_name(position): at[..., position] for position in range(at.shape[-1])}
    if seen.diagonals is not None:
        diagonals = diagonal_sums(weights)  # [text, head, diagonal]
        numbers["distance"] = _ratio((diagonals * cells.far).sum(dim=-1), received.sum(dim=-1))
        for name, step in _STEPS.items():
            at_step = cells.middle + step
            if at_step in range(diagonals.shape[-1]):
                numbers[name] = _ratio(diagonals[..., at_step], seen.diagonals[..., at_step])
        if with_places:
            shares = _ratio(diagonals @ cells.bins, seen.n_query[..., None])
            numbers |= {
                distance_name(offset - len(EDGES)): shares[..., offset]
                for offset in range(2 * len(EDGES) + 1)
            }
    return numbers


def _entropy(weights: Float[Tensor, "text head query key"], seen: _Seen) -> Float[Tensor, "text head"]:
    """Entropy of the rows as a share of its maximum; a row that sees a single key is left out."""
    nats = torch.special.entr(weights).sum(dim=-1)  # [text, head, query]
    counts = (weights.sum(dim=-1) > 0) & (seen.n_key > 1)
    shares = torch.where(counts, nats / seen.n_key.clamp(min=2).log(), 0.0)
    return _ratio(shares.sum(dim=-1), counts.sum(dim=-1))


def _of_activation(
    weights: Float[Tensor, "text head query key"],
    value: Float[Tensor, "text head key d_value"],
    gram: Float[Tensor, "head d_value d_value"] | None,
    cells: _Cells,
) -> dict[str, Float[Tensor, "text head"]]:
    """The length of what each head adds to the stream at the token where it adds most, and that token's position."""
    output = weights @ value  # [text, head, query, d_value]
    lengths = output.norm(dim=-1) if gram is None else _lengths(output, gram)  # [text, head, query]
    lengths = lengths.masked_fill(~cells.is_own[:, None], -1.0)
    longest, query = lengths.max(dim=-1)  # [text, head]
    return {ACTIVATION: torch.where(longest < 0, torch.nan, longest), QUERY: query.float()}


def _gram(output_weight: Float[np.ndarray, "head d_value d_model"], device: torch.device) -> Tensor:
    """W_O W_O^T of each head, which gives the length of a vector after W_O without applying W_O."""
    weight = torch.tensor(output_weight, device=device)
    return weight @ weight.mT


def _lengths(
    vectors: Float[Tensor, "text head token d_value"], gram: Float[Tensor, "head d_value d_value"]
) -> Float[Tensor, "text head token"]:
    """Lengths of vectors after W_O, as `attnviz.maths.attribution.value_lengths`."""
    return (vectors @ gram * vectors).sum(dim=-1).clamp(min=0.0).sqrt()


def _ratio(above: Float[Tensor, "*axes"], below: Tensor) -> Float[Tensor, "*axes"]:
    """The quotient; NaN where the divisor is 0."""
    return torch.where(below > 0, above / below.clamp(min=1e-30), torch.nan)
