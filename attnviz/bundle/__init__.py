"""A view of a trace in a file: writing it, reading untrusted files, comparing them with the model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
