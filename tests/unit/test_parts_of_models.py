"""Checkpoints that are only a part of a model, or several joined: shown as transformers computes them, or refused for what they are."""

import json

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

import attnviz
from attnviz.errors import AttnvizError, ModelNotAvailableError, UnsupportedArchitectureError
from tests import tiny

SAFE = "model.safetensors"
VISION = {"hidden_size": 20, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 7}
VISION |= {"image_size": 8, "patch_size": 4}


def save(network, family, folder):
    """The network as it is saved, with numbers large enough to be told apart, beside the family's tokenizer."""
    torch.manual_seed(5)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "embed_positions" not in name:
                parameter.normal_(std=0.4)
    network.eval().save_pretrained(folder)
    tiny.tokenizer(tiny.TEXT_FAMILIES[family].tokenizer).save_pretrained(folder)
    return folder


def config_of(family, **changes):
    config = tiny.TEXT_FAMILIES[family].config()
    for name, value in changes.items():
        setattr(config, name, value)
    return config


def refusal(folder, kind=AttnvizError):
    with pytest.raises(kind) as caught:
        attnviz.load_model(str(folder))
    message = str(caught.value)
    assert str(folder) not in message and "\n" not in message and message.endswith(".")
    assert "Unrecognized" not in message
    return message


@pytest.mark.parametrize(
    ("family", "alone", "network"),
    [
        ("t5", tf.T5EncoderModel, tf.T5EncoderModel),
        ("umt5", tf.UMT5EncoderModel, tf.UMT5EncoderModel),
        ("t5gemma", tf.T5GemmaEncoderModel, tf.T5GemmaEncoderModel),
        ("t5", tf.T5EncoderModel, tf.T5ForTokenClassification),
    ],
)
def test_an_encoder_alone_is_shown_as_transformers_computes_it(family, alone, network, tmp_path):
    changes = {"is_encoder_decoder": False} if family == "t5gemma" else {}
    save(network(config_of(family, **changes)), family, tmp_path)
    model = attnviz.load_model(str(tmp_path))
    trace = model.trace("the door opened")
    assert trace.kinds == ("encoder",) and trace.n_layers("encoder") == tiny.ENCODER_LAYERS
    assert attnviz.verify(model, trace).passed
    reference = alone.from_pretrained(tmp_path, attn_implementation="eager").eval()
    with torch.inference_mode():
        theirs = reference(torch.tensor([trace.tokens.ids.tolist()]), output_attentions=True)
    np.testing.assert_allclose(trace.last_hidden_state, theirs.last_hidden_state[0], rtol=1e-4, atol=1e-5)
    for layer, weights in enumerate(theirs.attentions):
        np.testing.assert_allclose(trace.layer_weights(layer), weights[0], atol=1e-6)


def test_a_model_without_some_of_its_decoder_is_no_encoder(tmp_path):
    """A damaged decoder is not left out without a word."""
    save(tf.T5ForConditionalGeneration(config_of("t5")), "t5", tmp_path)
    kept = {
        name: tensor for name, tensor in load_file(tmp_path / SAFE).items() if "decoder.block.2" not in name
    }
    save_file(kept, tmp_path / SAFE, metadata={"format": "pt"})
    assert "lacks 13 of the model's tensors, such as decoder.block.2.layer.0" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("family", "network"),
    [("bart", tf.BartForCausalLM), ("marian", tf.MarianForCausalLM), ("pegasus", tf.PegasusForCausalLM)],
)
def test_a_decoder_alone_has_the_decoder_s_layers(family, network, tmp_path):
    """Its configuration counts the layers of the encoder too, which are 3; the decoder has 4."""
    save(network(config_of(family)), family, tmp_path)
    model = attnviz.load_model(str(tmp_path))
    trace = model.trace("the door opened")
    assert trace.kinds == ("decoder",) and trace.n_layers("decoder") == tiny.DECODER_LAYERS
    assert attnviz.verify(model, trace).passed
    whole = network.from_pretrained(tmp_path, attn_implementation="eager").eval()
    with torch.inference_mode():
        ids = torch.tensor([trace.tokens.ids.tolist()])
        theirs = whole(ids, output_attentions=True, use_cache=False).attentions
    for layer, weights in enumerate(theirs):
        np.testing.assert_allclose(trace.layer_weights(layer), weights[0], atol=1e-6)


@pytest.mark.parametrize(
    ("family", "network", "is_cut"),
    [
        ("marian", tf.MarianMTModel, False),
        ("pegasus", tf.PegasusForConditionalGeneration, True),
    ],
)
def test_positions_that_a_class_computes_need_not_be_in_the_file(family, network, is_cut, tmp_path):
    """MarianMTModel's save_pretrained leaves its sines and cosines out, as all opus-mt checkpoints do."""
    save(network(config_of(family)), family, tmp_path)
    if is_cut:  # as older versions of transformers saved it
        kept = {
            name: tensor
            for name, tensor in load_file(tmp_path / SAFE).items()
            if "embed_positions" not in name
        }
        save_file(kept, tmp_path / SAFE, metadata={"format": "pt"})
    assert not any("embed_positions" in name for name in load_file(tmp_path / SAFE))
    model = attnviz.load_model(str(tmp_path))
    trace = model.trace("the door opened", "it sat")
    assert attnviz.verify(model, trace).passed
    whole = network.from_pretrained(tmp_path, attn_implementation="eager").eval()
    given = {"input_ids": trace.tokens.ids, "decoder_input_ids": trace.target_tokens.ids}
    with torch.inference_mode():
        inputs = {name: torch.tensor([ids.tolist()]) for name, ids in given.items()}
        theirs = whole.model(**inputs, use_cache=False)
    np.testing.assert_allclose(trace.last_hidden_state, theirs.last_hidden_state[0], rtol=1e-4, atol=1e-5)


def test_learned_positions_must_be_in_the_file(tmp_path):
    save(tf.BartModel(config_of("bart")), "bart", tmp_path)
    kept = {
        name: tensor for name, tensor in load_file(tmp_path / SAFE).items() if "embed_positions" not in name
    }
    save_file(kept, tmp_path / SAFE, metadata={"format": "pt"})
    assert "lacks 2 of the model's tensors, such as decoder.embed_positions.weight" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("family", "name", "facts"),
    [
        (
            "bart",
            "BartEncoder",
            ("names BartEncoder", "none of the tensors of BartModel", "embed_positions.weight"),
        ),
        ("marian", "MarianDecoder", ("names MarianDecoder", "none of the tensors of MarianModel")),
        ("t5", "T5Stack", ("names T5Stack", "none of the tensors of T5EncoderModel")),
        ("m2m-100", "M2M100Encoder", ("names M2M100Encoder", "none of the tensors of M2M100Model")),
        ("bert", "BertEncoder", ("none of the tensors of BertModel", "layer.0.")),
        (
            "bart",
            "BartDecoderWrapper",
            ("names BartDecoderWrapper", "only a part of BartModel", "it has no encoder ("),
        ),
        ("marian", "MarianDecoderWrapper", ("only a part of MarianModel", "it has no encoder (")),
    ],
)
def test_another_part_of_a_model_is_called_one(family, name, facts, tmp_path):
    config = config_of(family)
    module = __import__(type(tf.AutoModel.from_config(config)).__module__, fromlist=[name])
    part = getattr(module, name)(config)
    if isinstance(part, tf.PreTrainedModel):
        save(part, family, tmp_path)
    else:  # a mere module
        save(tf.AutoModel.from_config(config), family, tmp_path)
        save_file(part.state_dict(), tmp_path / SAFE, metadata={"format": "pt"})
    message = refusal(tmp_path, ModelNotAvailableError)
    assert all(fact in message for fact in facts), message
    assert "random numbers" not in message


def test_a_prefix_of_a_training_s_own_is_told(tmp_path):
    """As trl's AutoModelForCausalLMWithValueHead writes it."""
    save(tf.LlamaForCausalLM(config_of("llama")), "llama", tmp_path)
    named = {f"pretrained_model.{name}": tensor for name, tensor in load_file(tmp_path / SAFE).items()}
    save_file(named, tmp_path / SAFE, metadata={"format": "pt"})
    message = refusal(tmp_path)
    assert "none of the tensors of LlamaModel, but others, such as pretrained_model." in message


BERT = tiny.BERT
COMPOSED = {
    "bert2bert": (
        lambda: tf.EncoderDecoderConfig.from_encoder_decoder_configs(
            tf.BertConfig(**BERT), tf.BertConfig(**BERT)
        ),
        ("family encoder-decoder", "joins two models", "model.encoder.save_pretrained"),
    ),
    "bert2gpt2": (
        lambda: tf.EncoderDecoderConfig.from_encoder_decoder_configs(
            tf.BertConfig(**BERT), tiny.TEXT_FAMILIES["gpt2"].config()
        ),
        ("family encoder-decoder", "joins two models"),
    ),
    "vision": (
        lambda: tf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
            tf.ViTConfig(**VISION), tf.BertConfig(**BERT)
        ),
        ("family vision-encoder-decoder", "reads images"),
    ),
    "speech": (
        lambda: tf.SpeechEncoderDecoderConfig.from_encoder_decoder_configs(
            tf.Wav2Vec2Config(), tf.BertConfig(**BERT)
        ),
        ("family speech-encoder-decoder", "reads speech"),
    ),
    "rag": (
        lambda: tf.RagConfig.from_question_encoder_generator_configs(
            tf.DPRConfig(**BERT), tiny.TEXT_FAMILIES["bart"].config()
        ),
        ("family rag", "searches documents"),
    ),
    "siglip's text": (tf.SiglipTextConfig, ("family siglip_text_model", "AutoModel has no network of it")),
    "BLIP's text": (tf.BlipTextConfig, ("family blip_text_model", "AutoModel has no network of it")),
    "musicgen's decoder": (
        tf.MusicgenDecoderConfig,
        ("family musicgen_decoder", "AutoModel has no network of it"),
    ),
    "whisper": (tf.WhisperConfig, ("family whisper", "reads audio and text")),
    "DPR": (lambda: tf.DPRConfig(**BERT), ("family dpr", "one vector for a text")),
}


@pytest.mark.parametrize(("config", "facts"), COMPOSED.values(), ids=COMPOSED)
def test_what_joins_models_is_refused_for_what_it_is(config, facts, tmp_path):
    save(tf.BertModel(tf.BertConfig(**BERT)), "bert", tmp_path)  # its weights are not looked at
    config().save_pretrained(tmp_path)
    message = refusal(tmp_path, UnsupportedArchitectureError)
    assert all(fact in message for fact in facts), message
    assert "Save it again" not in message


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        ({"hidden_size": 3}, ("names no family (model_type)",)),
        ({"error": "Repository not found"}, ("names no family (model_type)",)),
        ({"model_type": "mymodel"}, ("is of the family mymodel", "does not know")),
        ({"model_type": "mymodel", "auto_map": {"AutoConfig": "a.B"}}, ("running its own code",)),
        (
            {"architecture": "vit_tiny", "pretrained_cfg": {}, "num_classes": 2},
            ("requires the timm library", "Install it"),
        ),
        ([1], ("config.json of mine is not a JSON object",)),
    ],
)
def test_a_configuration_of_something_else(written, facts, tmp_path):
    folder = tmp_path / "mine"
    save(tf.BertModel(tf.BertConfig(**BERT)), "bert", folder)
    (folder / "config.json").write_text(json.dumps(written))
    message = refusal(folder)
    assert all(fact in message for fact in facts), message
    assert "save_pretrained, or select" not in message


@pytest.mark.parametrize(
    ("made", "facts"),
    [
        (("0_Transformer", "1_Pooling"), ("a checkpoint is in the folder 0_Transformer",)),
        (("text_encoder", "unet"), ("a checkpoint is in the folder text_encoder",)),
    ],
)
def test_a_checkpoint_in_a_folder_of_the_folder(made, facts, tmp_path):
    inner, other = (tmp_path / name for name in made)
    save(tf.BertModel(tf.BertConfig(**BERT)), "bert", inner)
    other.mkdir()
    (other / "config.json").write_text("{}")
    message = refusal(tmp_path)
    assert all(fact in message for fact in facts), message
    model = attnviz.load_model(str(inner))
    assert attnviz.verify(model, model.trace("the door")).passed
