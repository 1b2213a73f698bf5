"""The form of a bundle's provenance.json: the type, range and number of its values.

Whether values agree with each other is checked by `attnviz.bundle.reading`.
"""

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta, Struct

from attnviz.bundle.bounds import LARGEST_NUMBER, MOST_TOKENS
from attnviz.bundle.changes import Changes, Count
from attnviz.bundle.refusal import DAMAGED, require
from attnviz.bundle.writing import FORMAT, PROVENANCE, READABLE
from attnviz.errors import BundleError
from attnviz.figures.heatmap import Shown
from attnviz.figures.theme import Colour, ThemeName
from attnviz.model.tokenization import CHARACTER_LIMIT
from attnviz.model.tolerances import UNITS
from attnviz.records import Kind, TextForm

Words = Annotated[str, Meta(max_length=1000)]
LongText = Annotated[str, Meta(max_length=CHARACTER_LIMIT)]
Named = Annotated[dict[Words, Words], Meta(max_length=64)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Number = Annotated[float, Meta(ge=0, le=float(np.finfo(np.float32).max))]
Table = dict[Kind, list[list[Number | None]]]
"""By kind of attention, a number for every layer and head; null where there is none."""
Span = Annotated[list[Count], Meta(min_length=2, max_length=2)]


class Source(Struct, frozen=True):
    """The model, its weights and the libraries that the numbers come from."""

    name: Words
    revision: Words
    dtype: Words
    weights_sha256: Annotated[dict[Words, Digest], Meta(max_length=64)]
    versions: Named


class View(Struct, frozen=True):
    """What was on screen."""

    kind: Kind
    layer: Count
    head: Count
    queries: Annotated[list[Span], Meta(min_length=1)]
    keys: Annotated[list[Span], Meta(min_length=1)]
    renormalised: bool
    query: Count
    key: Count
    show: Shown
    colour: Colour
    theme: ThemeName
    settings: Annotated[dict[Words, LongText], Meta(max_length=64)]
    page: Words = ""


class RecordedCheck(Struct, frozen=True):
    """A comparison with the model, as recorded."""

    name: Words
    unit: Words
    reason: Words
    differences: Table
    tolerances: Table


class Verdict(Struct, frozen=True):
    """All comparisons, as recorded."""

    passed: bool
    checks: Annotated[list[RecordedCheck], Meta(max_length=len(UNITS))]
    not_compared: Named


class TokensPart(Struct, frozen=True):
    """A text and its tokens."""

    text: LongText
    text_pair: LongText | None
    ids: Annotated[list[Count], Meta(min_length=1, max_length=MOST_TOKENS)]
    labels: list[Words]
    is_special: list[bool]
    segment: list[Annotated[int, Meta(ge=0, le=1)]]
    word: list[Annotated[int, Meta(ge=-1, le=np.iinfo(np.int64).max)]]
    unknown_id: Count | None
    """Id of the unknown token, in bundles that do not list the positions where it stands for unknown text."""
    n_cut: Annotated[list[Count], Meta(max_length=2)]
    masked: Annotated[dict[Count, Words], Meta(max_length=MOST_TOKENS)]
    """Position and label of each token that the mask token replaces."""
    pieces: list[Words] = []
    unknown: Annotated[list[Count], Meta(max_length=MOST_TOKENS)] | None = None
    language: Words | None = None
    template: TextForm = "plain"
    n_unread: Annotated[list[Count], Meta(max_length=2)] = []
    in_text: Annotated[list[Count], Meta(max_length=MOST_TOKENS)] = []
    """Positions of special tokens that are written in the text, or by its template."""


class AttentionPart(Struct, frozen=True):
    """For each layer, its scale, the numbers of its mask and bias among the arrays, and its softcap."""

    scale: list[Annotated[float, Meta(ge=0, le=LARGEST_NUMBER)]]
    allowed: list[Count | None]
    bias: list[Count | None]
    softcap: list[Annotated[float, Meta(gt=0, le=LARGEST_NUMBER)] | None] = []
    """Empty where no layer has a softcap."""


class Document(Struct, frozen=True):
    """Everything in a bundle except its arrays."""

    model: Source
    view: View
    verification: Verdict
    tokens: TokensPart
    target_tokens: TokensPart | None
    attention: dict[Kind, AttentionPart]
    interventions: Changes = ()


class _Head(Struct, frozen=True):
    format: str
    version: object = None


def is_provenance(content: bytes) -> bool:
    """Whether this is the provenance of a bundle of any version."""
    try:
        return msgspec.json.decode(content, type=_Head).format == FORMAT
    except (msgspec.MsgspecError, RecursionError):
        return False


def read_document(content: bytes) -> Document:
    """The provenance.json of a bundle.

    Raises:
        BundleError: the JSON is of another kind or version, or has an invalid value; the message says where.
    """
    require(is_provenance(content), f"its {PROVENANCE} is not that of a bundle.")
    version = msgspec.json.decode(content, type=_Head).version
    if version not in READABLE or isinstance(version, bool | float):
        raise BundleError(
            f"This bundle has version {str(version)[:20]} of the format; this attnviz reads versions {_listed(READABLE)}. "
            "Open it with the version of attnviz that wrote it."
        )
    try:
        return msgspec.json.decode(content, type=Document)
    except msgspec.MsgspecError as error:
        reason = f"its {PROVENANCE} is not valid: {error}."
        raise BundleError(DAMAGED.format(reason)) from error


def _listed(versions: tuple[int, ...]) -> str:
    *first, last = versions
    return f"{', '.join(map(str, first))} and {last}"
