"""What a configuration says of layers, positions and tokens, as transformers' classes write it."""

from types import SimpleNamespace as Config

import pytest

from attnviz.errors import UnsupportedArchitectureError
from attnviz.model.configuration import decoder_start, end_ids, layer_count, position_limit, text_config
from attnviz.model.families import _refuse_positions


@pytest.mark.parametrize(
    ("config", "encoder", "decoder"),
    [
        (Config(is_encoder_decoder=False, num_hidden_layers=12), 12, 12),
        (Config(is_encoder_decoder=True, num_hidden_layers=6, decoder_layers=4), 6, 4),  # BART
        (Config(is_encoder_decoder=True, num_hidden_layers=6, num_decoder_layers=3), 6, 3),  # T5
        (
            Config(  # T5Gemma, whose sides have configurations of their own
                is_encoder_decoder=True,
                num_hidden_layers=99,
                encoder=Config(num_hidden_layers=5),
                decoder=Config(num_hidden_layers=7),
            ),
            5,
            7,
        ),
        # what is called encoder in a model that only decodes is none
        (Config(is_encoder_decoder=False, num_hidden_layers=2, encoder=Config(num_hidden_layers=9)), 2, 2),
    ],
)
def test_layers_are_counted_on_each_side(config, encoder, decoder):
    assert layer_count(config, "encoder") == encoder
    assert layer_count(config, "decoder") == layer_count(config, "cross") == decoder


def network(config, padding=None):
    tables = {} if padding is None else {"position_embeddings": Config(padding_idx=padding)}
    return Config(config=Config(**{"is_encoder_decoder": False} | config), embeddings=Config(**tables))


@pytest.mark.parametrize(
    ("config", "padding", "limit"),
    [
        ({"max_position_embeddings": 512}, None, 512),
        ({"max_position_embeddings": 514}, 1, 512),  # RoBERTa counts from the padding token on
        ({"max_position_embeddings": -1}, None, None),  # XLNet
        ({"max_position_embeddings": 0}, None, None),
        ({"max_position_embeddings": 1}, None, 1),
        ({}, None, None),
        # BigBird: (5 + 2 x 3) blocks of 64
        (
            {
                "max_position_embeddings": 4096,
                "attention_type": "block_sparse",
                "num_random_blocks": 3,
                "block_size": 64,
            },
            None,
            704,
        ),
        (
            {
                "max_position_embeddings": 500,
                "attention_type": "block_sparse",
                "num_random_blocks": 3,
                "block_size": 64,
            },
            None,
            500,
        ),
        ({"attention_type": "block_sparse", "num_random_blocks": 1, "block_size": 16}, None, 112),
        (
            {
                "max_position_embeddings": 4096,
                "attention_type": "original_full",
                "num_random_blocks": 3,
                "block_size": 64,
            },
            None,
            4096,
        ),
    ],
)
def test_the_number_of_positions(config, padding, limit):
    assert position_limit(network(config, padding)) == limit


def test_positions_of_a_nested_encoder_are_those_of_the_text():
    nested = {
        "is_encoder_decoder": True,
        "encoder": Config(max_position_embeddings=32),
        "decoder": Config(max_position_embeddings=64),
    }
    assert position_limit(network(nested)) == 32


def test_a_decoder_starts_as_its_configurations_say():
    """In the order of `generate`, and where that fails in the order of the model's own training."""
    whole = Config(is_encoder_decoder=True, decoder_start_token_id=2, bos_token_id=9)
    assert decoder_start(Config(config=whole)) == 2
    for generation, start in (
        (Config(decoder_start_token_id=0, bos_token_id=5), 0),
        (Config(decoder_start_token_id=[4], bos_token_id=5), 4),
        (Config(decoder_start_token_id=None, bos_token_id=5), 5),
        (Config(decoder_start_token_id=None, bos_token_id=None), 2),
    ):
        assert decoder_start(Config(config=whole, generation_config=generation)) == start
    silent = Config(is_encoder_decoder=True, bos_token_id=9)
    nested = Config(is_encoder_decoder=True, encoder=Config(bos_token_id=3), decoder=Config(bos_token_id=4))
    assert decoder_start(Config(config=nested)) == 4
    for without in (silent, Config(is_encoder_decoder=True, decoder=Config(bos_token_id=None))):
        with pytest.raises(
            UnsupportedArchitectureError, match=r"Set decoder_start_token_id in its generation_config\.json"
        ):
            decoder_start(Config(config=without))


def test_a_text_ends_with_any_of_the_tokens_that_generate_ends_with():
    """`generate` does not look at the configuration of the network."""
    for ends, expected in ((2, {2}), ([7, 2, 5], {2, 5, 7}), (None, set())):
        assert (
            end_ids(Config(config=Config(eos_token_id=9), generation_config=Config(eos_token_id=ends)))
            == expected
        )


def test_the_part_that_reads_text():
    inner = Config()
    assert text_config(Config(text_config=inner)) is inner
    whole = Config(text_config=None)
    assert text_config(whole) is whole


@pytest.mark.parametrize(
    ("kind", "family", "has_rope", "is_refused"),
    [
        (None, "bert", False, False),
        ("absolute", "bert", False, False),
        ("relative_key", "bert", False, True),
        ("relative_key_query", "roberta", False, True),
        ("rotary", "bert", False, True),
        ("rotary", "esm", False, False),
        ("rotary", "llama", True, False),
        ("rope", "llama", True, False),
        ("nope", "granitemoehybrid", False, False),
        ("nope", "llama", True, True),
        ("a_relative_key", "bert", False, True),
    ],
)
def test_positions_that_a_class_does_not_compute_are_refused(kind, family, has_rope, is_refused):
    config = Config(
        model_type=family, position_embedding_type=kind, **{"rope_parameters": {}} if has_rope else {}
    )
    if not is_refused:
        assert _refuse_positions("mine", config) is None
        return
    with pytest.raises(UnsupportedArchitectureError) as caught:
        _refuse_positions("mine", config)
    paper = " (Shaw et al. 2018, arXiv:1803.02155)" if kind.startswith("relative_key") else ""
    assert caught.value.reason == (
        f"its positions are of the type {kind}{paper}, which transformers does not compute for {family}"
    )
    assert caught.value.reason in str(caught.value)
