"""What the chapters compute besides effects on an answer: earlier scores, scaling, word order."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
