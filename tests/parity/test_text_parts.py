"""Models that read images too: their text part is what the whole computes for a text, as transformers alone runs it."""

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file
from transformers import AutoModelForImageTextToText

import attnviz
from attnviz.errors import UnsupportedArchitectureError
from tests import tiny, tiny_tokenizers
from tests.tiers import first_gates

TEXT = "I was watching the door when it open"
IDS = torch.tensor([list(TEXT.encode())])


def saved(config: tf.PreTrainedConfig, folder, kind=None):
    """A checkpoint of random weights, with a head where a class is named."""
    torch.manual_seed(0)
    network = tf.AutoModel.from_config(config) if kind is None else kind(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=tiny.STEEP_STD, generator=generator)
    network.save_pretrained(folder)
    tiny_tokenizers.tokenizer("bytes").save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", first_gates(*tiny.TEXT_PARTS))
def test_the_text_part_gives_what_the_whole_gives(name, tiny_model, checkpoint):
    model = tiny_model(name)
    trace = model.trace(TEXT)
    whole = tf.AutoModel.from_pretrained(checkpoint(name), attn_implementation="eager").eval()
    if hasattr(whole, "lm_head") or name == "llama4":  # the class that transformers makes of it has a head
        part = whole.language_model.model
        states = []
        part.register_forward_hook(lambda _, __, output: states.append(output.last_hidden_state))
        with torch.inference_mode():
            output = whole(input_ids=torch.tensor(trace.tokens.ids)[None], output_attentions=True)
        [hidden] = states
    else:
        with torch.inference_mode():
            output = whole(input_ids=torch.tensor(trace.tokens.ids)[None], output_attentions=True)
        hidden = output.last_hidden_state
    assert trace.shape() == (tiny.ENCODER_LAYERS, 6)
    for layer, weights in enumerate(output.attentions):
        np.testing.assert_allclose(trace.layer_weights(layer), weights[0].numpy(), atol=1e-5)  # float32
    np.testing.assert_allclose(trace.last_hidden_state, hidden[0].numpy(), atol=1e-4, rtol=1e-4)
    assert np.ptp(trace.layer_weights(0)) > 0.2  # far from uniform, or wrong weights could hide
    report = attnviz.verify(model, trace)
    assert report.passed, report.failed


def test_its_language_head_gives_the_whole_s_logits(tmp_path):
    config = tiny.TEXT_PARTS["gemma3 that reads images"].config()
    folder = saved(config, tmp_path, tf.Gemma3ForConditionalGeneration)
    model = attnviz.load_model(str(folder))
    assert type(model.network) is tf.Gemma3TextModel
    whole = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="eager").eval()
    trace = model.trace(TEXT)
    ids = torch.tensor(trace.tokens.ids)[None]
    with torch.inference_mode():
        theirs = whole(input_ids=ids).logits[0]
        ours = model.language_head(inputs_embeds=torch.tensor(trace.last_hidden_state)[None]).logits[0]
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)
    assert not any(
        "vision" in name for name, _ in model.language_head.named_parameters()
    )  # memory that no text needs
    written = load_file(folder / "model.safetensors")
    beside = {part for part in written if "vision" in part or "projector" in part}
    account = model.weights.account
    assert account.n_used == len(written) - len(beside) > 0
    assert sum(account.parts.values()) == len(beside) > 0


def test_what_reads_no_text_alone_is_refused_in_a_sentence(tmp_path):
    images = tiny._IMAGES
    config = tf.CLIPConfig(
        text_config={
            "hidden_size": 10,
            "num_attention_heads": 2,
            "num_hidden_layers": 1,
            "intermediate_size": 17,
        },
        vision_config=images,
        projection_dim=10,
    )
    with pytest.raises(UnsupportedArchitectureError) as refused:
        attnviz.load_model(str(saved(config, tmp_path)))
    assert refused.value.reason == (
        "it reads images or sounds beside text, and its part for text does not run alone as it does within the whole"
    )


def test_a_part_that_gives_other_states_alone_is_refused(tmp_path, checkpoint, monkeypatch):
    """As where a family lets a text's tokens see later ones only within the whole."""
    forward = tf.Gemma3Model.forward

    def moved(self, input_ids=None, **given):
        return forward(self, inputs_embeds=1.01 * self.get_input_embeddings()(input_ids), **given)

    monkeypatch.setattr(tf.Gemma3Model, "forward", moved)
    with pytest.raises(UnsupportedArchitectureError, match="does not run alone as it does within the whole"):
        attnviz.load_model(str(checkpoint("gemma3 that reads images")))
