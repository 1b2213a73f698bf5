"""The probes of a model in a profile: numbers on repeated random tokens, as columns and back.

The probes of a profile depend on the model alone, so that any profile of it has them.
"""

import numpy as np

from attnviz.corpus.profile import Profile
from attnviz.heads.probes import PROBES, HeadProbes
from attnviz.records import Head, Kind

_T_OF_8 = 2.365
"""97.5% quantile of Student's t with 7 degrees of freedom, for the interval of a probe's mean over its eight texts."""


def probe_columns(probes: HeadProbes, head: Head) -> dict[str, float]:
    """The mean of each probe of a head, and both ends of its interval."""
    columns: dict[str, float] = {}
    for name in PROBES:
        mean, spread = (float(table[name][head]) for table in (probes.means, probes.spreads))
        half = _T_OF_8 * spread / np.sqrt(probes.n_text - 1)  # the spread is that of the texts themselves
        columns |= {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}
    return columns


def probes_of(profile: Profile, kind: Kind) -> HeadProbes | None:
    """The probes of a kind of attention; None where the profile lacks them or their number of tokens."""
    if kind == "cross" or kind not in profile.kinds or profile.probed is None:
        return None
    n_token, n_text = profile.probed
    heads = profile.heads(kind)
    shape = 1 + max(head.layer for head in heads), 1 + max(head.head for head in heads)
    means, spreads = {}, {}
    for name in PROBES:
        mean, high = profile.numbers(name, kind), profile.numbers(f"{name}_high", kind)
        means[name], spreads[name] = (np.full(shape, np.nan, dtype=np.float32) for _ in range(2))
        for head, of_mean, of_high in zip(heads, mean, high, strict=True):
            means[name][head] = of_mean
            spreads[name][head] = (of_high - of_mean) * np.sqrt(n_text - 1) / _T_OF_8
    return HeadProbes(
        kind=kind,
        means=means,
        spreads=spreads,
        n_token=n_token,
        n_text=n_text,
        provenance=profile.provenance,
    )
