"""What changes an answer, and what the answer is made of: masks, heads, states, tokens, word order, scale."""

from pkgutil import iter_modules

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, [module.name for module in iter_modules(__path__)]
)
