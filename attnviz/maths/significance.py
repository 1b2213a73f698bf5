"""Whether a number is larger than chance explains: p-values from random draws, and their correction for several tests."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool


def p_value(n_as_large: int, n_drawn: int) -> float:
    """The p-value of a number that ``n_as_large`` of ``n_drawn`` random numbers reach or exceed; never 0.

    The number itself counts as a draw: if it is as random as the others, the probability of this p-value or a smaller one is at
    most the p-value.

    Source: Phipson and Smyth 2010, "Permutation P-values Should Never Be Zero" (Stat. Appl. Genet. Mol. Biol. 9:39), p = (b + 1) /
    (m + 1).

    >>> p_value(0, 199)
    0.005
    """
    return (1 + n_as_large) / (1 + n_drawn)


def holm(p_values: Sequence[float], level: float) -> Bool[np.ndarray, " test"]:
    """Which of several tests pass, such that the probability that any passes by chance is at most ``level``; False for NaN.

    The smallest of m p-values passes up to level / m, the next up to level / (m - 1) if the one before passed, and so on. Tests may
    depend on each other in any way.

    Source: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure" (Scand. J. Statist. 6:65-70).

    >>> holm([0.02, 0.005, 0.3], 0.05).tolist()
    [True, True, False]
    """
    passed = np.zeros(len(p_values), dtype=bool)
    for number, test in enumerate(np.argsort(p_values, kind="stable")):
        if not p_values[test] <= level / (len(p_values) - number):
            break
        passed[test] = True
    return passed
