"""What the viewer shows of one cell when it is opened: the way from two vectors to a weight, and on to the head's output.

numpy and msgspec; torch only through the trace.
"""

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from attnviz.arguments import typed
from attnviz.figures.labels import isolated, label_at, shortened
from attnviz.figures.numbers import counted, number_text, share_text
from attnviz.heads.query_path import QueryPath, query_path
from attnviz.heads.score import Score, score_of
from attnviz.records import Head, Kind

if TYPE_CHECKING:
    from attnviz.model.trace import Trace

MOST_CELLS = 64
"""Most cells in a strip: 4 px each on a phone."""
MOST_KEYS = 12
"""Most keys of the row that are listed; the others are summed."""
_LONGEST_LABEL = 14
_LONGEST_QUOTED = 24
_SAME = 1e-4
"""Largest difference, as a share of the largest number, between what is computed from scores and what the model used."""


class Strip(Struct, frozen=True, rename="camel"):
    """A vector as cells, each with one of its dimensions."""

    name: str
    label: str
    """Of the token that it belongs to; empty where it belongs to both."""
    heights: list[float]
    """From -1 to 1, where 1 is the largest number that is drawn to the same scale."""
    texts: list[str]


class Strips(Struct, frozen=True, rename="camel"):
    """Vectors below each other, the same dimension in the same column."""

    size: int
    """Number of dimensions."""
    dimensions: list[int]
    """The dimension that each cell shows: of several neighbours the one with the largest number in the last strip."""
    strips: list[Strip]


class Piece(Struct, frozen=True, rename="camel"):
    """A number in an equation, with the sign before it and its name."""

    sign: str
    text: str
    name: str


class Row(Struct, frozen=True, rename="camel"):
    """One key of the query's row, or all keys that are not listed."""

    label: str
    is_special: bool
    is_picked: bool
    score: float | None
    """None where the key is masked, and for several keys."""
    score_text: str
    exponential: float
    exponential_text: str
    weight: float
    weight_text: str


class Caption(Struct, frozen=True, rename="camel"):
    """A step's name and what it does."""

    name: str
    text: str


class PairData(Struct, frozen=True, rename="camel"):
    """One query and one key in one head, in the order in which their numbers come about."""

    name: str
    """Of the whole picture."""
    place: str
    query: int
    key: int
    is_masked: bool
    products: Strips
    """Query, key and their products."""
    largest: int
    """The cell with the largest product."""
    score: list[Piece]
    """From the sum of the products to the score."""
    rows: list[Row]
    exponentials: str
    """Sum of all exponentials."""
    total: str
    """Sum of all weights."""
    softmax: list[Piece]
    """From the exponential to the weight; empty where the weight does not come from the score."""
    weight: str
    """As the matrix and the ranking write it."""
    weight_share: str
    """As the headline writes it."""
    values: Strips
    """The value and the value times the weight, to one scale, and the head's output for the query."""
    part: list[float]
    """Heights of the weighted value where it is drawn to the output's scale, as a part of it."""
    output_share: str
    """What the weighted value adds along the output's direction, as a share of the output; empty where that has none."""
    captions: list[Caption]
    """Of the vectors, the products, the score, the row, the weight, the value, and the output."""


@typed
def pair_data(trace: "Trace", layer: int, head: int, query: int, key: int, *, kind: Kind | None) -> PairData:
    """The way from one query and one key to their weight, and to what it adds to the head's output.

    Args:
        query, key: positions of tokens.
        kind: of attention; None for the trace's first.

    Raises:
        SelectionError: no such layer, head, kind, query or key.
    """
    score = score_of(trace, layer, head, query, key, kind=kind)
    path = query_path(trace, query, layer, head, kind)
    queries, keys = trace.query_tokens(kind).labels, trace.key_tokens(kind).labels
    names = _quoted(queries[query]), _quoted(keys[key])
    labels = _label(queries[query], query), _label(keys[key], key)
    place = Head(layer, head).words
    products = _products(score, labels)
    largest = int(np.argmax(np.abs(products.strips[-1].heights)))
    exponentials = path.exponentials
    from_score = _is_softmax(path)
    is_masked = not np.isfinite(path.scores[key])
    output_share = _output_share(path, key)
    values, part = _values(path, key, labels)
    return PairData(
        name=f"{names[0]} may not see {names[1]} in {place}"
        if is_masked
        else f"How {names[0]} comes to give {names[1]} {share_text(float(path.weights[key]))} of its attention in {place}",
        place=place,
        query=query,
        key=key,
        is_masked=is_masked,
        products=products,
        largest=largest,
        score=_score_pieces(path, score, key),
        rows=_rows(trace, path, key, kind),
        exponentials=number_text(float(exponentials.sum())),
        total=number_text(float(path.weights.sum(dtype=np.float64))),
        softmax=[
            Piece(sign="", text=number_text(float(exponentials[key])), name=f"of {shortened(labels[1])}"),
            Piece(sign="÷", text=number_text(float(exponentials.sum())), name="sum of all"),
        ]
        if from_score and not is_masked
        else [],
        weight=number_text(float(path.weights[key])),
        weight_share=share_text(float(path.weights[key])),
        values=values,
        part=part,
        output_share=output_share,
        captions=_captions(path, key, names, products, largest, output_share),
    )


def pair_json(data: PairData) -> bytes:
    """The document that the viewer gets."""
    return msgspec.json.encode(data)


def _products(score: Score, labels: tuple[str, str]) -> Strips:
    """Query, key and products: each cell has the dimension whose product is the largest of its neighbours'."""
    products = score.query.astype(np.float64) * score.key
    shown = _largest_dimensions(products)
    vectors = ("query", labels[0], score.query), ("key", labels[1], score.key), ("product", "", products)
    return Strips(
        size=len(products),
        dimensions=shown.tolist(),
        strips=[_strip(name, label, vector[shown], _largest(vector)) for name, label, vector in vectors],
    )


def _values(path: QueryPath, key: int, labels: tuple[str, str]) -> tuple[Strips, list[float]]:
    """The value, which the weight is seen to shorten, and the output; the weighted value again as a part of the output."""
    value = path.value[key].astype(np.float64)
    weighted = value * path.weights[key]
    shown = _largest_dimensions(path.output)
    own, common = _largest(value), max(_largest(path.output), _largest(weighted))
    strips = [
        _strip("value", labels[1], value[shown], own),
        _strip("weighted value", labels[1], weighted[shown], own),
        _strip("output", labels[0], path.output[shown], common),
    ]
    return Strips(size=len(value), dimensions=shown.tolist(), strips=strips), _heights(
        weighted[shown], common
    )


def _strip(name: str, label: str, cells: Float[np.ndarray, " cell"], span: float) -> Strip:
    return Strip(
        name=name,
        label=label,
        heights=_heights(cells, span),
        texts=[number_text(float(cell)) for cell in cells],
    )


def _heights(cells: Float[np.ndarray, " cell"], span: float) -> list[float]:
    return list(np.round(cells.astype(np.float64) / span, 4).tolist())


def _largest(vector: Float[np.ndarray, " dimension"]) -> float:
    return float(np.abs(vector).max(initial=0.0)) or 1.0


def _largest_dimensions(vector: Float[np.ndarray, " dimension"]) -> Int[np.ndarray, " cell"]:
    """Of every few neighbouring dimensions the one farthest from 0, for at most `MOST_CELLS` cells."""
    block = -(-len(vector) // MOST_CELLS)
    starts = np.arange(0, len(vector), block)
    return np.array([start + np.argmax(np.abs(vector[start : start + block])) for start in starts], dtype=int)


def _score_pieces(path: QueryPath, score: Score, key: int) -> list[Piece]:
    """The sum of the products, what the model does to it, and the score; of a masked pair what it would be."""
    product = float(path.products[key])
    pieces = [Piece(sign="", text=number_text(product), name="sum")]
    if path.divides_by_root:
        size = len(path.query)
        pieces.append(Piece(sign="÷", text=number_text(size**0.5), name=f"√{size}"))
    elif path.scale != 1:
        pieces.append(Piece(sign="×", text=number_text(path.scale), name="scale"))
    if path.softcap is not None:
        pieces.append(
            Piece(sign="→", text=number_text(score.value - score.bias), name=f"softcap {path.softcap:g}")
        )
    if path.bias is not None and np.isfinite(score.bias):
        below = score.bias < 0
        pieces.append(Piece(sign="−" if below else "+", text=number_text(abs(score.bias)), name="bias"))
    if np.isfinite(path.scores[key]):
        return [*pieces, Piece(sign="=", text=number_text(float(path.scores[key])), name="score")]
    unmasked = score.value if np.isfinite(score.bias) else product * path.scale
    return [*pieces, Piece(sign="=", text=number_text(unmasked), name="not used")]


def _rows(trace: "Trace", path: QueryPath, key: int, kind: Kind | None) -> list[Row]:
    """The keys in the order of the text: all, or the strongest and the selected one, and the sum of the others."""
    tokens = trace.key_tokens(kind)
    exponentials = path.exponentials
    shown = _listed(path.weights, key)
    rows = []
    for at in shown:
        score = float(path.scores[at])
        is_seen = bool(np.isfinite(score))
        rows.append(
            Row(
                label=_label(tokens.labels[at], at),
                is_special=bool(tokens.is_special[at]),
                is_picked=at == key,
                score=_rounded(score) if is_seen else None,
                score_text=number_text(score) if is_seen else "masked",
                exponential=_rounded(exponentials[at]),
                exponential_text=number_text(float(exponentials[at])),
                weight=_rounded(path.weights[at]),
                weight_text=number_text(float(path.weights[at])),
            )
        )
    n_others = len(path.weights) - len(shown)
    if n_others:
        exponential, weight = float(np.delete(exponentials, shown).sum()), path.others(np.array(shown))[0]
        rows.append(
            Row(
                label=counted(n_others, "other"),
                is_special=True,
                is_picked=False,
                score=None,
                score_text="",
                exponential=_rounded(exponential),
                exponential_text=number_text(exponential),
                weight=_rounded(weight),
                weight_text=number_text(weight),
            )
        )
    return rows


def _listed(weights: Float[np.ndarray, " key"], key: int) -> list[int]:
    """The `MOST_KEYS` strongest keys, always with this one, in the order of the text; earlier ones first if tied."""
    strongest = [int(at) for at in np.argsort(-weights, kind="stable")[:MOST_KEYS]]
    if key not in strongest:
        strongest[-1] = key
    return sorted(strongest)


def _is_softmax(path: QueryPath) -> bool:
    """Whether the weights are the softmax of the scores; not where an intervention replaces them."""
    exponentials = path.exponentials
    return bool(np.allclose(exponentials / (exponentials.sum() or 1.0), path.weights, rtol=0, atol=_SAME))


def _output_share(path: QueryPath, key: int) -> str:
    """The weighted value along the output's direction, as a share of it, so that all keys together are 100%.

    Empty for an output of zeros, and for one that an intervention has changed, of which values are no part.
    """
    output = path.output.astype(np.float64)
    weighted = path.weights.astype(np.float64)[:, None] * path.value  # [key, d_value]
    length = float(output @ output)
    if not length or not np.allclose(weighted.sum(axis=0), output, rtol=0, atol=_SAME * _largest(output)):
        return ""
    return share_text(float(weighted[key] @ output) / length)


def _captions(
    path: QueryPath,
    key: int,
    names: tuple[str, str],
    products: Strips,
    largest: int,
    output_share: str,
) -> list[Caption]:
    """Each step in words for readers who have never heard of attention."""
    query, of_key = names
    size, share = len(path.query), share_text(float(path.weights[key]))
    factors = [strip.texts[largest] for strip in products.strips]
    captions = {
        "Query and key": f"The head makes {size} numbers for each token. The query is what {query} looks for; the key is what "
        f"{of_key} offers.",
        "Products": "Multiplied number by number. Two bars on the same side give a product above 0. The largest: "
        f"{factors[0]} × {factors[1]} = {factors[2]} (dimension {products.dimensions[largest]}).",
        "Score": f"All {size} products are added up{_scaled(path)}. A higher score is a better match.",
        "Softmax": _softmax_caption(path, key, query, of_key),
        "Weight": f"{query} gives {of_key} {share} of its attention.",
        "Value": f"The value is what {of_key} passes on. Each of its {len(path.output)} numbers is multiplied by the weight.",
        "Output": f"The weighted values of all tokens are added up: the head's output for {query}."
        + (f" {of_key} contributes {output_share} of it (filled bars)." if output_share else ""),
    }
    return [Caption(name=name, text=text) for name, text in captions.items()]


def _scaled(path: QueryPath) -> str:
    """What happens to the sum before it is a score."""
    does = []
    if path.divides_by_root:
        does.append(f"divided by √{len(path.query)} to keep scores small")
    elif path.scale != 1:
        does.append("multiplied by the model's scale")
    if path.softcap is not None:
        does.append(f"softcapped to at most {path.softcap:g}")
    if path.bias is not None:
        of = "their distance" if path.bias_is_of_distance else "their distance and contents"
        does.append(f"and a bias for {of} is added")
    return "".join(f", {each}" for each in does)


def _softmax_caption(path: QueryPath, key: int, query: str, of_key: str) -> str:
    if not np.isfinite(path.scores[key]):
        return f"{query} may not see {of_key}: this key is masked, whatever its score, and its weight is 0."
    if not _is_softmax(path):
        return f"The scores of {query} with all tokens. The weights are not their softmax: you replaced them."
    return (
        f"The scores of {query} with all tokens. As powers of e, the highest count far more; divided by their sum, they add "
        "up to 1."
    )


def _rounded(number: float) -> float:
    """Digits enough for the length of a bar."""
    return float(f"{float(number):.5g}")


def _label(label: str, position: int) -> str:
    return label_at(shortened(label, _LONGEST_LABEL), position)


def _quoted(label: str) -> str:
    """A token within a sentence."""
    return f"“{isolated(shortened(label, _LONGEST_QUOTED))}”"
