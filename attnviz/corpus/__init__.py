"""Many texts: what every head does over a corpus, from the texts to a profile on disk.

The texts are read by `texts`, measured in batches by `measuring`, run on one machine or a cluster by `pipeline`, and summed by
`tally` into a `profile`. `indexing` makes a `token_index`, which finds their tokens by vector.
"""

from pkgutil import iter_modules

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, [module.name for module in iter_modules(__path__) if not module.ispkg]
)
