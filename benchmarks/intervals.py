"""How often an interval of a profile holds the mean that it is an interval of, with few and many texts; writes the table of docs/corpus.md.

    python -m benchmarks.intervals

Of 95% intervals 95 in 100 should hold the mean of the distribution that the texts' numbers are drawn from.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from attnviz.corpus import sums
from attnviz.corpus.sums import FEWEST_TEXTS, Sums

DOCS = Path(__file__).parents[1] / "docs" / "corpus.md"
START, END = "<!-- coverage: benchmarks.intervals -->", "<!-- end of coverage -->"
N_TEXT = (5, 10, 20, 50, 200, 1000)
N_RUN = 5000

Drawn = tuple[np.ndarray, np.ndarray | None]
"""Numbers, [run, text], or counts of words and how many words each text has."""


def beta(a: float, b: float) -> tuple[Callable[[np.random.Generator, tuple[int, int]], Drawn], float]:
    """Shares between 0 and 1, and their mean."""
    return lambda rng, shape: (rng.beta(a, b, shape), None), a / (a + b)


def lognormal(sigma: float) -> tuple[Callable[[np.random.Generator, tuple[int, int]], Drawn], float]:
    """Lengths, and their mean."""
    return lambda rng, shape: (rng.lognormal(0, sigma, shape), None), float(np.exp(sigma**2 / 2))


def words(share: float) -> tuple[Callable[[np.random.Generator, tuple[int, int]], Drawn], float]:
    """Words found of 1 or more in each text, three on average; texts differ in their shares by a tenth of what they can."""

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> Drawn:
        n = 1 + rng.poisson(2, shape)
        return rng.binomial(n, rng.beta(9 * share, 9 * (1 - share), shape)), n

    return draw, share


DISTRIBUTIONS = {
    "normal": (lambda rng, shape: (rng.normal(3, 1, shape), None), 3.0),
    "Beta(5, 2)": beta(5, 2),
    "Beta(0.5, 0.5)": beta(0.5, 0.5),
    "Beta(0.3, 3)": beta(0.3, 3),
    "Beta(0.1, 2)": beta(0.1, 2),
    "exponential": (lambda rng, shape: (rng.exponential(1, shape), None), 1.0),
    "lognormal, σ 0.5": lognormal(0.5),
    "lognormal, σ 1": lognormal(1.0),
    "words, 50% found": words(0.5),
    "words, 90% found": words(0.9),
    "words, 3% found": words(0.03),
}


def coverage(drawn: Drawn, mean: float, rng: np.random.Generator) -> float:
    """The share of runs whose interval holds the mean; the runs are the columns of one `Sums`."""
    numbers, n_words = drawn
    n_run, n_text = numbers.shape
    hashes = [int(hash_) for hash_ in rng.integers(0, 2**63, n_text)]
    if n_words is None:
        counted = Sums.none(1, n_run)
        counted.add(numbers.T[:, None], hashes)
        low, high = counted.mean_intervals()
        return float(((low <= mean) & (mean <= high)).mean())
    held = 0
    for of_run, of_words in zip(numbers, n_words, strict=True):  # words are counted once for all columns
        counted = Sums.none(1, 1, of_words=True)
        counted.add(of_run[:, None, None], hashes, of_words.tolist())
        low, high = counted.share_intervals()
        held += int(low[0, 0] <= mean <= high[0, 0])
    return held / n_run


def rows() -> list[str]:
    """The table: a row for each distribution, a column for each number of texts."""
    table = [
        "| distribution | " + " | ".join(f"{n:,} texts" for n in N_TEXT) + " |",
        "|---" * (len(N_TEXT) + 1) + "|",
    ]
    rng = np.random.default_rng(0)
    for name, (draw, mean) in DISTRIBUTIONS.items():
        shares = [coverage(draw(rng, (N_RUN, n)), mean, rng) for n in N_TEXT]
        cells = [
            f"{share:.1%}" if n >= FEWEST_TEXTS else f"({share:.1%})"
            for n, share in zip(N_TEXT, shares, strict=True)
        ]
        table.append(f"| {name} | " + " | ".join(cells) + " |")
        print(table[-1], flush=True)
    return table


def main() -> None:
    """Writes the table, with what intervals of fewer texts than have one would be in parentheses."""
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(START)
    sums.FEWEST_TEXTS = 0
    table = "\n".join(rows())
    DOCS.write_text(f"{before}{START}\n{table}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
