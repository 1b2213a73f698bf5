"""attnviz: the attention of a transformer for your own sentence, checked against the model.

The public names are loaded when first used, so that importing attnviz brings in neither torch nor
transformers.

>>> import attnviz
>>> model = attnviz.load_model("all-MiniLM-L6-v2")
>>> trace = model.trace("I was watching the door when it opened.")
>>> round(float(trace.weights(3, 1)[7, 5]), 3)
0.475
>>> attnviz.verify(model, trace).passed
True
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as below, for type checkers and editors
    from attnviz import figures as figures
    from attnviz import heads as heads
    from attnviz.bundle import Bundle as Bundle
    from attnviz.bundle import write_bundle as write_bundle
    from attnviz.bundle_reading import read_bundle as read_bundle
    from attnviz.bundle_verification import compare_bundle as compare_bundle
    from attnviz.catalogue import offers as offers
    from attnviz.comparison import Comparison as Comparison
    from attnviz.comparison import compare as compare
    from attnviz.download import download_model as download_model
    from attnviz.errors import AttnvizError as AttnvizError
    from attnviz.errors import BundleError as BundleError
    from attnviz.errors import CaptureError as CaptureError
    from attnviz.errors import DownloadError as DownloadError
    from attnviz.errors import EmptyTextError as EmptyTextError
    from attnviz.errors import InvalidTextError as InvalidTextError
    from attnviz.errors import ModelNotAvailableError as ModelNotAvailableError
    from attnviz.errors import ProjectionError as ProjectionError
    from attnviz.errors import SelectionError as SelectionError
    from attnviz.errors import ShapeError as ShapeError
    from attnviz.errors import TextTooLongError as TextTooLongError
    from attnviz.errors import UnsupportedArchitectureError as UnsupportedArchitectureError
    from attnviz.errors import VerificationError as VerificationError
    from attnviz.models import Model as Model
    from attnviz.models import load_model as load_model
    from attnviz.predictions import Predictions as Predictions
    from attnviz.predictions import predict as predict
    from attnviz.projection import project as project
    from attnviz.records import AttentionPattern as AttentionPattern
    from attnviz.records import LayerAttention as LayerAttention
    from attnviz.records import Projection as Projection
    from attnviz.records import Provenance as Provenance
    from attnviz.records import Tokens as Tokens
    from attnviz.records import VerificationReport as VerificationReport
    from attnviz.trace import Trace as Trace
    from attnviz.verification import verify as verify

__version__ = "0.1.0"

_HOMES = {
    "attnviz.bundle": ("Bundle", "write_bundle"),
    "attnviz.bundle_reading": ("read_bundle",),
    "attnviz.bundle_verification": ("compare_bundle",),
    "attnviz.catalogue": ("offers",),
    "attnviz.comparison": ("Comparison", "compare"),
    "attnviz.download": ("download_model",),
    "attnviz.errors": (
        "AttnvizError",
        "BundleError",
        "CaptureError",
        "DownloadError",
        "EmptyTextError",
        "InvalidTextError",
        "ModelNotAvailableError",
        "ProjectionError",
        "SelectionError",
        "ShapeError",
        "TextTooLongError",
        "UnsupportedArchitectureError",
        "VerificationError",
    ),
    "attnviz.models": ("Model", "load_model"),
    "attnviz.predictions": ("Predictions", "predict"),
    "attnviz.projection": ("project",),
    "attnviz.records": (
        "AttentionPattern",
        "LayerAttention",
        "Projection",
        "Provenance",
        "Tokens",
        "VerificationReport",
    ),
    "attnviz.trace": ("Trace",),
    "attnviz.verification": ("verify",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

_MODULES = ("figures", "heads")

__all__ = [*_MODULES, *sorted(_HOME_OF)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"attnviz.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'attnviz' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
