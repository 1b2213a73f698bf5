"""attnviz: the attention of a transformer for your own sentence, checked against the model.

The public names are listed once, in ``__init__.pyi``, for people, type checkers and Python. They are loaded on first
use, so importing attnviz imports neither torch nor transformers.

>>> import attnviz
>>> model = attnviz.load_model("all-MiniLM-L6-v2")
>>> trace = model.trace("I was watching the door when it opened.")
>>> round(float(trace.weights(3, 1)[7, 5]), 3)
0.475
>>> attnviz.verify(model, trace).passed
True
"""

import os

import lazy_loader

# MKL, with which torch computes on Intel's and AMD's processors, reads this at its first product. By default the last digits of
# a product depend on the number of threads, and from other last digits t-SNE makes another picture. Strict conditional numerical
# reproducibility: Intel, "Developer Guide for oneMKL", chapter "Obtaining Numerically Reproducible Results".
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
