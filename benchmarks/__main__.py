"""All measurements, as one table with the budget beside each number, and one of the maps."""

import os
import platform
import sys

import torch

from benchmarks import all_heads, all_maps, clicks, core, effects, layout_shift, maps, screen


def main() -> int:
    """Prints the tables; exit code 1 when a budget is exceeded."""
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"
    )
    rows = [
        *core.measure(),
        *effects.measure(),
        *screen.measure(),
        *clicks.measure(),
        *layout_shift.measure(),
        *all_heads.measure(),
        *all_maps.measure(),
        *maps.measure(),
    ]
    width = max(len(row.what) for row in rows)
    print(f"{'measured':{width}}  {'found':>12}  {'budget':>12}")
    for row in rows:
        verdict = "" if row.within else "  EXCEEDED"
        print(f"{row.what:{width}}  {row.found:>12.3f}  {row.budget:>12.3f}{verdict}  {row.detail}")
    print()
    maps.show()
    return int(any(not row.within for row in rows))


if __name__ == "__main__":
    sys.exit(main())
