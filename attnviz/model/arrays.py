"""A Trace of attention that was computed elsewhere: weights, and vectors where there are any, as arrays of any library.

The numbers are kept as they are, and compared with nothing: `attnviz.verify` refuses such a trace.

Source: ``output_attentions`` of transformers 5.23.0, a [batch, head, query, key] for each layer; ``ActivationCache`` of
TransformerLens 3, whose ``blocks.0.attn.hook_pattern`` is the same of layer 0.
"""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from PIL import Image

from attnviz import __version__
from attnviz.arguments import described, typed
from attnviz.errors import ArgumentError, EmptyTextError, ShapeError
from attnviz.model.trace import Trace
from attnviz.records import GIVEN, Kind, LayerAttention, Provenance, Tokens
from attnviz.records.attention import check_weights

_CACHED = re.compile(r"blocks\.(\d+)\.attn\.hook_pattern")
_AXES = {
    "weights": "[head, query, key]",
    "queries": "[head, query, d]",
    "keys": "[head, key, d]",
    "values": "[head, key, d]",
}


@typed
def trace_of(
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
) -> Trace:
    """As `attnviz.Trace.from_arrays`."""
    given = {"weights": weights, "queries": queries, "keys": keys, "values": values}
    layers = {what: _layers(value, what) for what, value in given.items() if value is not None}
    if "weights" not in layers and not {"queries", "keys"} <= layers.keys():
        raise ArgumentError(
            "Trace.from_arrays() was given neither weights nor both queries and keys. Pass weights [layer, head, query, key]."
        )
    if len(counts := {what: len(of) for what, of in layers.items()}) and len(set(counts.values())) > 1:
        told = ", ".join(f"{count} layers of {what}" for what, count in counts.items())
        raise ShapeError(f"Arrays were given for {told}. Pass as many of each.")
    if not len(tokens):
        raise EmptyTextError("No tokens were given. Give a label for each row and column.")
    rows = tokens if isinstance(tokens, Tokens) else Tokens.from_labels(tokens)
    if pictures is not None:
        rows = replace(rows, pictures=tuple(map(_png, pictures)))
    columns = rows
    if key_tokens is not None:
        columns = key_tokens if isinstance(key_tokens, Tokens) else Tokens.from_labels(key_tokens)
    kind = kind or ("cross" if key_tokens is not None else _kind_of(layers.get("weights", [])))
    if (kind == "cross") != (key_tokens is not None):
        raise ArgumentError(
            "Cross-attention has key_tokens of its own, and other attention has none. Pass both, or neither."
        )
    calls = []
    for layer in range(next(iter(counts.values()))):
        arrays = {what: of[layer] for what, of in layers.items()}
        calls.append(_call(layer, kind, arrays, len(rows), len(columns), scale))
    return Trace(
        tokens=columns if kind == "cross" else rows,
        target_tokens=rows if kind == "cross" else None,
        layers={kind: tuple(calls)},
        last_hidden_state=np.zeros((len(rows), 0), dtype=np.float32),
        provenance=Provenance(model=name, revision=GIVEN, dtype="float32", versions={"attnviz": __version__}),
    )


@typed
def show(
    attention: Any,
    tokens: Sequence[str] | Tokens,
    *,
    key_tokens: Sequence[str] | Tokens | None = None,
    pictures: Sequence[Any] | None = None,
    layer: int = 0,
    head: int = 0,
    theme: Literal["light", "dark", "auto"] = "auto",
) -> Any:
    """The stage of weights from elsewhere in a notebook: every head, query and key can be looked at.

    Args:
        attention: what a model of transformers gives with ``output_attentions=True``, all outputs or ``attentions`` of them: a
            [1, head, query, key] for each layer; an ``ActivationCache`` of TransformerLens; or an array [layer, head, query, key],
            [head, query, key] or [query, key] of torch, jax or numpy.
        tokens, key_tokens, pictures: as for `attnviz.Trace.from_arrays`, which raises the same.
        layer, head: what is selected first.
        theme: as for `attnviz.Trace.show`.
    """
    trace = Trace.from_arrays(tokens, weights=_held(attention), key_tokens=key_tokens, pictures=pictures)
    return trace.show(layer, head, theme=theme)


def _held(attention: Any) -> Any:
    """The weights of each layer in what people hold: an ``ActivationCache``, or the outputs of a model of transformers.

    Raises:
        ArgumentError: outputs without attention.
    """
    if isinstance(attention, Mapping) or hasattr(attention, "keys"):
        layers = {int(match[1]): name for name in attention.keys() if (match := _CACHED.fullmatch(str(name)))}  # noqa: SIM118  (a cache iterates over names too, but is no Mapping)
        if layers:
            return [attention[layers[layer]] for layer in sorted(layers)]
        held = attention["attentions"] if "attentions" in attention else None  # noqa: SIM401  (a cache has no get)
        if held is not None:
            return held
        raise ArgumentError(
            "These outputs hold no attention. Run the model with output_attentions=True and its eager attention, or wrap it: "
            "attnviz.wrap(model, tokenizer)."
        )
    return attention


def _png(picture: Any) -> bytes:
    """A picture of Pillow, or an array [height, width] or [height, width, 3] of 0 to 255, or 0 to 1 if they are no whole numbers."""
    if not isinstance(picture, Image.Image):
        array = np.asarray(picture)
        is_picture = array.size and (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3))
        if (
            not is_picture
            or array.dtype.kind not in "uif"
            or (array.dtype.kind != "f" and not 0 <= array.min() <= array.max() < 256)
        ):
            raise ArgumentError(
                f"A picture was given as {described(picture)}; it is one of Pillow, or an array [height, width, 3] of 0 to 255 or of 0 to 1. Pass one for each token."
            )
        if array.dtype.kind == "f":
            array = np.rint(np.clip(array, 0, 1) * 255)
        picture = Image.fromarray(array.astype(np.uint8))
    written = io.BytesIO()
    (picture if picture.mode in ("L", "RGB", "RGBA") else picture.convert("RGB")).save(written, format="PNG")
    return written.getvalue()


def _layers(given: Any, what: str) -> list[np.ndarray]:
    """An array [head, ., .] for each layer."""
    if isinstance(given, list | tuple) and given and hasattr(given[0], "shape"):
        arrays = [_array(each, what) for each in given]
    else:
        array = _array(given, what)
        if array.ndim == 2:
            array = array[None]
        arrays = [array] if array.ndim in (0, 1, 3) else list(array)
    return [_of_one_text(array, what) for array in arrays]


def _of_one_text(array: np.ndarray, what: str) -> np.ndarray:
    if array.ndim == 4 and len(array) == 1:
        array = array[0]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or 0 in array.shape[:2]:
        many = (
            f"a batch of {len(array)} texts"
            if array.ndim == 4
            else f"{array.ndim} axes with {array.size:,} numbers"
        )
        raise ShapeError(
            f"The {what} of a layer have the shape {list(array.shape)}, {many}; they are {_AXES[what]} of one text. Pass one, as in "
            f"[layer[0] for layer in {what}]."
        )
    return array


def _array(given: Any, what: str) -> np.ndarray:
    """An array of torch, jax or numpy as float32 on the CPU."""
    try:
        plain = given.detach().cpu().float().numpy() if hasattr(given, "detach") else np.asarray(given)
        array = np.array(plain, dtype=np.float32)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"The {what} were given as {described(given)}; they are arrays of numbers. Pass those."
        ) from None
    if not np.isfinite(array).all():
        raise ShapeError(
            f"The {what} hold NaN or infinity in {int((~np.isfinite(array)).sum()):,} of {array.size:,} numbers."
        )
    return array


def _kind_of(layers: Sequence[np.ndarray]) -> Kind:
    """A decoder's where no query has weight on a key after it."""
    is_causal = bool(layers) and layers[0].shape[1] > 1 and not any(np.triu(of, 1).any() for of in layers)
    return "decoder" if is_causal else "encoder"


def _call(
    layer: int, kind: Kind, arrays: Mapping[str, np.ndarray], n_query: int, n_key: int, scale: float | None
) -> LayerAttention:
    first = next(iter(arrays.values()))
    sizes = {"weights": (n_query, n_key), "queries": (n_query,), "keys": (n_key,), "values": (n_key,)}
    for what, array in arrays.items():
        if array.shape[1 : 1 + len(sizes[what])] != sizes[what]:
            raise ShapeError(
                f"The {what} of layer {layer} are {' x '.join(map(str, array.shape))}, {_AXES[what]}, for {n_query} tokens"
                f"{'' if n_key == n_query else f' and {n_key} key_tokens'}. Pass a row for each token."
            )
    weights = arrays.get("weights")
    if weights is not None:
        check_weights(weights, f"layer {layer}")

    def vectors(what: str, n_token: int) -> Float[np.ndarray, "head token d"]:
        return arrays.get(what, np.zeros((len(first), n_token, 0), dtype=np.float32))

    query, key = vectors("queries", n_query), vectors("keys", n_key)
    if "queries" not in arrays or "keys" not in arrays:  # one alone gives no scores
        query, key = query[..., :0], np.zeros((len(key), n_key, 0), dtype=np.float32)
    allowed = np.tril(np.ones((1, n_query, n_key), dtype=bool)) if kind == "decoder" else None
    if allowed is not None and weights is not None and (weights * ~allowed).any():
        raise ShapeError(
            f"Weights of a decoder were given, and layer {layer} has weight on keys after their query. Leave kind out, or correct them."
        )
    return LayerAttention(
        kind=kind,
        layer=layer,
        query=query,
        key=key,
        value=arrays["values"] if "values" in arrays else np.zeros((len(key), n_key, 0), dtype=np.float32),
        scale=scale if scale is not None else max(query.shape[-1], 1) ** -0.5,
        allowed=allowed,
        weights=weights,
    )
