"""A Trace: the inputs of every attention of a model while it read one text.

torch is imported only for these computations.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from attnviz.arguments import typed
from attnviz.errors import SelectionError
from attnviz.maths import attribution
from attnviz.model.head_attention import HeadAttention, read_only, score_inputs, tensor_of
from attnviz.model.interventions import Intervention, replaced_weights
from attnviz.records import (
    GIVEN,
    KINDS,
    LONG,
    MEASURES,
    ROLE_NAMES,
    AttentionPattern,
    Axis,
    Head,
    Kind,
    LayerAttention,
    Measure,
    Provenance,
    Record,
    Role,
    Tokens,
    Unit,
    check_index,
)
from attnviz.records.record import brief

_PAGE, _WIDGET, _ARRAYS = "attnviz.viewer.page", "attnviz.viewer.widget", "attnviz.model.arrays"
"""What stands above a trace, and is looked up when it is asked for."""

_NAMED = ("pattern", "scores", "query", "key", "value", "output")
"""What ``trace[name, layer]`` gives."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace(Record):
    """Queries, keys, values, masks and scales of every layer for one text; not the weights.

    All weights together would be layers x heads x queries x keys numbers. They are computed for one head at a time,
    by the functions that the model itself ran on. Layers and heads count from 0. Where a model has
    several kinds of attention, ``kind`` selects one; the default is the first, "encoder" for BERT.

    Every method raises SelectionError for a layer, head or kind that the model does not have.
    """

    tokens: Tokens
    """The text that was read. For an encoder-decoder model, the text that the encoder read."""
    target_tokens: Tokens | None = None
    """The text that the decoder of an encoder-decoder model read; None for all other models."""
    layers: Mapping[Kind, tuple[LayerAttention, ...]]
    last_hidden_state: Float[np.ndarray, "token d_model"]
    interventions: tuple[Intervention, ...] = ()
    """Changes inside the forward pass; empty for the model's own numbers."""
    provenance: Provenance

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        ordered = {kind: self.layers[kind] for kind in KINDS if kind in self.layers}
        object.__setattr__(self, "layers", MappingProxyType(ordered))
        for kind, calls in ordered.items():
            n_query, n_key = len(self.query_tokens(kind)), len(self.key_tokens(kind))
            for number, call in enumerate(calls):
                if (call.kind, call.layer) != (kind, number):
                    raise self._unfit(
                        f"{call.kind} layer {call.layer} stands in the place of {kind} layer {number}"
                    )
                sizes = (call.query.shape[1], call.key.shape[1])
                if sizes != (n_query, n_key):
                    raise self._unfit(
                        f"{kind} layer {call.layer} has {sizes[0]} queries and {sizes[1]} keys "
                        f"for {n_query} and {n_key} tokens"
                    )
        if len(self.last_hidden_state) != len(self.last_tokens):
            raise self._unfit(
                f"{len(self.last_hidden_state)} last hidden states for {len(self.last_tokens)} tokens"
            )

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{kind} {layers} x {heads}" for kind in self.kinds for layers, heads in [self.shape(kind)]
        )
        return f"Trace({brief(self.tokens.text)}, {len(self.tokens)} tokens, {kinds} heads, {self.provenance.model})"

    def _repr_html_(self) -> str:
        """The stage in a frame, as `show` without anywidget."""
        page: str = import_module(_PAGE).framed(self.to_html())
        return page

    def __getitem__(self, at: tuple[str, int] | tuple[str, int, int]) -> np.ndarray:
        """The numbers of all heads of a layer, or of one head: ``trace["pattern", 7]``, ``trace["query", 7, 2]``.

        Axes are [head, query, key] for "pattern" and "scores", and [head, token, d] for "query", "key", "value" and "output"; where
        heads share keys and values, each has them. Of the first kind of attention; the methods take others.

        Raises:
            SelectionError: an unknown name, layer or head, or numbers that this trace does not have.
        """
        name, *place = at if isinstance(at, tuple) else (at,)
        if name not in _NAMED or len(place) not in (1, 2):
            raise SelectionError(
                f"trace[{', '.join(map(repr, (name, *place)))}] was asked for; a trace has "
                f"{', '.join(_NAMED)}, by layer and head. Ask for trace[{_NAMED[0]!r}, 0] or trace[{_NAMED[0]!r}, 0, 0]."
            )
        layer, heads = place[0], place[1:] or range(self.n_heads(place[0]))
        if name == "pattern" and len(place) == 1:
            return self.layer_weights(layer)
        if name == "output" and len(place) == 1:
            self.output(layer, 0)  # refuses a trace without values
            return self.outputs(layer)
        read = self.weights if name == "pattern" else getattr(self, name)
        numbers = [read(layer, head) for head in heads]
        if len(place) == 2:
            return np.asarray(numbers[0])
        stacked = np.stack(numbers)
        stacked.flags.writeable = False
        return stacked

    __iter__ = None
    """A trace has no order of its own; without this, Python would ask for trace[0], trace[1] and so on."""

    @classmethod
    def from_arrays(
        cls,
        tokens: Sequence[str] | Tokens,
        *,
        weights: Any = None,
        queries: Any = None,
        keys: Any = None,
        values: Any = None,
        key_tokens: Sequence[str] | Tokens | None = None,
        pictures: Sequence[Any] | None = None,
        kind: Kind | None = None,
        scale: float | None = None,
        name: str = "your numbers",
    ) -> "Trace":
        """The trace of attention that was computed elsewhere; its numbers are kept as they are and compared with nothing.

        Args:
            tokens: a label for each row and column.
            weights: [layer, head, query, key]; a list of layers, each [head, query, key] or [1, head, query, key] as transformers gives
                them; or one layer, or one matrix. Of torch, jax or numpy. Not needed beside queries and keys.
            queries, keys, values: [layer, head, token, d], as far as there are any; scores and maps take queries and keys.
            key_tokens: a label for each column of cross-attention.
            pictures: what each token of ``tokens`` looks like, where they are patches of an image: of Pillow, or arrays
                [height, width, 3] of 0 to 255 or of 0 to 1.
            kind: None for "decoder" where no query has weight on a later key, and else "encoder".
            scale: the factor on q . k; None for 1 / sqrt(d).
            name: the model's name in captions.

        Raises:
            ArgumentError: no arrays of numbers, or neither weights nor queries and keys.
            ShapeError: shapes that do not fit, NaN or infinity, or rows that do not sum to 1.

        >>> import attnviz
        >>> trace = attnviz.Trace.from_arrays(["a", "b"], weights=[[1.0, 0.0], [0.25, 0.75]])
        >>> trace.weights(0, 0)[1].tolist(), trace.kinds
        ([0.25, 0.75], ('decoder',))
        """
        given = {"weights": weights, "queries": queries, "keys": keys, "values": values}
        made: Trace = import_module(_ARRAYS).trace_of(
            tokens, key_tokens=key_tokens, pictures=pictures, kind=kind, scale=scale, name=name, **given
        )
        return made

    @property
    def is_given(self) -> bool:
        """Whether its numbers were given as arrays, so that no model here can be asked for them."""
        return self.provenance.revision == GIVEN

    def refuse_given(self, asked: str) -> None:
        """Does nothing for a trace of a model.

        Raises:
            SelectionError: its numbers were given as arrays, so that there is no model to ask.
        """
        if self.is_given:
            raise SelectionError(
                f"This trace was made of arrays, and {asked} was asked for, which only a model can give. Trace the text with the model: "
                "attnviz.wrap(model, tokenizer).trace(text)."
            )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention that this model has."""
        return tuple(self.layers)

    def n_layers(self, kind: Kind | None = None) -> int:
        """Number of layers with this kind of attention."""
        return len(self._calls(kind))

    def is_long(self, kind: Kind | None = None) -> bool:
        """Whether matrices of this text are read some rows at a time, and never held whole: over `attnviz.records.LONG` tokens."""
        call = self._calls(kind)[0]
        return bool(max(call.query.shape[1], call.key.shape[1]) > LONG)

    def n_heads(self, layer: int, kind: Kind | None = None) -> int:
        """Number of query heads in a layer; layers may differ, as Laguna's do."""
        return len(self.attention(layer, kind).query)

    def heads(self, kind: Kind | None = None) -> tuple[Head, ...]:
        """Every head of this kind of attention, layer by layer."""
        return tuple(
            Head(layer, head)
            for layer, call in enumerate(self._calls(kind))
            for head in range(len(call.query))
        )

    def shape(self, kind: Kind | None = None) -> tuple[int, int]:
        """Shape of a table [layer head] with a number for every head: as wide as the layer with the most heads.

        Where a layer has fewer, such a table holds NaN; see `attnviz.records.head_table`.
        """
        return self.n_layers(kind), max(len(call.query) for call in self._calls(kind))

    @property
    def last_tokens(self) -> Tokens:
        """The tokens whose last hidden states the model gives: of an encoder-decoder model those of the decoder."""
        return self.tokens if self.target_tokens is None else self.target_tokens

    def query_tokens(self, kind: Kind | None = None) -> Tokens:
        """The tokens that the queries of this kind belong to."""
        if self._kind(kind) == "encoder" or self.target_tokens is None:
            return self.tokens
        return self.target_tokens

    def key_tokens(self, kind: Kind | None = None) -> Tokens:
        """The tokens that the keys of this kind belong to."""
        return self.query_tokens(kind) if self._kind(kind) == "decoder" else self.tokens

    def axes(self, kind: Kind | None = None, unit: Unit = "tokens") -> tuple[Axis, Axis]:
        """All tokens, or words, as queries and as keys; a single axis where both are of the same tokens."""
        queries, keys = self.query_tokens(kind), self.key_tokens(kind)
        rows = Axis.of(queries, unit)
        return rows, rows if keys is queries else Axis.of(keys, unit)

    def attention(self, layer: int, kind: Kind | None = None) -> LayerAttention:
        """The inputs of the attention of one layer, all heads."""
        calls = self._calls(kind)
        return calls[check_index("layer", layer, len(calls), f"{self.provenance.model}")]

    def with_layer(self, call: LayerAttention) -> "Trace":
        """The trace with the attention of one layer replaced by ``call``, which names its kind and layer."""
        calls = list(self._calls(call.kind))
        calls[check_index("layer", call.layer, len(calls), self.provenance.model)] = call
        return replace(self, layers={**self.layers, call.kind: tuple(calls)})

    def head(self, layer: int, head: int, kind: Kind | None = None) -> HeadAttention:
        """The attention of one head."""
        call = self.attention(layer, kind)
        check_index("head", head, len(call.query), f"layer {layer} of {self.provenance.model}")
        return HeadAttention.of(call, head, replaced=self._replaced(call).get(head))

    def query(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "query d_head"]:
        """Query vectors of one head."""
        return self._vectors("query", layer, head, kind)

    def key(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "key d_head"]:
        """Key vectors of one head; heads of one group share theirs."""
        return self._vectors("key", layer, head, kind)

    def value(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "key d_value"]:
        """Value vectors of one head; heads of one group share theirs."""
        return self._vectors("value", layer, head, kind)

    def scores(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "query key"]:
        """What the softmax gets: scaled, softcapped and biased scores, minus infinity where masked."""
        self._vectors("query", layer, head, kind)
        return self.head(layer, head, kind).scores()

    def weights(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "query key"]:
        """Attention weights: rows sum to 1, or to 0 where a query may see no key."""
        return self.head(layer, head, kind).weights()

    def output(self, layer: int, head: int, kind: Kind | None = None) -> Float[np.ndarray, "query d_value"]:
        """Output of one head: for each query the mean of the values, weighted by its attention."""
        self._vectors("value", layer, head, kind)
        output: np.ndarray = self.outputs(layer, kind)[head]
        return output

    def outputs(self, layer: int, kind: Kind | None = None) -> Float[np.ndarray, "head query d_value"]:
        """Outputs of all heads of one layer, computed as they were in the model's own run, interventions included."""
        from attnviz.maths.attention import expand_heads
        from attnviz.maths.blocks import attention_output_in_blocks
        from attnviz.model.changes import Changes

        call = self.attention(layer, kind)
        value = expand_heads(tensor_of(call.value), len(call.query))
        if call.weights is not None:
            return read_only(tensor_of(call.weights) @ value)
        output = attention_output_in_blocks(value=value, **score_inputs(call))
        Changes([self.interventions]).change_outputs(call.kind, call.layer, output[None], value[None])
        return read_only(output)

    @typed
    def layer_weights(
        self, layer: int, kind: Kind | None = None, *, measure: Measure = "weights"
    ) -> Float[np.ndarray, "head query key"]:
        """Attention weights of all heads of one layer, or their norm-based weights (``norms``).

        They are computed for all heads at once, some thirty times as fast for a short text as one `pattern` after another;
        `attnviz.verify` compares both with the model's.

        Raises:
            SelectionError: also for a measure without a number for each head, or one that is not available; see
                `measures`.
        """
        from attnviz.maths.attention import attention_weights

        call = self.attention(layer, kind)
        self._check_measure(measure, kind)
        if measure == "rollout":
            raise SelectionError(
                "Rollout was asked for head by head; it takes all heads of a layer together. Ask for the pattern."
            )
        weights = (
            np.array(call.weights)
            if call.weights is not None
            else attention_weights(**score_inputs(call)).numpy()
        )
        for head, weights_of_head in self._replaced(call).items():
            weights[head] = weights_of_head
        if measure == "norms":
            weights = attribution.head_norms(weights, self.value_lengths(layer, kind))
        weights.flags.writeable = False
        return weights

    @typed
    def blocks(
        self,
        layer: int,
        kind: Kind | None = None,
        *,
        head: int | None = None,
        rows: slice = slice(None),
        measure: Measure = "weights",
    ) -> Iterator[tuple[slice, Float[np.ndarray, "head row key"]]]:
        """The numbers of `layer_weights`, some queries at a time, so that a matrix of a long text is never held whole.

        Args:
            head: the head that is asked for; None for all heads of the layer.
            rows: the queries that are asked for; all by default.

        Yields:
            The place of the block among the queries, and its numbers.

        Raises:
            SelectionError: as `layer_weights`.
        """
        call = self.attention(layer, kind)
        self._check_measure(measure, kind)
        if measure == "rollout":
            raise SelectionError(
                "Rollout was asked for head by head; it takes all heads of a layer together. Ask for the pattern."
            )
        replaced = self._replaced(call)
        lengths = self.value_lengths(layer, kind) if measure == "norms" else None
        if head is not None:
            check_index("head", head, len(call.query), f"layer {layer} of {self.provenance.model}")
            replaced = {0: replaced[head]} if head in replaced else {}
            lengths = None if lengths is None else lengths[head : head + 1]
            call = call.of_head(head)
        return self._blocks(call, rows, replaced, lengths)

    @staticmethod
    def _blocks(
        call: LayerAttention,
        rows: slice,
        replaced: Mapping[int, np.ndarray],
        lengths: np.ndarray | None,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        from attnviz.maths.blocks import QUERY_BLOCK, weights_in_blocks

        asked = range(call.query.shape[1])[rows]
        if call.weights is None:
            within = weights_in_blocks(**score_inputs(call, slice(asked.start, asked.stop)))
            blocks = (
                (slice(asked.start + part.start, asked.start + part.stop), made) for part, made in within
            )
        else:
            blocks = (
                (part, tensor_of(call.weights[:, part]))
                for start in asked[::QUERY_BLOCK]
                for part in [slice(start, min(start + QUERY_BLOCK, asked.stop))]
            )
        for part, made in blocks:
            weights = made.numpy()
            for head, given in replaced.items():
                weights[head] = np.broadcast_to(given, (call.query.shape[1], given.shape[-1]))[part]
            yield part, weights if lengths is None else attribution.head_norms(weights, lengths)

    def value_lengths(self, layer: int, kind: Kind | None = None) -> Float[np.ndarray, "head key"]:
        """For each head and token, the length of the vector v_j W_O that a weight of 1 adds to the layer's output.

        Raises:
            SelectionError: also where W_O is not known.
        """
        call = self.attention(layer, kind)
        if call.output_weight is not None:
            return attribution.value_lengths(call.value, call.output_weight)
        return attribution.lengths_of(self.value_products(layer, kind))

    def value_products(self, layer: int, kind: Kind | None = None) -> Float[np.ndarray, "head head key"]:
        """Dot products of values and W_O for norm-based weights of all heads together; see `attnviz.maths.attribution`.

        Raises:
            SelectionError: also where W_O is not known.
        """
        call = self.attention(layer, kind)
        if call.value_products is not None:
            return call.value_products
        self._check_measure("norms", kind)
        assert call.output_weight is not None  # otherwise norms would not be among the measures
        return attribution.value_products(call.value, call.output_weight)

    def rollout(self, layer: int, kind: Kind | None = None) -> Float[np.ndarray, "query key"]:
        """Rollout: how much of each token of the text a token contains after this layer; rows sum to 1.

        The weights of each layer are averaged over its heads; see `attnviz.maths.attribution.rollout`.

        Raises:
            SelectionError: also for cross-attention, whose queries and keys are different tokens.
        """
        self._check_measure("rollout", kind)
        check_index("layer", layer, self.n_layers(kind), f"{self.provenance.model}")
        return attribution.rollout(
            np.concatenate([weights.mean(axis=0) for _, weights in self.blocks(number, kind)])
            for number in range(layer + 1)
        )

    def measures(self, kind: Kind | None = None) -> tuple[Measure, ...]:
        """Measures for this kind of attention: no norms where W_O is not known, no rollout of cross-attention."""
        call = self._calls(kind)[0]
        missing: set[Measure] = set()
        if call.output_weight is None and call.value_products is None:
            missing.add("norms")
        if self._kind(kind) == "cross":
            missing.add("rollout")
        return tuple(measure for measure in MEASURES if measure not in missing)

    @typed
    def pattern(
        self,
        layer: int,
        head: int | None,
        kind: Kind | None = None,
        *,
        measure: Measure = "weights",
        rows: slice = slice(None),
    ) -> AttentionPattern:
        """The matrix of one head with its axes; weights come with their scores.

        Args:
            head: None for all heads of the layer together: weights averaged, value vectors summed before the
                norm. Rollout is always of all heads.
            measure: measure of the cells, one of `measures`.
            rows: the queries that are asked for, by their positions; all by default. Only these are computed, so that some rows of
                a long text take little memory.

        Raises:
            SelectionError: also where no query is asked for.
        """
        self._check_measure(measure, kind)
        queries, keys = self.axes(kind)
        asked = range(len(queries))[rows]
        if not asked or asked.step != 1:
            raise SelectionError(
                f"Rows {rows.start} to {rows.stop} of a matrix were asked for; it has the rows 0 to {len(queries) - 1}. Select rows "
                "that follow each other: rows=slice(0, 10)."
            )
        rows = slice(asked.start, asked.stop)
        scores: np.ndarray | None = None
        call = self.attention(layer, kind)
        allowed = None if call.allowed is None else _rows(call.allowed, rows).any(axis=0)
        if measure == "rollout":
            head, weights = None, self.rollout(layer, kind)[rows]
        elif head is None:
            products = self.value_products(layer, kind) if measure == "norms" else None
            weights = np.concatenate(
                [
                    of_heads.mean(axis=0) if products is None else attribution.layer_norms(of_heads, products)
                    for _, of_heads in self.blocks(layer, kind, rows=rows)
                ]
            )
        else:
            of_head = self.head(layer, head, kind).some(rows)
            allowed = of_head.allowed
            scores, weights = of_head.scores_and_weights()
            if not call.query.shape[2]:  # weights alone were given
                scores = None
            if measure == "norms":
                lengths = (
                    self.value_lengths(layer, kind)[head]
                    if call.output_weight is None
                    else attribution.value_lengths(of_head.value[None], call.output_weight[head][None])[0]
                )
                weights, scores = attribution.head_norms(weights, lengths), None
        return AttentionPattern(
            kind=self._kind(kind),
            layer=layer,
            head=head,
            measure=measure,
            scores=scores,
            weights=weights,
            allowed=np.ones(weights.shape, dtype=bool)
            if allowed is None
            else np.array(np.broadcast_to(allowed, weights.shape)),
            queries=queries if len(asked) == len(queries) else replace(queries, spans=queries.spans[rows]),
            keys=keys,
            hidden_weight=np.zeros(weights.shape[0], dtype=np.float32),
            is_changed=bool(self.interventions),
            provenance=self.provenance,
        )

    @typed
    def show(
        self,
        layer: int = 0,
        head: int = 0,
        kind: Kind | None = None,
        *,
        query: int | None = None,
        key: int | None = None,
        theme: Literal["light", "dark", "auto"] = "auto",
    ) -> Any:
        """The stage in a notebook, where every head, query and key can be looked at.

        With anywidget (`pip install "attnviz[notebook]"`) a widget, whose `selection` can be read, set and observed; else a page in
        a frame, which `save_html` writes too.

        Args:
            query, key: positions of what is selected first; None for a large weight.
            theme: "auto" is the notebook's own, or the reader's system's.
        """
        try:
            widget = import_module(_WIDGET)
        except ModuleNotFoundError as error:
            if error.name not in ("anywidget", "traitlets"):
                raise
            return import_module(_PAGE).StagePage(
                self.to_html(layer, head, kind, query=query, key=key, theme=theme)
            )
        return widget.StageWidget(self, layer=layer, head=head, kind=kind, query=query, key=key, theme=theme)

    @typed
    def to_html(
        self,
        layer: int = 0,
        head: int = 0,
        kind: Kind | None = None,
        *,
        query: int | None = None,
        key: int | None = None,
        theme: Literal["light", "dark", "auto"] = "auto",
        title: str | None = None,
    ) -> str:
        """A page of HTML with the stage and all heads, as far as they fit, that needs no network; see `show` for the arguments."""
        viewer = import_module(_PAGE)
        facts = viewer.trace_facts(self)
        page: str = viewer.stage_page(
            self,
            layer=layer,
            head=head,
            kind=kind,
            query=query,
            key=key,
            theme=theme,
            title=title,
            facts=facts,
        )
        return page

    @typed
    def save_html(
        self, path: str | Path, layer: int = 0, head: int = 0, kind: Kind | None = None, **choices: Any
    ) -> Path:
        """Writes what `to_html` gives for these arguments to a file, whose path is returned."""
        file = Path(path)
        file.write_text(self.to_html(layer, head, kind, **choices), encoding="utf-8")
        return file

    def _vectors(self, role: Role, layer: int, head: int, kind: Kind | None) -> Float[np.ndarray, "token d"]:
        """The vectors of one head.

        Raises:
            SelectionError: there is no such head, or the trace was made of weights alone.
        """
        vectors: np.ndarray = getattr(self.head(layer, head, kind), role)
        if not vectors.shape[1]:
            raise SelectionError(
                f"The {ROLE_NAMES[role]} of layer {layer}, head {head} were asked for; this trace was made of arrays without them. "
                f"Give them to Trace.from_arrays."
            )
        return vectors

    def _check_measure(self, measure: Measure, kind: Kind | None) -> None:
        if measure not in (known := self.measures(kind)):
            raise SelectionError(
                f"The measure {measure!r} was asked for; {self._kind(kind)} attention of "
                f"{self.provenance.model} has {', '.join(known)}. Select one of those."
            )

    def _kind(self, kind: Kind | None) -> Kind:
        if kind is None:
            return self.kinds[0]
        if kind not in self.kinds:  # a list would be no key
            raise SelectionError(
                f"Attention of kind {kind!r} was asked for; {self.provenance.model} has "
                f"{' and '.join(self.kinds)}. Select one of those."
            )
        return kind

    def _replaced(self, call: LayerAttention) -> dict[int, Float[np.ndarray, "query key"]]:
        """The weights that interventions put in place of those of a layer's heads, by head."""
        given = {} if call.weights is None else dict(enumerate(call.weights))
        if not self.interventions:
            return given
        return given | replaced_weights(self.interventions, call.kind, call.layer, len(call.query))

    def _calls(self, kind: Kind | None) -> tuple[LayerAttention, ...]:
        return self.layers[self._kind(kind)]


def _rows(matrix: np.ndarray, rows: slice) -> np.ndarray:
    """Some rows of a mask; a single row for all queries is returned as it is."""
    return matrix if matrix.shape[1] == 1 else matrix[:, rows]
