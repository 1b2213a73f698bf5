"""Many texts: what every head does over a corpus, from the texts to a profile on disk.

The texts are read by `texts`, and a run over them, which goes on where it was stopped, is `running`, whatever it measures. `pipeline`
has it measure every head, by `measuring`, on one machine or a cluster, and sum that up by `tally` into a `profile`; `indexing` has it
make a `token_index`, which finds their tokens by vector.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
