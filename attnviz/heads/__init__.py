"""All heads of a trace at once: statistics, similarity, heads that link a pair, comparison, flow, claims, facts of findings.

The public names are listed in ``__init__.pyi``, as for `attnviz`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
