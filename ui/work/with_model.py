"""What worker processes do with a model, on a copy of their own that they load from the same files."""

from collections.abc import Callable
from functools import lru_cache

from attnviz.maps.collection import Collection
from attnviz.maps.collection import collect as collected
from attnviz.maps.projection import project
from attnviz.model import verification
from attnviz.model.loading import Model, load_model
from attnviz.model.trace import Trace
from attnviz.records import Kind, VerificationReport


@lru_cache(maxsize=2)
def _model(name: str) -> Model:
    return load_model(name)


def warm(name: str) -> None:
    """Loads the model and what maps are made with, so that no visitor waits for it."""
    model = _model(name)
    trace = model.trace("A door.")
    verification.verify(model, trace)
    project(trace, 0, 0)


def verify(name: str, trace: Trace) -> tuple[VerificationReport, dict[str, str]]:
    """The verdict on a trace, and the SHA-256 of the weights that it was compared with, by file.

    Raises:
        ModelNotAvailableError, VerificationError: as `attnviz.verify`.
    """
    model = _model(name)
    return verification.verify(model, trace), dict(model.weights_sha256)


def collect(
    name: str, text: str, layer: int, *, kind: Kind, progress: Callable[[float], None] | None = None
) -> Collection:
    """Queries and keys of all lines of a text, as `attnviz.maps.collection.collect`."""
    return collected(_model(name), text, layer, kind=kind, progress=progress)
