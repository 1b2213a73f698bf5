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

if TYPE_CHECKING:
    from attnviz import figures
    from attnviz.catalogue import offers
    from attnviz.download import download_model
    from attnviz.errors import (
        AttnvizError,
        CaptureError,
        DownloadError,
        EmptyTextError,
        InvalidTextError,
        ModelNotAvailableError,
        ProjectionError,
        SelectionError,
        ShapeError,
        TextTooLongError,
        UnsupportedArchitectureError,
        VerificationError,
    )
    from attnviz.models import Model, load_model
    from attnviz.projection import project
    from attnviz.records import (
        AttentionPattern,
        LayerAttention,
        Projection,
        Provenance,
        Tokens,
        VerificationReport,
    )
    from attnviz.trace import Trace
    from attnviz.verification import verify

__version__ = "0.1.0"

_HOMES = {
    "attnviz.catalogue": ("offers",),
    "attnviz.download": ("download_model",),
    "attnviz.errors": (
        "AttnvizError",
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

__all__ = [  # noqa: RUF022  (the order of the tree in attnviz.errors is not alphabetical)
    *sorted(_HOME_OF),
    "figures",
]


def __getattr__(name: str) -> Any:
    if name == "figures":
        return importlib.import_module("attnviz.figures")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'attnviz' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
