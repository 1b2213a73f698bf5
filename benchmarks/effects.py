"""Every head switched off in turn: seconds of the two calls that a page divides this into, in two processes at once."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from transformers.utils import logging

from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from benchmarks.all_heads import save_large
from benchmarks.measurement import Measurement

CASES = ((EMBEDDED, 12, 2.0), (SMOLLM2, 14, 10.0), ("large", 64, 15.0))
"""Model, tokens and seconds; "large" has bert-base's sizes and random weights."""
PROCESSES = 2

_PROCESS = """
import sys, time
import torch
import attnviz
from attnviz.effects.ablation import ablate
from attnviz.effects.outcome import Similarity, measured
from benchmarks.core import text_of
name, n_token, first, step = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(1)
model = attnviz.load_model(name)
trace = model.trace(text_of(model, n_token))
outcome = measured(model, trace, Similarity(text="A door opened."))
ablate(model, trace, outcome, layers=[trace.n_layers() - 1])  # what is loaded and made once
layers = range(first, trace.n_layers(), step)
print("ready", flush=True)
input()
ablate(model, trace, outcome, layers=layers)
print(len(trace.heads()), len(trace.tokens), flush=True)
"""


def measure() -> Iterator[Measurement]:
    """Seconds from the call until both processes have answered, against the budget of each case."""
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        large = save_large(Path(folder) / "large")
        for name, n_token, budget in CASES:
            seconds, n_head, found_tokens = _seconds(str(large) if name == "large" else name, n_token)
            yield Measurement(
                what=f"every head off in turn, {n_head} heads, {found_tokens} tokens, s",
                value=seconds,
                budget=budget,
                detail=f"{PROCESSES} processes of one thread",
            )


def _seconds(name: str, n_token: int) -> tuple[float, int, int]:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROCESS, name, str(n_token), str(first), str(PROCESSES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline().strip() == "ready"
    start = time.perf_counter()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    answers = [process.communicate()[0].split() for process in processes]
    seconds = time.perf_counter() - start
    n_head, found_tokens = (int(number) for number in answers[0][-2:])
    return seconds, n_head, found_tokens
