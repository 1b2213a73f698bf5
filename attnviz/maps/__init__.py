"""From vectors to points: spaces, layouts, the attention map, reliability, maps of many texts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
