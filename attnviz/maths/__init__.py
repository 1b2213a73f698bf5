"""Functions of tensors or arrays, without models, texts or other parts of attnviz."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
