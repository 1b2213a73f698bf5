"""Bundles that are valid in form but make no sense, or make more work than a model's own trace: one sentence each."""

import numpy as np
import pytest

from attnviz.bundle import bounds
from attnviz.bundle.bounds import MOST_ROLLOUT, MOST_WEIGHTS, MOST_WEIGHTS_OF_A_LAYER, check_sizes
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import LARGEST_BUNDLE
from attnviz.errors import BundleError
from tests.bundles import with_document
from tests.odd_bundles import bundle, long, odd, trace


class TestWork:
    """Counted by hand: layers, heads, tokens."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(bounds, "MOST_WEIGHTS_OF_A_LAYER", 3 * 5 * 5)
        monkeypatch.setattr(bounds, "MOST_WEIGHTS", 7 * 3 * 5 * 5)
        monkeypatch.setattr(bounds, "MOST_ROLLOUT", 7 * 5**3)

    @pytest.mark.parametrize(
        ("n_layer", "n_head", "n_token", "message"),
        [
            (7, 3, 5, None),
            (1, 4, 5, "attention weights in one layer for this text"),
            (2, 3, 6, "attention weights in one layer for this text"),
            (8, 3, 5, "attention weights for this text"),
            (8, 1, 5, "multiplications in a rollout through its layers for this text"),
        ],
    )
    def test_is_bounded(self, n_layer, n_head, n_token, message, types_unchecked):
        of = trace(n_layer, n_head, n_token)
        if message is None:
            check_sizes(of)
            return
        with pytest.raises(BundleError, match=f"^odd has 0 million {message}; .* Shorten the text.$"):
            check_sizes(of)

    @pytest.mark.parametrize(("name", "n_most"), [("MOST_HEADS", 6), ("MOST_TOKENS", 4)])
    def test_as_many_as_the_bound_are_within_it(self, name, n_most, monkeypatch):
        of = trace(2, 3, 4)
        monkeypatch.setattr(bounds, name, n_most)
        check_sizes(of)
        monkeypatch.setattr(bounds, name, n_most - 1)
        with pytest.raises(BundleError, match=f"a bundle holds at most {n_most - 1}"):
            check_sizes(of)

    def test_is_bounded_where_a_file_is_read(self, monkeypatch, types_unchecked):
        monkeypatch.setattr(bounds, "MOST_ROLLOUT", 10**9)
        monkeypatch.setattr(bounds, "MOST_WEIGHTS", 10**9)
        data = bundle(trace(9, 3, 5))
        monkeypatch.setattr(bounds, "MOST_ROLLOUT", 8 * 5**3)
        with pytest.raises(BundleError, match="multiplications in a rollout"):
            read_bundle(data)


@pytest.mark.parametrize(
    ("name", "n_layer", "n_head", "n_kv_head", "d_head", "longest"),
    [
        # as their configurations on the Hub say
        ("bert-base-uncased", 12, 12, 12, 64, 512),
        ("bert-large-uncased", 24, 16, 16, 64, 512),
        ("openai-community/gpt2", 12, 12, 12, 64, 1024),
        ("openai-community/gpt2-xl", 48, 25, 25, 64, 1024),
        ("answerdotai/ModernBERT-base", 22, 12, 12, 64, 8192),
        ("facebook/esm2_t30_150M_UR50D", 30, 20, 20, 32, 1024),
        ("HuggingFaceTB/SmolLM-135M", 30, 9, 3, 64, 2048),
        ("Qwen/Qwen2-0.5B", 24, 14, 2, 64, 131072),
        ("TinyLlama/TinyLlama-1.1B", 22, 32, 4, 64, 2048),
        ("meta-llama/Llama-3.2-1B", 16, 32, 8, 64, 131072),
        ("google/mobilebert-uncased", 24, 4, 4, 32, 512),
    ],
)
def test_a_trace_of_a_model_that_fits_into_the_bytes_fits_into_the_bounds(
    name, n_layer, n_head, n_kv_head, d_head, longest
):
    of_token = 4 * n_layer * (n_head + 2 * n_kv_head) * d_head  # queries, keys and values
    n_token = min(longest, 1024, LARGEST_BUNDLE // of_token)
    assert n_head * n_token**2 <= MOST_WEIGHTS_OF_A_LAYER
    assert n_layer * n_head * n_token**2 <= MOST_WEIGHTS
    assert n_layer * n_token**3 <= MOST_ROLLOUT


def changed(data, change):
    return with_document(data, change)


class TestNonsense:
    """Refused in one sentence."""

    @pytest.fixture(autouse=True)
    def as_users_run_it(self, types_unchecked):
        pass

    @pytest.mark.parametrize("scale", [0, 9e-7, 1.1e6])
    def test_a_scale_that_no_model_has(self, scale):
        data = changed(
            bundle(trace(2, 3, 6)), lambda of: of["attention"]["encoder"]["scale"].__setitem__(1, scale)
        )
        with pytest.raises(
            BundleError, match=r"damaged: a scale in it is missing, too small or too large\. Export"
        ):
            read_bundle(data)

    def test_a_tolerance_that_is_no_number(self):
        def forget(of):
            [weights] = [
                check for check in of["verification"]["checks"] if check["name"] == "attention weights"
            ]
            weights["tolerances"]["encoder"][0][1] = None

        with pytest.raises(BundleError, match=r"damaged: a tolerance in it is not a number\. Export"):
            read_bundle(changed(bundle(trace(2, 3, 6)), forget))

    @pytest.mark.parametrize("second", ["", " \n", "is there, without a token"])
    def test_a_pair_without_a_second_sentence(self, second):
        data = changed(bundle(trace(2, 3, 6)), lambda of: of["tokens"].update(text_pair=second))
        with pytest.raises(BundleError, match=r"damaged: its second text is empty\. Export"):
            read_bundle(data)

    def test_a_pair_whose_second_sentence_has_only_special_tokens(self):
        def second(of):
            of["tokens"].update(text_pair="a door", segment=[0, 0, 0, 0, 0, 1])  # the last token is [SEP]

        with pytest.raises(BundleError, match="its second text is empty"):
            read_bundle(changed(bundle(trace(2, 3, 6)), second))

    def test_a_mask_that_hides_everything(self):
        nothing = np.zeros((1, 6, 6), dtype=bool)
        with pytest.raises(
            BundleError, match=r"damaged: a mask in it hides every key from every query\. Export"
        ):
            read_bundle(bundle(trace(2, 3, 6, allowed=nothing)))
        in_one_head = np.ones((3, 6, 6), dtype=bool)
        in_one_head[1] = False
        with pytest.raises(BundleError, match="hides every key"):
            read_bundle(bundle(trace(2, 3, 6, allowed=in_one_head)))

    @pytest.mark.nightly
    def test_what_is_odd_but_possible_is_read(self):
        for name, data in (odd() | long()).items():
            assert read_bundle(data).trace.provenance.model == "odd", name
