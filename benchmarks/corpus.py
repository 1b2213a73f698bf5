"""A corpus: measuring every head on batches of texts, beside plain forward passes of the same batches."""

from collections.abc import Iterator

import torch
from transformers import AutoModel

import attnviz
from attnviz.corpus.columns import COLUMNS
from attnviz.corpus.measuring import measured
from attnviz.maps.collection import bundled
from attnviz.model.batch import batches, padded
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from benchmarks.measurement import Measurement, medians

RUNS = 5


def measure() -> Iterator[Measurement]:
    """The bundled sentences, in batches, through both bundled models."""
    texts = bundled().splitlines()
    for name in (EMBEDDED, SMOLLM2):
        model = attnviz.load_model(name)
        read = [model.read(text) for text in texts if text.strip()]
        groups = list(batches([len(tokens) for tokens, _ in read]))
        given = [padded(model.network, [model.inputs(*read[number]) for number in group]) for group in groups]
        config = model.network.config.__class__.from_dict(model.network.config.to_dict())
        plain = AutoModel.from_config(config, attn_implementation="sdpa").eval()
        plain.load_state_dict(model.network.state_dict())

        def forward(plain: torch.nn.Module = plain, given: list = given) -> None:
            with torch.inference_mode():
                for given_inputs in given:
                    plain(**given_inputs)

        def heads(model: attnviz.Model = model, read: list = read, groups: list = groups) -> None:
            for group in groups:
                measured(model, [read[number] for number in group], COLUMNS)

        seconds = medians(RUNS, forward=forward, heads=heads)
        yield Measurement(
            what=f"corpus, every head measured / plain batched forward passes, {name}",
            value=seconds["heads"] / seconds["forward"],
            budget=1 / 0.6,
            detail=f"{len(read) / seconds['heads']:,.0f} texts a second, {len(read) / seconds['forward']:,.0f} plain",
        )
