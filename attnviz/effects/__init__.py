"""What changes an answer, and what the answer is made of: masks, heads, states, tokens."""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import lazy_loader

_attached, __dir__, __all__ = lazy_loader.attach(__name__, [module.name for module in iter_modules(__path__)])
_MOVED = {
    "history": "attnviz.lessons.history",
    "order": "attnviz.lessons.order",
    "scaling": "attnviz.lessons.scaling",
}
"""Old names of modules, and where these are now."""


def __getattr__(name: str) -> ModuleType:
    """A module of this folder, or one that used to be here."""
    return import_module(_MOVED[name]) if name in _MOVED else _attached(name)
