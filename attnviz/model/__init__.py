"""From a name and a text to a Trace, and functions of a model and a trace: verification, predictions, layer anatomy."""

from pkgutil import iter_modules

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, [module.name for module in iter_modules(__path__)]
)
