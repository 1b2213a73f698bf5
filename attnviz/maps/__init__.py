"""From vectors to points: spaces, layouts, the attention map, reliability, maps of many texts."""

from pkgutil import iter_modules

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, [module.name for module in iter_modules(__path__)]
)
