"""What attention costs: against paper, cells that are counted one by one, and torch's own counter of operations."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnviz.cost.counting import TILE, Layer
from attnviz.cost.streaming import streaming_attention
from attnviz.figures.cost import Growth, draw_growth, quantity_text
from attnviz.maths.attention import attention_output
from attnviz.maths.blocks import attention_output_in_blocks

N_HEAD, D_HEAD, D_VALUE = 3, 5, 7


def layer(*, reach: int = 2, causal: bool = False) -> Layer:
    return Layer(n_head=N_HEAD, d_head=D_HEAD, d_value=D_VALUE, number_bytes=4, reach=reach, causal=causal)


def test_on_paper():
    """11 tokens: 121 cells a head; a window of 5 keys loses 2 + 1 at either end; 64 keys at a time are all."""
    costs = {
        way: [layer().cost(of, way, 11, 11) for of in ("cells", "bytes", "multiplications")]
        for way in ("whole", "window", "streaming")
    }
    assert costs["whole"] == [3 * 121, 3 * 121 * 4, 3 * 121 * 12]
    assert costs["window"] == [3 * 49, 3 * 49 * 4, 3 * 49 * 12]
    assert costs["streaming"] == [3 * 121, 3 * (121 + 2 * 11) * 4, 3 * 121 * 12]


def test_of_a_million_tokens_on_paper():
    bert = Layer(n_head=12, d_head=64, d_value=64, number_bytes=4, reach=256, causal=False)
    n = 10**6
    assert bert.cost("bytes", "whole", n, n) == 48 * 10**12
    assert bert.cost("multiplications", "whole", n, n) == 1_536 * 10**12
    assert bert.cost("bytes", "streaming", n, n) == 12 * 66 * 4 * 10**6
    assert bert.cost("cells", "window", n, n) == 12 * (513 * n - 256 * 257)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "reach"), [(1, 0), (1, 3), (7, 0), (7, 3), (7, 6), (7, 7), (13, 500)])
def test_cells_of_a_window_counted_one_by_one(n, reach, causal):
    seen = [
        (query, key)
        for query in range(n)
        for key in range(n)
        if abs(query - key) <= reach and not (causal and key > query)
    ]
    assert layer(reach=reach, causal=causal).cost("cells", "window", n, n) == N_HEAD * len(seen)


@pytest.mark.parametrize(("n_query", "n_key"), [(1, 1), (11, 13), (67, 131)])
def test_torch_counts_as_many_multiplications(n_query, n_key):
    query, key, value = (
        torch.randn(N_HEAD, n, d) for n, d in ((n_query, D_HEAD), (n_key, D_HEAD), (n_key, D_VALUE))
    )
    for way, run in {
        "whole": lambda: attention_output(query, key, value, 0.5),
        "rows": lambda: attention_output_in_blocks(query, key, value, 0.5),
        "streaming": lambda: streaming_attention(query, key, value, 0.5, tile=TILE),
    }.items():
        with FlopCounterMode(display=False) as counter:
            run()
        expected = layer().cost("multiplications", "whole" if way == "rows" else way, n_query, n_key)
        assert counter.get_total_flops() == 2 * expected, way  # a product and its addition are two operations


def test_of_a_recorded_layer(door_trace, tiny_model):
    recorded = Layer.of(door_trace, 3, "encoder", reach=5)
    assert recorded == Layer(n_head=12, d_head=32, d_value=32, number_bytes=4, reach=5, causal=False)
    decoder = tiny_model("gpt2").trace("the cat sat")
    assert Layer.of(decoder, 0, "decoder", reach=1).causal


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0, "bytes", "0\u00a0B"),
        (484, "bytes", "484\u00a0B"),
        (5808, "bytes", "5.81\u00a0kB"),
        (999_999, "bytes", "1\u00a0MB"),
        (48e12, "bytes", "48\u00a0TB"),
        (999_999, "count", "999,999"),
        (1_450_000_000, "count", "1.45\u00a0billion"),
        (7.68e14, "count", "768\u00a0trillion"),
        (4e-5, "seconds", "40\u00a0µs"),
        (0.0123, "seconds", "12.3\u00a0ms"),
        (17.6, "seconds", "17.6\u00a0s"),
    ],
)
def test_numbers_in_words(number, unit, text):
    assert quantity_text(number, unit) == text


def test_a_figure_of_one_point_has_axes():
    lengths = np.array([64])
    figure = draw_growth(
        [Growth(way="rows", n_token=lengths, cost=lengths / 7.0, measured=True)],
        what="time",
        unit="seconds",
    )
    low, high = figure.layout.yaxis.range
    assert low < np.log10(64 / 7) < high
