"""Where the score of a query and a key comes from: the score as a sum over pairs of sources.

What enters a layer at a token is the sum of its embedding and of what every earlier head and MLP added there. With each
norm's scale frozen at the value that it had, a query is a linear function of that sum, and so is a key; their product
is bilinear, and the score is a sum with a term for each source of the query and each source of the key:

    scale · q · k = sum over sources a of the query, b of the key of scale · (W_q a) · (W_k b)

W_q and W_k include everything between the stream and the product at these two tokens. Rotary positions are part of them, not a
source, since they rotate both factors. Learned positions are a source, since they are added to the
embedding. What does not depend on the text, biases of norms, W_O, W_Q and W_K, is one source, "biases".

In families that normalise the stream after each sum (BERT), every norm on the way is frozen in the same way, down to the embedding.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", sections "QK and OV circuits" and "Three kinds of
composition"; frozen norms: Wang et al. 2022 (arXiv:2211.00593), section 2.2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Float64

from attnviz.arguments import typed
from attnviz.model.anatomy import LayerAnatomy, anatomy
from attnviz.model.direct_path import (
    FrozenNorm,
    carried,
    carried_back,
    check_parts,
    frozen_norm,
    layer_paths,
)
from attnviz.model.linear_forms import LinearForm, Wanted, linear_forms
from attnviz.model.model import Model
from attnviz.model.stream import Stream, record_streams
from attnviz.model.trace import Trace
from attnviz.records import Head, Kind, Result, check_index
from attnviz.records.table import Table

TOLERANCE = 1e-5
"""Largest gap between the sum of the parts and the model's own product, as a share of `ScoreSources.size`: float32 passes
round each vector by about 1e-6 of its length."""

SourceName = Literal["embedding", "token", "position", "segment", "attention", "head", "mlp", "biases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One term of the sum that is a residual stream."""

    name: SourceName
    """"token", "position" and "segment" where the embedding is known to be the sum of these; "embedding" where it is not."""
    layer: int | None = None
    """For "head", "mlp" and "attention" (all heads of a layer)."""
    head: int | None = None

    @property
    def words(self) -> str:
        """As in a sentence: "layer 3, head 1"."""
        match self.name:
            case "head":
                return f"layer {self.layer}, head {self.head}"
            case "mlp":
                return f"the MLP of layer {self.layer}"
            case "attention":
                return f"the heads of layer {self.layer}"
            case "biases":
                return "the biases"
            case "embedding":
                return "the embedding"
        return f"the {self.name} embedding"

    @property
    def short(self) -> str:
        """Where there is little room: "L3 H1"."""
        match self.name:
            case "head":
                return Head(self.layer or 0, self.head or 0).short
            case "mlp":
                return f"L{self.layer} MLP"
            case "attention":
                return f"L{self.layer} heads"
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreSources(Result):
    """One score as a sum with a part for each source of its query and each source of its key."""

    _IS_MATRIX: ClassVar[bool] = True

    kind: Kind
    layer: int
    head: int
    query: int
    """Position of the query's token."""
    key: int
    sources: tuple[Source, ...]
    query_vectors: Float64[np.ndarray, "source d_head"]
    """Each source's contribution to the query, which is their sum."""
    key_vectors: Float64[np.ndarray, "source d_head"]
    scale: float
    product: float
    """scale · q · k as the model used it: the score before a softcap, and without the family's bias for relative positions."""
    softcap: float | None
    """c where the product s becomes c tanh(s / c) (Gemma 2)."""
    bias: float
    """What the family then adds for relative positions; 0 for most families."""
    allowed: bool
    """Whether the query may see the key."""

    @property
    def parts(self) -> Float64[np.ndarray, "source source"]:
        """The part of each source of the query (rows) with each source of the key (columns)."""
        return np.asarray(self.scale * (self.query_vectors @ self.key_vectors.T))

    @property
    def of_query(self) -> Float64[np.ndarray, " source"]:
        """The part of each source of the query with the whole key."""
        return np.asarray(self.parts.sum(axis=1))

    @property
    def of_key(self) -> Float64[np.ndarray, " source"]:
        """The part of each source of the key with the whole query."""
        return np.asarray(self.parts.sum(axis=0))

    @property
    def summed(self) -> float:
        """The sum of all parts."""
        return float(self.parts.sum())

    @property
    def gap(self) -> float:
        """The model's own product minus the sum of the parts: rounding alone."""
        return self.product - self.summed

    @property
    def size(self) -> float:
        """The sum of the absolute values of all terms, dimension by dimension."""
        sizes = (np.abs(part).sum(axis=0) for part in (self.query_vectors, self.key_vectors))
        return abs(self.scale) * float(np.dot(*sizes))

    @property
    def passed(self) -> bool:
        """Whether the parts sum to the model's own product within `TOLERANCE`; False for NaN."""
        return abs(self.gap) <= TOLERANCE * self.size

    def ranked(self) -> list[tuple[Source, Source, float]]:
        """All parts with the source of the query and that of the key, the largest first, of either sign."""
        parts = self.parts
        order = np.argsort(-np.abs(parts), axis=None, kind="stable")
        places = zip(*np.unravel_index(order, parts.shape), strict=True)
        return [
            (self.sources[row], self.sources[column], float(parts[row, column])) for row, column in places
        ]

    def by_layer(self) -> "ScoreSources":
        """The same with all heads of a layer summed into one source."""
        joined = [
            Source(name="attention", layer=source.layer) if source.name == "head" else source
            for source in self.sources
        ]
        sources = tuple(dict.fromkeys(joined))
        rows = np.array([sources.index(source) for source in joined])

        def summed(vectors: np.ndarray) -> np.ndarray:
            sums = np.zeros((len(sources), vectors.shape[1]))
            np.add.at(sums, rows, vectors)
            return sums

        return ScoreSources(
            kind=self.kind,
            layer=self.layer,
            head=self.head,
            query=self.query,
            key=self.key,
            sources=sources,
            query_vectors=summed(self.query_vectors),
            key_vectors=summed(self.key_vectors),
            scale=self.scale,
            product=self.product,
            softcap=self.softcap,
            bias=self.bias,
            allowed=self.allowed,
        )

    def _table(self) -> Table:
        """A row for each source of the query, with its part for each source of the key; the sums come last."""
        names = [source.short for source in self.sources]
        rows: list[list[object]] = [
            [name, *row.tolist(), row.sum()] for name, row in zip(names, self.parts, strict=True)
        ]
        rows.append(["sum", *self.parts.sum(axis=0).tolist(), self.summed])
        return ["source of the query \\ source of the key", *names, "sum"], rows


@typed
def score_sources(
    model: Model, trace: Trace, layer: int, head: int, query: int, key: int, *, kind: Kind | None = None
) -> ScoreSources:
    """The score of a query and a key in one head, split by the sources of both.

    Args:
        trace: of the text without interventions.
        query, key: positions of their tokens.

    Raises:
        OutOfMemoryError: the text is too long for the memory that is left.
        SelectionError: no such layer, head, query, key or kind, a trace with interventions, or a model in another dtype than
            float32.
        UnsupportedArchitectureError: a model with an encoder and a decoder, or a family whose stream or queries attnviz cannot
            take apart.
    """
    call = trace.head(layer, head, kind)
    layer_call = trace.attention(layer, kind)
    for role, position, vectors in (("query", query, call.query), ("key", key, call.key)):
        check_index(f"{role} token", position, len(vectors), "this text")
    check_parts(model, trace, "The sources of a query and a key were")
    positions = list(dict.fromkeys((query, key)))
    streams = dict(zip(positions, record_streams(model, trace, positions), strict=True))
    made_of = anatomy(model, trace, 0, layer_call.kind)
    firsts = {at: embedded(made_of, stream.start, at) for at, stream in streams.items()}
    names: tuple[SourceName, ...] = tuple(firsts[query][0])
    if names != tuple(firsts[key][0]):
        names = ("embedding",)
        firsts = {at: ({"embedding": stream.start}, None) for at, stream in streams.items()}
    forms = linear_forms(
        model,
        trace,
        layer_call.kind,
        [
            Wanted(layer=layer, role="query", head=head, position=query),
            Wanted(
                layer=layer,
                role="key",
                head=head // (len(layer_call.query) // len(layer_call.key)),
                position=key,
            ),
        ],
    )
    query_vectors, key_vectors = (
        _split(model, trace, streams[at], at, layer, form, *firsts[at])
        for at, form in zip((query, key), forms, strict=True)
    )
    return ScoreSources(
        kind=layer_call.kind,
        layer=layer,
        head=head,
        query=query,
        key=key,
        sources=(*(Source(name=name) for name in names), *_added_below(trace, layer_call.kind, layer)),
        query_vectors=query_vectors,
        key_vectors=key_vectors,
        scale=call.scale,
        product=call.scale * float(call.query[query].astype(np.float64) @ call.key[key].astype(np.float64)),
        softcap=call.softcap,
        bias=0.0 if call.bias is None else float(call.bias[query, key]),
        allowed=call.allowed is None or bool(call.allowed[query, key]),
    )


def _added_below(trace: Trace, kind: Kind, layer: int) -> Iterator[Source]:
    """The sources after the embedding, in the order of `_split`."""
    for below in range(layer):
        for head in range(trace.n_heads(below, kind)):
            yield Source(name="head", layer=below, head=head)
        yield Source(name="mlp", layer=below)
    yield Source(name="biases")


Embedded = tuple[Mapping[SourceName, np.ndarray], FrozenNorm | None]
"""Vectors whose sum is, after the norm if there is one, what enters the first layer at a token."""


def embedded(anatomy_of_first: LayerAnatomy, start: Float[np.ndarray, " d_model"], at: int) -> Embedded:
    """The vectors that sum to the first vector of a token; that first vector itself where attnviz does not know them."""
    parts: dict[SourceName, np.ndarray] = {
        name: rows[at] for name, rows in anatomy_of_first.ingredients.items()
    }
    if {part.shape for part in parts.values()} == {start.shape}:
        summed = np.sum(list(parts.values()), axis=0)
        atol = TOLERANCE * float(np.abs(start).max())
        if np.allclose(summed, start, rtol=0, atol=atol):
            return parts, None
        if anatomy_of_first.norm is not None and np.allclose(
            anatomy_of_first.norm.made[at], start, rtol=0, atol=atol
        ):
            return parts, frozen_norm(anatomy_of_first.norm, summed)
    return {"embedding": start}, None


def _split(
    model: Model,
    trace: Trace,
    stream: Stream,
    at: int,
    n_layer: int,
    form: LinearForm,
    embedding: Mapping[SourceName, np.ndarray],
    norm: FrozenNorm | None,
) -> Float64[np.ndarray, "source d_head"]:
    """Each source's contribution to the vector of this form, from the layer below down to the embedding."""
    directions, biases = form.weight, form.bias  # [d_head, d_model], [d_head]
    paths = layer_paths(stream, n_layer)
    below: list[np.ndarray] = []
    for layer in reversed(range(n_layer)):
        output_map = model.output_maps[stream.kind][layer]
        back = carried_back(paths[layer], output_map, directions)
        directions, biases = back.entering, biases + back.biases
        outputs = trace.outputs(layer, stream.kind)[:, at].astype(np.float64)  # [head, d_value]
        below.append(back.rest[None])
        below.append(np.einsum("hv,hvd,kd->hk", outputs, output_map.weight, back.of_attention, optimize=True))
    directions, of_norm = carried(norm, directions)
    first = np.stack([directions @ vector for vector in embedding.values()])
    return np.concatenate([first, *below[::-1], (biases + of_norm)[None]])
