"""``python -m tests.fuzz --minutes 30``: fuzzing again and again with other examples, and how many there were of each kind.

Failures are told at once and kept by hypothesis, which tries them first the next time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Exit code 1 where anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=480, help="no new round begins after that")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    tallied: Counter[str] = Counter()
    n_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        tally = Path(folder) / "tally.json"
        while time.monotonic() < end:
            command = [
                sys.executable,
                "-m",
                "pytest",
                str(HERE),
                "-q",
                "--tb=short",
                "--show-capture=no",
                "--jaxtyping-packages=",
            ]
            environment = os.environ | {"FUZZ_PROFILE": "long", "FUZZ_TALLY": str(tally)}
            done = subprocess.run(command, cwd=HERE.parents[1], env=environment)
            n_failed += done.returncode != 0
            tallied.update(json.loads(tally.read_text()))
            print(", ".join(f"{count:,} {kind}" for kind, count in sorted(tallied.items())), flush=True)
    print(f"{n_failed} rounds failed." if n_failed else "Nothing failed.")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
