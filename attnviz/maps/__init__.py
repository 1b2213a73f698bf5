"""From vectors to points: spaces, layouts, the attention map, reliability, maps of many texts."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach(__name__, [module.name for module in iter_modules(__path__)])
_MOVED = {"faithfulness": "attnviz.maps.reliability"}
"""Old names of modules, and where these are now."""


def __getattr__(name: str) -> ModuleType:
    """A module of this folder, or one that used to be here."""
    return import_module(_MOVED[name]) if name in _MOVED else _attached(name)
