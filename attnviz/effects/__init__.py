"""What changes an answer, and what the answer is made of: masks, heads, states, tokens."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
