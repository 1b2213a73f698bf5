"""The mean output of every head over some reference texts: at each position, and for each special token.

A single mean over all positions would mix the first token, on which many heads rest and whose output is then near 0,
with all others; so each position has its own mean, and so has each special token at any position. Positions that few
texts reach share one mean.

Source: Wang et al. 2022, "Interpretability in the Wild" (arXiv:2211.00593), section 3.1, who take the mean at each position
over texts of one template; the means over any texts, and of special tokens by their id, are attnviz's own.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.arguments import typed
from attnviz.errors import EmptyTextError
from attnviz.model.capture import forward, recorded
from attnviz.model.changes import Changes
from attnviz.model.variants import TOKENS_AT_ONCE
from attnviz.records import Kind, Progress, Record, Tokens

if TYPE_CHECKING:
    from attnviz.model.model import Model

FEWEST_TEXTS = 16
"""Fewest texts that reach a position with a mean of its own, if there are so many texts."""
MOST_POSITIONS = 256
"""Most positions with a mean of their own."""

_Read = tuple[Tokens, Tokens | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanOutputs(Record):
    """The sums of the outputs of every head over some texts, by place: a position counted from 0, or -1 - id of a special token."""

    sums: Mapping[Kind, Mapping[int, tuple[Float[np.ndarray, "_ _"], ...]]]
    """By kind of attention and place of the query, the sums of each layer, [head, d_value]."""
    counts: Mapping[Kind, Mapping[int, int]]
    """Number of queries that each sum is over."""
    n_text: int

    def n_apart(self, kind: Kind) -> int:
        """Number of positions, from the first, that have a mean of their own; later ones share one."""
        fewest = min(FEWEST_TEXTS, self.n_text)
        return max((place for place, count in self.counts[kind].items() if count >= fewest), default=0)

    def of(self, kind: Kind, layer: int, head: int, tokens: Tokens) -> Float[np.ndarray, "query d_value"]:
        """The mean output of a head at the places of these tokens, those of its queries."""
        counts, n_apart = self.counts[kind], self.n_apart(kind)
        later = [place for place in counts if place >= n_apart]
        means: dict[int | None, np.ndarray] = {}  # None: the mean that later positions share
        rows = []
        for position, place in enumerate(_places(tokens)):
            own = next(
                (position for position in (place, position) if position < n_apart and position in counts),
                None,
            )
            if own not in means:
                places = [own] if own is not None else later or list(counts)
                total = np.sum([self.sums[kind][place][layer][head] for place in places], axis=0)
                means[own] = total / sum(counts[place] for place in places)
            rows.append(means[own])
        return np.asarray(rows, dtype=np.float32)

    def joined(self, other: "MeanOutputs") -> "MeanOutputs":
        """These means joined with those over other texts."""
        sums: dict[Kind, dict[int, tuple[np.ndarray, ...]]] = {}
        counts: dict[Kind, dict[int, int]] = {}
        for kind in self.sums:
            sums[kind], counts[kind] = dict(self.sums[kind]), dict(self.counts[kind])
            for place, of_layers in other.sums[kind].items():
                before = sums[kind].get(place)
                sums[kind][place] = (
                    of_layers
                    if before is None
                    else tuple(total + more for total, more in zip(before, of_layers, strict=True))
                )
                counts[kind][place] = counts[kind].get(place, 0) + other.counts[kind][place]
        return MeanOutputs(sums=sums, counts=counts, n_text=self.n_text + other.n_text)


@typed
def mean_outputs(model: "Model", texts: Iterable[str], *, progress: Progress | None = None) -> MeanOutputs:
    """The mean outputs of every head over some texts; empty ones are left out, and long ones cut at the model's limit.

    An encoder-decoder model reads each text as both of its texts.

    Args:
        progress: called with the share that is done, 0 to 1.

    Raises:
        EmptyTextError: there is no text with a token.
        InvalidTextError, ModelFailedError, OutOfMemoryError: as `Model.trace`.
    """
    by_length: dict[tuple[int, int], list[_Read]] = defaultdict(list)
    for text in texts:
        if text.strip():
            read = _read(model, text)
            by_length[len(read[0]), len(read[1] or ())].append(read)
    n_text = sum(map(len, by_length.values()))
    if not n_text:
        raise EmptyTextError(
            "The mean outputs of the heads were asked for over no text. Give a sentence or more."
        )
    summed, n_done = _Summed(), 0
    for (n_token, n_target), alike in by_length.items():
        n_at_once = max(1, TOKENS_AT_ONCE // max(n_token, n_target))
        for start in range(0, len(alike), n_at_once):
            some = alike[start : start + n_at_once]
            _run(model, some, summed)
            n_done += len(some)
            if progress is not None:
                progress(n_done / n_text)
    return MeanOutputs(
        sums={
            kind: {place: tuple(of_layer[place] for of_layer in layers) for place in layers[0]}
            for kind, layers in summed.sums.items()
        },
        counts={kind: dict(summed.counts[kind]) for kind in summed.sums},
        n_text=n_text,
    )


class _Summed(Changes):
    """Changes nothing, and sums the outputs of heads that pass, by the places of their queries."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = True
        self.sums: dict[Kind, list[dict[int, np.ndarray]]] = {}  # layer by layer
        self.counts: dict[Kind, dict[int, int]] = {}
        self.places: Mapping[Kind, Int[np.ndarray, "row query"]] = {}  # of the texts that run now

    def count(self, places: Mapping[Kind, Int[np.ndarray, "row query"]]) -> None:
        """Sets the places of the texts that run next."""
        self.places = places
        for kind, of_kind in places.items():
            counts = self.counts.setdefault(kind, {})
            for place, n in zip(*np.unique(of_kind, return_counts=True), strict=True):
                counts[int(place)] = counts.get(int(place), 0) + int(n)

    def change_outputs(
        self,
        kind: Kind,
        layer: int,
        output: Float[Tensor, "row head query d_value"],
        value: Float[Tensor, "row head key d_value"],
    ) -> None:
        """Adds the outputs of one layer."""
        layers = self.sums.setdefault(kind, [])
        if layer == len(layers):
            layers.append({})
        distinct, which = np.unique(self.places[kind], return_inverse=True)
        of_queries = output.transpose(1, 2).flatten(0, 1).double().cpu()  # [row x query, head, d_value]
        sums = torch.zeros(len(distinct), *of_queries.shape[1:], dtype=torch.float64)
        sums.index_add_(0, torch.tensor(which.reshape(-1)), of_queries)
        for place, of_place in zip(distinct.tolist(), sums.numpy(), strict=True):
            layers[layer][place] = layers[layer].get(place, 0.0) + of_place


def _read(model: "Model", text: str) -> _Read:
    """A text as the model reads it, and as the decoder of an encoder-decoder model does."""
    tokens = model.tokenize(text, cut=True)
    if not model.network.config.is_encoder_decoder:
        return tokens, None
    return tokens, model.decoder_tokens(text, cut=True, max_tokens=None, language=None)


def _run(model: "Model", texts: Sequence[_Read], summed: _Summed) -> None:
    """Runs texts of one length together."""
    of_tokens = np.array([_places(tokens) for tokens, _ in texts])
    of_targets = of_tokens if texts[0][1] is None else np.array([_places(text) for _, text in texts if text])
    summed.count({"encoder": of_tokens, "decoder": of_targets, "cross": of_targets})
    with recorded(model.network, summed, keeps=False), torch.inference_mode():
        forward(model.network, **_together([model.inputs(*text) for text in texts]))


def _together(inputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        name: torch.cat([given[name] for given in inputs]) if isinstance(given, Tensor) else given
        for name, given in inputs[0].items()
    }


def _places(tokens: Tokens) -> list[int]:
    """Where each token stands: its position, or for a special token -1 - id."""
    return [
        -1 - int(number) if is_special else min(position, MOST_POSITIONS - 1)
        for position, (number, is_special) in enumerate(zip(tokens.ids, tokens.is_special, strict=True))
    ]
