"""From a name and a text to a Trace, and functions of a model and a trace: verification, predictions, layer anatomy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
