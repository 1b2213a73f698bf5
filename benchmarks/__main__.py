"""All measurements, as one table with the budget beside each number, and a table of the maps."""

import os
import platform
import sys

import torch

from benchmarks import (
    all_heads,
    all_maps,
    clicks,
    core,
    corpus,
    effects,
    generation,
    hover,
    layout_shift,
    long_texts,
    maps,
    memory,
    screen,
)

WIDTH = 72  # of the column that names what is measured


def main() -> int:
    """Prints the tables, each row as soon as it is measured; exit code 1 if a budget is exceeded."""
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"
    )
    print(f"{'measured':{WIDTH}}  {'value':>12}  {'budget':>12}")
    is_within = True
    for part in (
        core,
        long_texts,
        memory,
        effects,
        generation,
        corpus,
        screen,
        hover,
        clicks,
        layout_shift,
        all_heads,
        all_maps,
        maps,
    ):
        for row in part.measure():
            verdict = "" if row.within else "  EXCEEDED"
            print(
                f"{row.what:{WIDTH}}  {row.value:>12.3f}  {row.budget:>12.3f}{verdict}  {row.detail}",
                flush=True,
            )
            is_within &= row.within
    print()
    maps.show()
    return int(not is_within)


if __name__ == "__main__":
    sys.exit(main())
