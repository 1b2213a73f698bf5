"""Texts of thousands of tokens, with the bundled language model: its first layers alone, so that it takes minutes, not an hour."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import torch
from transformers import AutoModel

import attnviz
from attnviz.model.catalogue import SMOLLM2
from attnviz.viewer.tiles import lines, overview, tile_places, tiles, tiling
from benchmarks.core import PROSE
from benchmarks.measurement import Measurement, medians

RUNS, N_TRACED, N_SHOWN = 3, 4096, 8192
N_LAYER = 3
FIRST_VIEW = 2
"""How many levels above the last one a viewer of 600 px begins at, counted from 1."""


def measure() -> Iterator[Measurement]:
    """Budgets of long texts."""
    yield _trace()
    model = first_layers()
    trace = model.trace(PROSE * (N_SHOWN // 20), cut=True, max_tokens=N_SHOWN)
    n_token = len(trace.tokens)
    traced = _seconds(lambda: model.trace_tokens(trace.tokens))
    stated = _seconds(lambda: attnviz.statistics(trace))
    yield Measurement(
        what="statistics of all heads / trace",
        value=stated / traced,
        budget=1.0,
        detail=f"{stated:.1f} s / {traced:.1f} s, {n_token} tokens",
    )
    kind = trace.kinds[0]
    level = tiling(trace, kind).levels - FIRST_VIEW
    read = overview(trace, kind, 1, 4, "weights")
    _, content = tiles(trace, read, level, tile_places(trace, kind, level))
    another = _seconds(
        lambda: tiles(trace, overview(trace, kind, 1, 5, "weights"), level, tile_places(trace, kind, level))
    )
    yield Measurement(
        what="another head's overview, s", value=another, budget=1.5, detail=f"{n_token} tokens"
    )
    yield Measurement(what="its bytes, MB", value=len(content) / 1e6, budget=1.0)
    place = (n_token // 256 - 2, n_token // 512)
    tile = _seconds(lambda: tiles(trace, read, 0, [place]))
    yield Measurement(what="an exact tile, s", value=tile, budget=0.2, detail="256 x 256 cells")
    line = _seconds(lambda: lines(trace, read, n_token - 1, 100))
    yield Measurement(what="a row and a column, s", value=line, budget=0.2)
    code = "from benchmarks.long_texts import traced_and_verified; traced_and_verified()"
    peak = float(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    )
    yield Measurement(
        what="peak of 3 layers x 9 heads traced and verified, GB",
        value=peak,
        budget=4.0,
        detail=f"{N_SHOWN} tokens",
    )


def first_layers() -> attnviz.Model:
    """The bundled language model, cut after its first layers."""
    whole = attnviz.load_model(SMOLLM2)
    network = AutoModel.from_pretrained(whole.folder).eval()
    del network.layers[N_LAYER:]
    network.config.num_hidden_layers = N_LAYER
    return attnviz.wrap(network, whole.tokenizer)


def traced_and_verified() -> None:
    """Prints the peak of this process's memory, GB, over a trace and its verification."""
    import resource  # POSIX alone has it

    model = first_layers()
    trace = model.trace(PROSE * (N_SHOWN // 20), cut=True, max_tokens=N_SHOWN)
    assert attnviz.verify(model, trace).passed
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9)


def _trace() -> Measurement:
    """A trace of many tokens of the bundled language model beside its plain forward pass."""
    model = attnviz.load_model(SMOLLM2)
    plain = AutoModel.from_pretrained(model.folder).eval()
    tokens = model.tokenize(PROSE * (N_TRACED // 20), cut=True, max_tokens=N_TRACED)
    inputs = model.inputs(tokens)

    def forward() -> None:
        with torch.inference_mode():
            plain(**inputs)

    seconds = medians(RUNS, forward=forward, ours=lambda: model.trace_tokens(tokens))
    return Measurement(
        what="trace of a long text / plain forward pass",
        value=seconds["ours"] / seconds["forward"],
        budget=1.25,
        detail=f"{seconds['ours']:.1f} s / {seconds['forward']:.1f} s, {len(tokens)} tokens",
    )


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
