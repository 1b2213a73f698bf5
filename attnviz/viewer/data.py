"""The document that the viewer draws, and the bytes beside it, made of a trace. Its form is that of docs/viewer.md.

numpy and msgspec only; torch is imported by the trace where it computes.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
from jaxtyping import Bool, Float
from msgspec import Struct

from attnviz.figures.heatmap import CellMeasure, Shown
from attnviz.figures.numbers import counted
from attnviz.figures.theme import FONT, THEMES, TOKEN_FONT, Theme, weight_scale
from attnviz.maths import attribution
from attnviz.model.head_attention import score_inputs
from attnviz.model.words import has_words
from attnviz.records import OF_LAYER, AttentionPattern, Axis, Kind, Tokens, resting_places
from attnviz.viewer.codes import coded
from attnviz.viewer.tiles import Tiling, tiling

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

VERSION = 1
"""The version of the document."""
MOST_BYTES = 1_250_000
"""Most bytes of cells that are sent for all heads at once: 64 tokens of 152 heads, 48 of 271."""
Place = tuple[int, int]
"""Layer and head."""


class Side(Struct, frozen=True, rename="camel"):
    """The tokens of queries or of keys."""

    labels: tuple[str, ...]
    special: tuple[int, ...]
    """Positions of special tokens."""
    joined: tuple[int, ...]
    """Positions of tokens that go on with the word of the one before."""
    resting: tuple[int, ...]
    """As keys, `attnviz.records.resting_places`."""
    segment: tuple[int, ...]
    """0 or 1 for each token, by its text."""
    words: tuple[tuple[int, int, str], ...] | None
    """The first token of each word, the one after its last, and its label; None where nothing tells which tokens make one."""
    cut: dict[int, str]
    """What stands after the last token of a text that was cut, by its position."""
    was: dict[int, str]
    """What a masked token replaces, by its position."""
    pictures: tuple[str, ...]
    """What each token looks like, as a data URL; empty for text."""


class Cells(Struct, frozen=True, rename="camel"):
    """How bytes become numbers: see `attnviz.viewer.codes.Scale`."""

    measure: CellMeasure
    lowest: float
    highest: float
    zero: int
    power: int
    root: float
    low: int
    ratio: float
    error: float
    """The largest difference from the model's number."""
    heads: Literal["all"] | tuple[Place, ...]
    """The heads that are there, in their order."""
    per_layer: bool = False
    """Whether there is one matrix for all heads of a layer: rollout, ALTI, value zeroing."""


class Look(Struct, frozen=True, rename="camel"):
    """The colours of a theme, by their names there, and those of a weight from 0 to 1."""

    colours: dict[str, str]
    scale: tuple[tuple[float, str], ...]


class Looks(Struct, frozen=True, rename="camel"):
    """Both themes."""

    light: Look
    dark: Look


class StageData(Struct, frozen=True, rename="camel"):
    """What the viewer draws of one text and kind of attention."""

    version: int
    text: str
    """Names the text, model and kind; another name means that nothing kept from before belongs to it."""
    model: str
    kind: Kind
    counts: tuple[int, ...]
    """Number of heads of each layer."""
    queries: Side
    keys: Side | None
    """None where both are the same tokens."""
    cells: Cells
    measures: tuple[CellMeasure, ...]
    """What cells can hold."""
    tiling: Tiling | None
    """Of a long text, whose matrices come in tiles; None where `cells` hold them."""
    names: tuple[tuple[str, ...], ...]
    """What is known of each head of each layer, in words."""
    mask_label: str | None
    """The mask token as text; None where tokens cannot be masked."""
    special_means: str
    """What a special token is, in words; empty where this is not said."""
    looks: Looks
    font: str
    token_font: str

    def written(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self)


def stage_data(
    trace: "Trace",
    kind: Kind | None = None,
    *,
    measure: Shown = "weights",
    heads: Sequence[Place] | None = None,
    names: Sequence[Sequence[str]] | None = None,
    mask_label: str | None = None,
    special_means: str = "",
    text: str = "",
    layers: Sequence[Float[np.ndarray, "head query key"]] | None = None,
) -> tuple[StageData, bytes]:
    """The document of a trace, and the bytes of its cells: of all heads where they fit in `MOST_BYTES`, of none of a long text.

    Args:
        heads: those whose cells are sent where not all fit; the first one by default.
        names: what is known of each head of each layer, in words.
        mask_label: the mask token as text; None where tokens cannot be masked.
        special_means: what a special token is, in words.
        text: names the text, model and kind; by default made of what the document holds.
        layers: what `numbers_of_layers` gives, where it is known; computed otherwise.

    Raises:
        SelectionError: the trace has no such kind, measure or head.
    """
    kind = trace.kinds[0] if kind is None else kind
    queries, keys = trace.query_tokens(kind), trace.key_tokens(kind)
    counts = tuple(trace.n_heads(layer, kind) for layer in range(trace.n_layers(kind)))
    cells, cell_bytes = measure_bytes(trace, kind, measure, heads=heads, layers=layers)
    tiles = tiling(trace, kind) if trace.is_long(kind) else None
    data = StageData(
        version=VERSION,
        text=text,
        model=trace.provenance.model,
        kind=kind,
        counts=counts,
        queries=_side(queries, kind),
        keys=None if keys is queries else _side(keys, kind),
        cells=cells,
        measures=measures(trace, kind),
        tiling=tiles,
        names=tuple(("",) * count for count in counts) if names is None else tuple(map(tuple, names)),
        mask_label=mask_label,
        special_means=special_means,
        looks=Looks(light=_look(THEMES["light"]), dark=_look(THEMES["dark"])),
        font=FONT,
        token_font=TOKEN_FONT,
    )
    if not text:
        name = sha256(data.written() + cell_bytes).hexdigest()[:16]
        data = msgspec.structs.replace(data, text=name)
    return data, cell_bytes


def measures(trace: "Trace", kind: Kind) -> tuple[Shown, ...]:
    """What the cells of a trace can hold; scores come after the weights, which they are the softmax's input of."""
    first, *others = trace.measures(kind)
    if trace.is_long(kind):  # rollout takes whole matrices
        others = [measure for measure in others if measure != "rollout"]
    return (first, "scores", *others) if trace.layers[kind][0].query.shape[2] else (first, *others)


def measure_bytes(
    trace: "Trace",
    kind: Kind,
    measure: Shown,
    *,
    heads: Sequence[Place] | None = None,
    layers: Sequence[Float[np.ndarray, "head query key"]] | None = None,
) -> tuple[Cells, bytes]:
    """The cells of all heads where they fit in `MOST_BYTES`, which answers ``ask("measure")``.

    Args:
        heads: those that are sent where not all fit; the first one by default.

    Raises:
        SelectionError: the trace has no such kind, measure or head.
    """
    if trace.is_long(kind):
        n_row, n_column = len(trace.query_tokens(kind)), len(trace.key_tokens(kind))
        return _written(np.empty((0, n_row, n_column), dtype=np.float32), measure, ())
    if fits(trace, kind, measure):
        return _written(np.concatenate(layers or numbers_of_layers(trace, kind, measure)), measure, "all")
    places = tuple((int(layer), int(head)) for layer, head in (heads or ((0, 0),)))
    return _written(np.stack([_head(trace, kind, *place, measure) for place in places]), measure, places)


def head_bytes(trace: "Trace", kind: Kind, layer: int, head: int, measure: Shown) -> tuple[Cells, bytes]:
    """The cells of one head, which answers ``ask("head")``; of its layer where they are the same for all heads.

    Raises:
        SelectionError: the trace has no such kind, measure or head.
    """
    return _written(_head(trace, kind, layer, head, measure)[None], measure, ((layer, head),))


def layer_bytes(pattern: AttentionPattern) -> tuple[Cells, bytes]:
    """The cells of one layer in a measure that takes the model, `attnviz.records.MIXINGS`, which answers ``ask("head")``."""
    numbers = np.where(pattern.allowed, pattern.weights, np.float32(np.nan))
    return _written(numbers[None], pattern.measure, ((pattern.layer, 0),))


def _written(
    numbers: Float[np.ndarray, "head query key"],
    measure: CellMeasure,
    heads: Literal["all"] | tuple[Place, ...],
) -> tuple[Cells, bytes]:
    found = coded(numbers, is_share=measure not in ("scores", "norms"))
    scale = found.scale
    cells = Cells(
        measure=measure,
        lowest=scale.lowest,
        highest=scale.highest,
        zero=scale.zero,
        power=scale.power,
        root=scale.root,
        low=scale.low,
        ratio=scale.ratio,
        error=found.error,
        heads=heads,
        per_layer=measure in OF_LAYER,
    )
    return cells, found.codes.tobytes()


def fits(trace: "Trace", kind: Kind, measure: Shown = "weights") -> bool:
    """Whether the cells of all heads fit in `MOST_BYTES`."""
    n_cells = len(trace.query_tokens(kind)) * len(trace.key_tokens(kind))
    n_matrices = trace.n_layers(kind) if measure == "rollout" else len(trace.heads(kind))
    return 2 * n_cells * n_matrices <= MOST_BYTES


def numbers_of_layers(
    trace: "Trace", kind: Kind, measure: Shown
) -> list[Float[np.ndarray, "head query key"]]:
    """The numbers of all heads of each layer, of rollout one matrix each; NaN or infinite where a query may not see a key."""
    calls = [trace.attention(layer, kind) for layer in range(trace.n_layers(kind))]
    if measure == "scores":  # all heads at once, as their weights are
        from attnviz.maths.attention import attention_scores  # torch is slow to import

        return [attention_scores(**score_inputs(call)).numpy() for call in calls]
    if measure == "rollout":
        trace.rollout(0, kind)  # refuses what has none
        means = [trace.layer_weights(layer, kind).mean(axis=0) for layer in range(len(calls))]
        layers = [attribution.rollout(means[: layer + 1])[None] for layer in range(len(calls))]
        seen = [None if call.allowed is None else call.allowed.any(axis=0) for call in calls]
    else:
        layers = [trace.layer_weights(layer, kind, measure=measure) for layer in range(len(calls))]
        seen = [call.allowed for call in calls]
    return [
        of_layer if allowed is None else np.where(allowed, of_layer, np.float32(np.nan))
        for of_layer, allowed in zip(layers, seen, strict=True)
    ]


def _head(
    trace: "Trace", kind: Kind, layer: int, head: int, measure: Shown
) -> Float[np.ndarray, "query key"]:
    """The numbers of one head, NaN where a query may not see a key."""
    pattern = trace.pattern(layer, head, kind, measure="weights" if measure == "scores" else measure)
    numbers = pattern.scores if measure == "scores" else pattern.weights
    assert numbers is not None  # of one head there are scores
    return np.where(pattern.allowed, numbers, np.float32(np.nan))


def _side(tokens: Tokens, kind: Kind) -> Side:
    return Side(
        labels=tokens.labels,
        special=_positions(tokens.is_special),
        joined=_positions(tokens.continues_word),
        resting=_positions(resting_places(Axis.of(tokens), kind)),
        segment=tuple(tokens.segment.tolist()),
        words=_words(Axis.of(tokens, "words")) if has_words(tokens) else None,
        cut=cut_marks(tokens),
        was=dict(tokens.masked),
        pictures=tuple(f"data:image/png;base64,{b64encode(png).decode()}" for png in tokens.pictures),
    )


def _words(axis: Axis) -> tuple[tuple[int, int, str], ...]:
    spans = zip(axis.spans.tolist(), axis.labels, strict=True)
    return tuple((first, stop, label) for (first, stop), label in spans)


def cut_marks(tokens: Tokens) -> dict[int, str]:
    """The marks after the last token of each text that was cut, by the token's position."""
    marks = {}
    left_out = zip_longest(tokens.n_cut, tokens.n_unread, fillvalue=0)
    for segment, (n_cut, n_unread) in enumerate(left_out):
        of_segment = np.flatnonzero((tokens.segment == segment) & ~tokens.is_added)
        units = (n_cut, "more token"), (n_unread, "more character")
        if len(of_segment) and (named := " and ".join(counted(n, unit) for n, unit in units if n)):
            marks[int(of_segment[-1])] = f"cut here: {named} not read"
    return marks


def _positions(marked: Bool[np.ndarray, " token"]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(marked).tolist())


def _look(theme: Theme) -> Look:
    colours = {name: value for name in theme.__slots__ if isinstance(value := getattr(theme, name), str)}
    return Look(colours=colours, scale=tuple(weight_scale(theme)))
