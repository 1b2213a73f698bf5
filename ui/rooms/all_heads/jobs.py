"""Computes copying scores, in a worker process."""

import numpy as np

from attnviz.effects.copying import copying_scores
from attnviz.records import Progress
from ui.runtime import with_model


def copy_scores(name: str, *, progress: Progress) -> np.ndarray:
    """The copying score of every head [layer, head], as `attnviz.effects.copying.copying_scores`."""
    return copying_scores(with_model.own(name), progress=progress)
