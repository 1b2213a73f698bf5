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

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
