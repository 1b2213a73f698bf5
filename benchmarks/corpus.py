"""A corpus: measuring every head on batches of texts, compared with plain forward passes; finding a token, with numpy."""

from collections.abc import Iterator

import numpy as np
import torch
from transformers import AutoModel

import attnviz
from attnviz.corpus.columns import COLUMNS
from attnviz.corpus.measuring import measured
from attnviz.corpus.token_index import N_NEAREST, scan, unit
from attnviz.maps.collection import bundled
from attnviz.model.batch import batches, padded
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from benchmarks.measurement import Measurement, medians

RUNS = 5
N_TOKEN = 1_000_000
D_HEAD = 32  # of a head of all-MiniLM-L6-v2
BLOCK = 65_536  # tokens that numpy compares at once


def measure() -> Iterator[Measurement]:
    """Both measurements."""
    yield from measured_heads()
    yield found_token()


def measured_heads() -> Iterator[Measurement]:
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


def found_token() -> Measurement:
    """The ten nearest of a million queries of a head, all compared; they are random, since the time does not depend on the numbers."""
    kept = unit(np.random.default_rng(0).standard_normal((N_TOKEN, D_HEAD), dtype=np.float32))
    given = kept[0]

    def compared() -> None:
        scan(kept, given[None], N_NEAREST)

    def by_numpy() -> None:
        blocks = range(0, N_TOKEN, BLOCK)
        cosines = np.concatenate([kept[start : start + BLOCK].astype(np.float32) @ given for start in blocks])
        np.argpartition(-cosines, N_NEAREST)[:N_NEAREST]

    seconds = medians(RUNS, compared=compared, by_numpy=by_numpy)
    return Measurement(
        what="finding a token among a million queries of a head / numpy",
        value=seconds["compared"] / seconds["by_numpy"],
        budget=1,
        detail=f"{1000 * seconds['compared']:,.0f} ms, numpy {1000 * seconds['by_numpy']:,.0f} ms",
    )
