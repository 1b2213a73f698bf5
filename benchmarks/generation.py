"""Generating text with the attention of each step recorded, compared with transformers' own generate with its cache."""

from collections.abc import Iterator

import torch
from transformers import AutoModelForCausalLM, GenerationConfig

import attnviz
from attnviz.model.catalogue import SMOLLM2
from attnviz.model.continuation import generate
from benchmarks.core import text_of
from benchmarks.measurement import Measurement, medians

RUNS = 3
N_READ, N_WRITTEN = 480, 20


def measure() -> Iterator[Measurement]:
    """20 tokens after 480, by the bundled language model and by the same weights in transformers."""
    model = attnviz.load_model(SMOLLM2)
    tokens = model.tokenize(text_of(model, N_READ))
    config = model.network.config.__class__.from_dict(model.network.config.to_dict())
    plain = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").eval()
    plain.base_model.load_state_dict(model.network.state_dict())
    plain.tie_weights()
    given = torch.tensor(tokens.ids)[None]
    asked = GenerationConfig(max_new_tokens=N_WRITTEN, min_new_tokens=N_WRITTEN, do_sample=False)

    def theirs() -> torch.Tensor:
        with torch.inference_mode():
            written: torch.Tensor = plain.generate(
                given, attention_mask=torch.ones_like(given), generation_config=asked
            )
        return written

    def ours() -> attnviz.Trace:
        return generate(model, tokens, n_tokens=N_WRITTEN).trace

    if theirs()[0].tolist() != ours().tokens.ids.tolist():
        raise SystemExit("The two write different tokens; their times cannot be compared.")
    seconds = medians(RUNS, theirs=theirs, ours=ours)
    yield Measurement(
        what=f"{N_WRITTEN} tokens after {N_READ}, attention recorded / transformers' generate",
        value=seconds["ours"] / seconds["theirs"],
        budget=1.5,
        detail=f"{seconds['ours']:.1f} s / {seconds['theirs']:.1f} s, {SMOLLM2}",
    )
