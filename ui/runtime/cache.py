"""attnviz's calls, cached: all visitors with the same text share one trace.

Arguments are plain values. Results are read-only records, shared and not copied.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from attnviz.bundle.comparison import compare_bundle
from attnviz.corpus.contexts import Contexts
from attnviz.corpus.contexts import contexts as contexts_of
from attnviz.cost.streaming import Stream, stream_head
from attnviz.effects.context_mixing import MOST_MIXED, ContextMixing, alti, available_mixings, value_zeroing
from attnviz.effects.masks import MaskName, make_mask
from attnviz.errors import AttnvizError, ModelNotAvailableError, TextTooLongError, VerificationError
from attnviz.heads import claims as measurements
from attnviz.heads import reach as reach_of
from attnviz.heads.claims import Claims
from attnviz.heads.reach import Reach
from attnviz.lessons.history import Step, scoring_variants
from attnviz.lessons.order import Shuffle, shuffle
from attnviz.lessons.scaling import Sharpness, sharpness
from attnviz.lessons.scaling import random_products as draw_products
from attnviz.maps.projection import DEFAULTS, place, with_tokens
from attnviz.model import anatomy as anatomies
from attnviz.model import loading as models
from attnviz.model import verification
from attnviz.model.anatomy import LayerAnatomy
from attnviz.model.answers import Predictions, predict
from attnviz.model.catalogue import locate, offer
from attnviz.model.interventions import MaskedKeys
from attnviz.model.languages import Languages
from attnviz.model.model import Model
from attnviz.model.tokenization import with_masks
from attnviz.model.trace import Trace
from attnviz.records import (
    LONG,
    AttentionPattern,
    Kind,
    Measure,
    Mixing,
    Projection,
    Template,
    VerificationReport,
)
from ui.limits import CHARACTERS, MODELS_MB, TOKENS
from ui.runtime import events, long_texts, with_model
from ui.runtime.jobs import TELLS_PROGRESS, Job, elsewhere, job
from ui.runtime.memory import n_bytes
from ui.runtime.remembered import MODELS, NUMBERS
from ui.runtime.source import Source
from ui.runtime.uploads import opened, recorded
from ui.runtime.with_model import verify
from ui.streamlit_fixes.sessions import session_id

MOST_WEIGHTS = 10_000_000
"""Most attention weights, over all heads, that a page processes itself, which takes half a second; a text of 400 tokens
has as many in the bundled model."""
MOST_PRODUCTS = 5e9
"""Most products of a parameter and a token in the runs of a layer that a page waits for, which take half a second on two cores."""
RANDOM_ROWS = 64
"""Rows of random products whose mean is drawn."""


Result = TypeVar("Result")


def _spinner(text: str) -> AbstractContextManager[None]:
    """A spinner on a page; nothing outside a page's run."""
    return st.spinner(text, show_time=True) if session_id() else nullcontext()


@MODELS.remembers(lambda: _spinner("Loading the model …"))
def model(name: str) -> Model:
    """The model of this name on offer; a path is not a name.

    Raises:
        ModelNotAvailableError: the model is not on offer or not on this disk, or takes more memory than the operator allows.
    """
    since = time.monotonic()
    loaded = models.load_model(offer(name).name, is_mapped=False)
    if (size := n_bytes(loaded)) > MODELS.most_bytes:
        raise ModelNotAvailableError(
            f"{name} takes {size / 1e6:,.0f} MB of memory; this server allows {MODELS_MB:,} (ATTNVIZ_MODELS_MB). "
            "Select a smaller model."
        )
    events.model_loaded(name, size, time.monotonic() - since)
    return loaded


def mask_label(source: Source) -> str | None:
    """The model's mask token as text; None where it has none, or a bundle's model is not here."""
    bundle = opened(source.bundle)
    if bundle is not None and (
        bundle.trace.provenance.model != source.model or locate(offer(source.model)) is None
    ):
        return None
    return model(source.model).mask_label


def fills_blanks(source: Source) -> bool:
    """Whether the model reads [MASK] as its mask token, and has a language head that fills it in."""
    return mask_label(source) == "[MASK]" and model(source.model).language_head is not None


def reads(source: Source) -> int | None:
    """Most tokens that are read of a text, here and by the model; None for a bundle."""
    return None if source.bundle else min(TOKENS, model(source.model).max_tokens or TOKENS)


def trace(source: Source) -> Trace:
    """Trace of a text; of a long one, of as many layers as the source names.

    Raises:
        StillReadError: the text is long, and those layers are not there.
    """
    if source.bundle:
        return recorded(source.bundle).trace
    if not is_long(source):
        return _computed_trace(source)
    if (there := long_texts.trace(source, tokens(source))) is None:
        raise StillReadError(
            f"This text of {len(tokens(source)[0]):,} tokens is still being read. Wait until it is, or take a shorter one.",
            source,
        )
    return there


class StillReadError(AttnvizError):
    """The numbers of a long text are not there yet."""

    def __init__(self, message: str, source: Source) -> None:
        super().__init__(message)
        self.source = source


def is_long(source: Source) -> bool:
    """Whether a text is read by the process for long texts, and kept on disk."""
    return not source.bundle and n_token(source) > LONG


@NUMBERS.remembers()
def n_token(source: Source) -> int:
    """Tokens of a text; of the longer one where a decoder reads one, too."""
    return max(len(read) for read in tokens(source) if read is not None)


def tokens(source: Source) -> long_texts.Read:
    """The tokens of a text, and those that the model's decoder reads."""
    if source.bundle:
        of_bundle = recorded(source.bundle).trace
        return of_bundle.tokens, of_bundle.target_tokens
    return _tokens(replace(source, layers=0) if source.layers else source)


@NUMBERS.remembers()
def _tokens(source: Source) -> long_texts.Read:
    if (longest := max(len(source.text), len(source.second))) > CHARACTERS and not source.cut:
        raise TextTooLongError(
            f"The text is {longest:,} characters long; attnviz takes at most {CHARACTERS:,}. Paste a shorter passage.",
            length=longest,
            limit=CHARACTERS,
            unit="characters",
        )
    reader = model(source.model)
    first, target = reader.read(
        source.text,
        source.second if source.second.strip() else None,
        cut=source.cut,
        max_tokens=TOKENS,
        source_language=source.source_language or None,
        target_language=source.target_language or None,
        template=source.template,
    )
    if source.masked:
        first = with_masks(first, source.masked, reader.tokenizer, reader.name)
    return first, target


@NUMBERS.remembers()
def _computed_trace(source: Source) -> Trace:
    since = time.monotonic()
    made = model(source.model).trace_tokens(*tokens(source))
    seconds = time.monotonic() - since
    events.read(source.model, len(made.tokens.labels), seconds, source.text, source.second)
    return made


def languages(source: Source) -> Languages | None:
    """The languages of the model's tokenizer; None where it has none, or a bundle is shown."""
    return None if source.bundle else model(source.model).languages


def templates(source: Source) -> tuple[Template, ...]:
    """The templates that the model offers; of a bundle, only the recorded one."""
    return (source.template,) if source.bundle else model(source.model).templates


def of_all_heads(
    function: Callable[..., Result], here: Trace, kind: Kind, /, *args: Any, **named: Any
) -> Result:
    """The result of a function that goes through all heads of a trace; a worker process computes it for a large trace."""
    cells = len(here.query_tokens(kind)) * len(here.key_tokens(kind))
    if len(here.heads(kind)) * cells <= MOST_WEIGHTS:
        return function(here, *args, **named)
    made: Result = elsewhere(function, here, *args, **named)
    return made


@NUMBERS.remembers()
def pattern(
    source: Source, layer: int, head: int | None, kind: Kind, measure: Measure | Mixing
) -> AttentionPattern:
    """The matrix of one head, or of all heads of a layer; rollout goes through every layer below."""
    here = trace(source)
    if measure == "alti" or measure == "value_zeroing":
        return mixing(source, layer, kind, measure).pattern(layer)
    if measure != "rollout":
        return here.pattern(layer, head, kind, measure=measure)
    made = of_all_heads(Trace.pattern, here, kind, layer, head, kind, measure=measure)
    queries, keys = here.axes(kind)
    return replace(made, queries=queries, keys=keys)


def mixings(source: Source) -> tuple[Mixing, ...]:
    """The measures of a layer that take the model, where the text has them."""
    if source.bundle or n_token(source) > MOST_MIXED:
        return ()
    return available_mixings(model(source.model), trace(source))


@NUMBERS.remembers()
def mixing(source: Source, layer: int, kind: Kind, method: Mixing) -> ContextMixing:
    """How much of each token a layer mixes into each; a worker process computes it for a text of some length."""
    if is_mixed_at_once(source, kind):
        return _MIXED[method](model(source.model), trace(source), layers=(layer,))
    made: ContextMixing = mixing_job(source, layer, method).wait()[0]
    return made


def is_mixed_at_once(source: Source, kind: Kind) -> bool:
    """Whether a page computes a layer's mixing itself: value zeroing, which takes longer, runs the layer once for each token."""
    n_parameter = model(source.model).network.num_parameters(exclude_embeddings=True)
    return n_token(source) ** 2 * n_parameter / trace(source).n_layers(kind) <= MOST_PRODUCTS


def is_mixed(source: Source, layer: int, kind: Kind, method: Mixing) -> bool:
    """Whether `mixing` comes without a wait of more than a second."""
    return is_mixed_at_once(source, kind) or mixing_job(source, layer, method).finished


def mixing_job(source: Source, layer: int, method: Mixing) -> Job:
    """The job of `mixing`."""
    call = _MIXED[method], offer(source.model).name, trace(source)
    return job(
        method, (source, layer), lambda: [(with_model.call, call, {"layers": (layer,), **TELLS_PROGRESS})]
    )


_MIXED: dict[Mixing, Callable[..., ContextMixing]] = {"alti": alti, "value_zeroing": value_zeroing}


@NUMBERS.remembers()
def mask(
    source: Source,
    kind: Kind,
    name: MaskName,
    reach: int,
    hidden: tuple[int, ...],
    painted: tuple[tuple[int, int], ...],
) -> np.ndarray:
    """Which keys each query may see [query, key]; ``painted`` cells are inverted."""
    here = trace(source)
    queries, keys = here.query_tokens(kind), here.key_tokens(kind)
    there = [(query, key) for query, key in painted if query < len(queries) and key < len(keys)]
    return make_mask(
        queries,
        keys,
        name,
        reach=reach,
        hidden=[key for key in hidden if key < len(keys)],
        flipped=there,
    )


@NUMBERS.remembers()
def masked_trace(source: Source, kind: Kind, layer: int | None, head: int | None, mask: bytes) -> Trace:
    """The trace of a text under a mask inside the forward pass; None for every layer or head.

    Args:
        mask: the bytes of which keys each query may see, row by row.
    """
    here = trace(source)
    shape = (len(here.query_tokens(kind)), len(here.key_tokens(kind)))
    allowed = np.frombuffer(mask, dtype=bool).reshape(shape)
    masked = MaskedKeys(allowed=allowed, kind=kind, layer=layer, head=head)
    return model(source.model).trace_tokens(*tokens(source), interventions=[masked])


def predictions(source: Source, trace: Trace, position: int) -> Predictions | None:
    """The likeliest tokens at a position of a trace; None where the model has no language head."""
    read = model(source.model)
    return None if read.language_head is None else predict(read, trace, position)


@NUMBERS.remembers()
def contexts(source: Source, layer: int) -> Contexts:
    """A layer's output for every token of a text; in an encoder-decoder model, for the encoder's tokens."""
    here = trace(source)
    return contexts_of(model(source.model), [(here.tokens, here.target_tokens)], layer)[0]


@NUMBERS.remembers()
def learned_positions(name: str) -> np.ndarray | None:
    """A model's own table of positions; None where it has none."""
    return model(name).learned_positions


@NUMBERS.remembers()
def shuffled(source: Source, seed: int) -> Shuffle:
    """How every token changes when the words are shuffled."""
    return shuffle(model(source.model), trace(source), seed=seed)


@NUMBERS.remembers()
def streamed(
    source: Source, layer: int, head: int, kind: Kind, tile: int, query: int | None = None
) -> list[Stream]:
    """The states of streaming attention, tile by tile; of one query, or of all."""
    rows = slice(None) if query is None else slice(query, query + 1)
    return stream_head(trace(source), layer, head, kind, tile=tile, rows=rows)


@NUMBERS.remembers()
def random_products(d_k: int, n_key: int, seed: int) -> np.ndarray:
    """Dot products [query, key] of random vectors; at least n_key keys."""
    return draw_products(d_k, n_key=n_key, seed=seed)


@NUMBERS.remembers()
def random_sharpness(d_k: int, n_key: int, seed: int, scales: tuple[float, ...]) -> Sharpness:
    """How sharp rows of n_key random keys are under each scale, mean over `RANDOM_ROWS` rows."""
    rows = random_products(d_k, n_key, seed)[:RANDOM_ROWS, :n_key].astype(np.float64)
    return sharpness(np.array(scales)[:, None, None] * rows).mean()


@NUMBERS.remembers()
def steps_to_scaled(
    source: Source, layer: int, head: int, query: int, kind: Kind, other: int, seed: int
) -> tuple[Step, ...]:
    """The scoring functions that led to scaled dot products, for one query."""
    return scoring_variants(trace(source), layer, head, query, kind, other=other, seed=seed)


@NUMBERS.remembers(lambda: _spinner("Measuring all heads …"))
def claims(source: Source, kind: Kind) -> Claims:
    """Common claims about attention, measured in every head."""
    return of_all_heads(measurements.measure, trace(source), kind, kind)


@NUMBERS.remembers(lambda: _spinner("Measuring how far all heads look …"))
def reach(source: Source, kind: Kind) -> Reach:
    """The weight of every head on the first token by position, and by distance."""
    return of_all_heads(reach_of, trace(source), kind, kind=kind)


@NUMBERS.remembers()
def anatomy(source: Source, layer: int, kind: Kind) -> LayerAnatomy:
    """The components of a layer's attention."""
    return anatomies.anatomy(model(source.model), trace(source), layer, kind)


def report(source: Source) -> VerificationReport:
    """The verdict on a trace; of a bundle, the recorded verdict."""
    if source.bundle:
        return recorded(source.bundle).report
    here = _weights_of(model(source.model))
    if not is_long(source):
        return _computed_report(source, here)
    trace(source)  # raises where it is not there
    if (verdict := long_texts.verdict(source, here)) is None:
        raise StillReadError(
            "The numbers of this text are still being compared with the model's. Wait until they are.", source
        )
    return _of_same_weights(source, *verdict)


def verdict_job(source: Source) -> Job:
    """The job that compares the numbers of a long text."""
    return long_texts.verdict_job(source, _weights_of(model(source.model)))


def has_report(source: Source) -> bool:
    """Whether the verdict on a long text is there."""
    return long_texts.verdict(source, _weights_of(model(source.model))) is not None


def weights(source: Source) -> Mapping[str, str]:
    """SHA-256 of each file of the weights that a trace was made with; empty for a bundle that does not record them."""
    return recorded(source.bundle).weights_sha256 if source.bundle else model(source.model).weights_sha256


_Weights = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]


def _weights_of(here: Model) -> _Weights:
    """What a verdict depends on: SHA-256 of each weights file as loaded, and which files have changed since."""
    return tuple(sorted(here.weights_sha256.items())), here.weights.changed()


@NUMBERS.remembers()
def _computed_report(source: Source, of_weights: _Weights) -> VerificationReport:
    """`of_weights` is part of the key alone: a verdict holds for the weights that it was made with."""
    return _of_same_weights(source, *elsewhere(verify, offer(source.model).name, trace(source)))


def _of_same_weights(
    source: Source, report: VerificationReport, weights: Mapping[str, str]
) -> VerificationReport:
    """A verdict that a process has made.

    Raises:
        VerificationError: its model has other weights than the server's.
    """
    here = model(source.model)
    if weights != here.weights_sha256:
        raise VerificationError(
            f"The weights of {source.model} on disk are not those that were loaded when attnviz started. Start it again."
        )
    return report


def compared_report(source: Source) -> VerificationReport:
    """The verdict on an opened bundle, against the model of the same name here, which reads the bundle's text again.

    Raises:
        ModelNotAvailableError, VerificationError: there is no such model here, or the two cannot be compared.
    """
    here = model(recorded(source.bundle).trace.provenance.model)
    return _compared_report(source.bundle, here.name, _weights_of(here))


@NUMBERS.remembers()
def _compared_report(digest: str, name: str, of_weights: _Weights) -> VerificationReport:
    """`of_weights` is part of the key alone: a verdict holds for the weights that it was made with."""
    return compare_bundle(recorded(digest), model(name))


@NUMBERS.remembers()
def reference_weights(source: Source, layer: int, kind: Kind) -> np.ndarray:
    """The model's own weights [head, query, key] of one layer."""
    return verification.reference_weights(model(source.model), trace(source), layer, kind)


@NUMBERS.remembers(lambda: _spinner("Laying out the map …"))
def projection(
    source: Source, layer: int, head: int, kind: Kind, values: bool = False, **settings: Any
) -> Projection:
    """Map of one head, made with these settings of `attnviz.project`."""
    here = trace(source)
    attention, shown = here.head(layer, head, kind), pattern(source, layer, head, kind, "weights")
    placed = elsewhere(
        place,
        attention.query,
        attention.key,
        shown.scores,
        shown.weights,
        value=attention.value if values else None,
        **(DEFAULTS | settings),
    )
    return with_tokens(placed, here, layer, head, kind, weights=shown.weights)
