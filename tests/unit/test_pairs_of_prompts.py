"""What is computed of each line of a set of prompts: of the difference of both answers, on the clean prompt."""

import pytest
import torch
import transformers as tf

from attnviz.effects.over_pairs import attribute_pair
from attnviz.effects.prompts import PromptPair

PAIR = PromptPair(clean="cats sat", corrupted="mats sat", answer="c", wrong_answer="m")


def test_direct_effects_are_those_of_the_difference(headed):
    model, folder = headed("gpt2")
    shares = []
    effects = attribute_pair(model, PAIR, progress=shares.append)
    theirs = tf.AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits = theirs(**model.inputs(model.tokenize("cats sat"))).logits[0, -1]
    first, second = model.tokenizer.convert_tokens_to_ids(["c", "m"])
    assert effects.total == pytest.approx(float(logits[first] - logits[second]), abs=1e-4)
    assert shares == [0.5]
