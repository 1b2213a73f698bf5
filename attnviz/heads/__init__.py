"""All heads of a trace at once: statistics, likeness, who links a pair, comparison, flow, claims.

Its names stand in ``__init__.pyi``, as those of `attnviz` do.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
