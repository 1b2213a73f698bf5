"""What the chapters compute besides effects on an answer: earlier scores, scaling, word order."""

from pkgutil import iter_modules

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, [module.name for module in iter_modules(__path__)]
)
