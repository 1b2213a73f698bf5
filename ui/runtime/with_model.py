"""What worker processes do with a model; each loads its own copy from the same files."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache, cached

from attnviz.effects.outcome import Outcome, measured
from attnviz.errors import TextTooLongError
from attnviz.maps.collection import Collection
from attnviz.maps.collection import collect as collected
from attnviz.maps.projection import project
from attnviz.model import infilling, storage, verification
from attnviz.model.configuration import layer_count
from attnviz.model.infilling import Infilling
from attnviz.model.loading import load_model
from attnviz.model.model import Model
from attnviz.model.trace import Trace
from attnviz.records import Kind, LayerAttention, Progress, Tokens, VerificationReport, progress_within
from ui.limits import MODELS_MB
from ui.runtime import log
from ui.runtime.memory import n_bytes
from ui.runtime.stopping import end_if_stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnviz.corpus.profile import Profile
    from attnviz.corpus.texts import Entry, Failure
    from attnviz.corpus.token_index import TokenIndex

MODELS: LRUCache[str, Model] = LRUCache(MODELS_MB * 1e6, getsizeof=n_bytes)
"""Loaded models of this process."""


_MODEL_OF_LONG = 0.02
"""As `_LOADING`, of a long text."""
_LOADING = 0.3
"""Share of a call's progress for loading its model, which is done at once where the process has it."""


@cached(MODELS, key=lambda name, progress=None: name)
def own(name: str, progress: Progress | None = None) -> Model:
    """The process's model of this name; a call whose last visitor has left ends before the model's next module runs."""
    since = time.monotonic()
    model = load_model(name, progress=progress)
    parts = [
        network
        for network in (model.network, model.reference, model.language_head, model.classifier)
        if network is not None
    ]
    for module in {module for part in parts for module in part.modules()}:
        module.register_forward_pre_hook(end_if_stopped)
    log.event("model_loaded", model=name, megabytes=n_bytes(model) // 10**6, seconds=time.monotonic() - since)
    return model


@dataclass(frozen=True, slots=True)
class TextRef:
    """A text that the worker has its model read, in place of a trace of many megabytes."""

    tokens: Tokens
    target: Tokens | None


@dataclass(frozen=True, slots=True)
class Measuring:
    """An outcome, in place of the function that measures it, which belongs to a model and a trace."""

    outcome: Outcome


def call(function: Callable[..., Any], name: str, *given: Any, **named: Any) -> Any:
    """What a function of attnviz makes of this process's model and further arguments.

    A `TextRef` becomes its trace, and `Measuring` what is measured in the model on the first argument.
    """
    model = own(name)
    read = [
        model.trace_tokens(each.tokens, each.target) if isinstance(each, TextRef) else each for each in given
    ]
    read = [measured(model, read[0], each.outcome) if isinstance(each, Measuring) else each for each in read]
    return function(model, *read, **named)


def warm(name: str) -> None:
    """Loads the model and the libraries that maps need, so that no visitor waits for them."""
    model = own(name)
    trace = model.trace("A door.")
    verification.verify(model, trace)
    project(trace, 0, 0)


def verify(name: str, trace: Trace) -> tuple[VerificationReport, dict[str, str]]:
    """The verdict on a trace, and the SHA-256 of the weights that it was compared with, by file.

    Raises:
        ModelNotAvailableError, VerificationError: as `attnviz.verify`.
    """
    model = own(name)
    return verification.verify(model, trace), dict(model.weights_sha256)


NICE = 10
"""Of the process for long texts: the pages of all visitors, and their short jobs, come first."""


def read_long(
    name: str, tokens: Tokens, target: Tokens | None, folder: str, most_mb: int, *, progress: Any
) -> Trace:
    """The trace of a long text, in a file below a folder; reports each layer, with the trace's provenance, once it is there.

    Raises:
        TextTooLongError: the trace would take more of the disk than allowed.
    """
    _give_way()
    model = own(name, progress=progress_within(progress, 0.0, _MODEL_OF_LONG))
    kind: Kind = "encoder" if model.network.config.is_encoder_decoder else "decoder"
    n_layer = layer_count(model.network.config, kind)
    done = 0

    def on_layer(layer: LayerAttention) -> None:
        nonlocal done
        done += 1
        size = n_layer * sum(array.nbytes for array in (layer.query, layer.key, layer.value))
        if size > most_mb * 1e6:
            raise TextTooLongError(
                f"The numbers of {len(tokens):,} tokens take {size / 1e6:,.0f} MB on disk; this server keeps {most_mb:,} "
                "(ATTNVIZ_DISK_MB). Take a shorter text.",
                length=size,
                limit=most_mb * 10**6,
                unit="bytes",
            )
        progress(_MODEL_OF_LONG + (1 - _MODEL_OF_LONG) * (done - 1) / n_layer, (layer, model.provenance))

    into = Path(tempfile.mkdtemp(dir=folder))
    try:
        with storage.files_in(into):
            return model.trace_tokens(tokens, target, progress=lambda _: end_if_stopped(), on_layer=on_layer)
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise


def verify_long(name: str, trace: Trace, *, progress: Progress) -> tuple[VerificationReport, dict[str, str]]:
    """As `verify`, in the process for long texts."""
    _give_way()
    model = own(name, progress=progress_within(progress, 0.0, _MODEL_OF_LONG))
    within = progress_within(progress, _MODEL_OF_LONG, 1 - _MODEL_OF_LONG)
    return verification.verify(model, trace, progress=within), dict(model.weights_sha256)


def _give_way() -> None:
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)


def fill(name: str, before: str, after: str, most: int, *, progress: Progress) -> Infilling:
    """The likeliest tokens between two texts, as `attnviz.fill`."""
    model = own(name, progress=progress_within(progress, 0.0, _LOADING))
    return infilling.fill(
        model, before, after, most=most, progress=progress_within(progress, _LOADING, 1 - _LOADING)
    )


def profile(
    name: str, entries: "Sequence[Entry | Failure]", *, progress: Progress
) -> "tuple[Profile, list[Failure]]":
    """What every head does over some texts, as `attnviz.corpus.pipeline.profile_texts`."""
    # pyarrow starts a thread when imported; the process that is forked must have only one
    from attnviz.corpus.pipeline import profile_texts

    return profile_texts(own(name), entries, progress=progress)


def index(name: str, texts: "Sequence[Entry]", layer: int, *, progress: Progress) -> "TokenIndex":
    """The tokens of some texts by their vectors in a layer, as `attnviz.corpus.indexing.index_texts`."""
    from attnviz.corpus.indexing import index_texts  # as above

    return index_texts(own(name), texts, layer, progress=progress)


def collect(name: str, text: str, layer: int, *, kind: Kind, progress: Progress) -> Collection:
    """Queries and keys of all lines of a text, as `attnviz.maps.collection.collect`."""
    return collected(own(name), text, layer, kind=kind, progress=progress)
