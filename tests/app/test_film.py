"""The film at the head of Step by step: its numbers are the model's, whatever the family, the text or its tokens."""

import re

import numpy as np
import pytest

from attnviz.figures.numbers import number_text
from tests.app.hostile import LABELS, TEXT, save_hostile_bert
from tests.app.screen import DOOR, assert_no_exception, component, errors, facts, open_bundle, open_page
from tests.numpy_attention import output, weights

PAGE = "pages/step_by_step.py"
LONG = " ".join(["the old door of the house by the river opened and nobody was watching it"] * 6)


def film(**params):
    at = open_page(PAGE, **params)
    assert_no_exception(at)
    return component(at, "head_film"), at


def numbers(drawn, name):
    return [row[name]["number"] for row in drawn["rows"]]


def read(text):
    """The number that a text on the screen holds."""
    match = re.fullmatch(r"(−?[\d.,]+)(?:\u00a0×\u00a010([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    assert match, text
    power = (match[2] or "⁰").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return float(match[1].replace("−", "-").replace(",", "")) * 10.0 ** int(power)


@pytest.mark.parametrize(
    ("step", "stage"),
    [(1, "Vector"), (3, "Query, key, value"), (4, "Scaling"), (6, "Softmax"), (7, "Output")],
)
def test_it_stands_where_the_step_of_the_page_does(step, stage):
    drawn, _ = film(step=step)
    assert drawn["stages"][drawn["begin"]]["name"] == stage


def test_every_number_is_the_models(door_trace):
    drawn, at = film(text=DOOR, layer=3, head=1, query=7, key=5)
    q, k, v = (getattr(door_trace, part)(3, 1) for part in ("query", "key", "value"))
    products = k.astype(np.float64) @ q[7]
    row = weights(q, k, 32**-0.5)[7]
    for name, expected in (("product", products), ("score", products / 32**0.5), ("weight", row)):
        np.testing.assert_allclose(numbers(drawn, name), expected, rtol=1e-4, atol=1e-5)  # sent with 5 digits
        texts = [key_row[name]["text"] for key_row in drawn["rows"]]
        np.testing.assert_allclose([read(text) for text in texts], expected, rtol=5.1e-3)  # three digits
    assert [key_row["label"] for key_row in drawn["rows"]] == [
        f"{token}·{at}" for at, token in enumerate(door_trace.tokens.labels)
    ]
    assert [key_row["picked"] for key_row in drawn["rows"]] == [at == 5 for at in range(11)]
    for own, name in ((k, "k"), (v, "v")):
        for key_row, vector in zip(drawn["rows"], own, strict=True):
            assert (key_row[name]["size"], key_row[name]["block"]) == (32, 1)
            np.testing.assert_allclose([read(text) for text in key_row[name]["texts"]], vector, rtol=5.1e-3)
            assert all(
                (tone - 32) * number >= 0 for tone, number in zip(key_row[name]["tones"], vector, strict=True)
            )
    made = output(q, k, v, 32**-0.5)[7]
    np.testing.assert_allclose([read(text) for text in drawn["output"]["texts"]], made, rtol=5.1e-3)
    np.testing.assert_allclose([read(text) for text in drawn["query"]["q"]["texts"]], q[7], rtol=5.1e-3)
    assert drawn["total"] == "1.00"
    exponentials = np.exp(products / 32**0.5 - products.max() / 32**0.5)
    np.testing.assert_allclose(numbers(drawn, "exponential"), exponentials, rtol=1e-4)
    assert read(drawn["exponentials"]) == pytest.approx(exponentials.sum(), rel=5.1e-3)

    stages = [facts(stage["caption"]) for stage in drawn["stages"]]
    assert (stages[2].quoted, stages[2].numbers) == (("it", "door"), ("23.4", "11"))  # of each key
    assert (stages[3].quoted, stages[3].numbers) == (("it", "door"), ("32", "5.66", "4.13"))
    assert (stages[4].quoted, stages[4].numbers) == (("it", "door"), ("1.00", "47.5%"))
    assert (stages[6].quoted, stages[6].heads) == (("it",), ((3, 1),))
    assert drawn["score"] == "q · k / √32"
    saved = component(at, "save_picture")["figures"]
    assert "head_film" in [picture["key"] for picture in saved]


def test_the_vector_is_what_the_layer_reads(embedded, door_trace):
    """Read from the model by a hook on its own module, by name."""
    import torch

    module, noted = embedded.reference.encoder.layer[3].attention.self, {}
    handle = module.register_forward_pre_hook(lambda _, given: noted.update(hidden=given[0][0]))
    with torch.inference_mode():
        embedded.reference(**embedded.inputs(door_trace.tokens))
    handle.remove()
    hidden = noted["hidden"].numpy()
    drawn, _ = film(text=DOOR, layer=3, head=1, query=7)
    assert drawn["first"] == 0
    x = drawn["query"]["x"]
    assert (x["size"], x["block"], len(x["texts"])) == (384, 6, 64)
    np.testing.assert_allclose([read(text) for text in x["first"]], hidden[7, :10], rtol=5.1e-3, atol=1e-5)
    blocks = [max(hidden[7, at : at + 6], key=abs) for at in range(0, 384, 6)]
    np.testing.assert_allclose([read(text) for text in x["texts"]], blocks, rtol=5.1e-3)
    for row, vector in zip(drawn["rows"], hidden, strict=True):
        assert read(row["x"]["first"][0]) == pytest.approx(vector[0], rel=5.1e-3, abs=1e-5)


def test_a_long_text_is_whole_in_its_sums(embedded):
    drawn, at = film(text=LONG, layer=3, head=4, query=30, key=0)
    trace = embedded.trace(LONG)
    row = trace.weights(3, 4)[30]
    assert len(drawn["rows"]) == 13
    others = drawn["rows"][-1]
    hidden = np.sort(row[1:])[: len(row) - 12]
    assert others["label"] == f"{len(row) - 12} others"
    assert others["weight"]["number"] == pytest.approx(hidden.sum(), rel=1e-3)
    assert sum(numbers(drawn, "weight")) == pytest.approx(1, abs=1e-3)
    summed = sum(key_row["weight"]["number"] * read(key_row["v"]["first"][0]) for key_row in drawn["rows"])
    assert summed == pytest.approx(trace.output(3, 4)[30, 0], abs=5e-3)  # values with three digits
    assert others["k"] is others["product"] is others["score"] is None
    listed = "12", str(len(row)), str(len(row) - 12), f"{100 * hidden.sum():.1f}%"
    assert any(facts(line.value).has(*listed) for line in at.caption)
    assert facts(drawn["stages"][6]["caption"]).numbers[-1] == str(len(row) - 12)


def test_a_bundle_begins_with_the_query(door_bundle):
    at = open_bundle(open_page(PAGE), door_bundle)
    assert_no_exception(at)
    drawn = component(at, "head_film")
    assert drawn["first"] == 1
    assert drawn["query"]["x"] is None and {row["x"] for row in drawn["rows"]} == {None}
    assert "x W_Q" not in drawn["stages"][1]["caption"]


def family(monkeypatch, folder, **params):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    return film(model=folder.name, **{"text": "the cat sat on it"} | params)[0]


def test_a_causal_mask(checkpoint, monkeypatch):
    drawn = family(monkeypatch, checkpoint("gpt2"), text="a cat sat", query=2, key=4)
    assert [row["score"]["text"] == "masked" for row in drawn["rows"]] == [False] * 3 + [True] * (
        len(drawn["rows"]) - 3
    )
    assert all(row["product"]["number"] is not None for row in drawn["rows"])
    assert set(numbers(drawn, "weight")[3:]) == {0}
    assert "masked" in drawn["stages"][3]["caption"]


def test_rotary_positions(checkpoint, tiny_model, monkeypatch):
    """Products of rotated vectors; no formula without the rotation is claimed."""
    drawn = family(monkeypatch, checkpoint("llama"), text="a cat sat", layer=1, head=3, query=2)
    trace = tiny_model("llama").trace("a cat sat")
    expected = trace.key(1, 3).astype(np.float64) @ trace.query(1, 3)[2]
    np.testing.assert_allclose(numbers(drawn, "product"), expected, rtol=1e-3, atol=1e-4)
    assert "x W_Q" not in drawn["stages"][1]["caption"]


def test_a_bias_and_another_scale(checkpoint, tiny_model, monkeypatch):
    drawn = family(
        monkeypatch, checkpoint("t5"), second="a door", kind="encoder", layer=2, head=1, query=1, key=3
    )
    trace = tiny_model("t5").trace("the cat sat on it", "a door")
    bias = trace.attention(2, "encoder").bias[1, 1]
    added = np.array(numbers(drawn, "score")) - numbers(drawn, "product")
    np.testing.assert_allclose(added, bias, atol=2e-3)  # of numbers up to 20 with five digits
    assert np.abs(bias).max() > 0.01
    assert drawn["score"] == "q · k + bias"
    in_stage = facts(drawn["stages"][3]["caption"]).numbers
    assert in_stage[0] == "1"  # this model's scale
    assert in_stage[2] == number_text(float(bias[3]))
    assert "bias for their distance, " in drawn["stages"][3]["caption"]


def test_a_bias_of_what_the_tokens_are_too(checkpoint, monkeypatch):
    drawn = family(monkeypatch, checkpoint("deberta-v2"), layer=2, head=1, query=1, key=3)
    assert "bias for their distance and contents, " in drawn["stages"][3]["caption"]


def test_cross_attention_reads_two_texts(checkpoint, monkeypatch):
    drawn = family(monkeypatch, checkpoint("bart"), second="a door", kind="cross", query=1)
    assert drawn["first"] == 0
    assert drawn["query"]["x"]["first"] not in [row["x"]["first"] for row in drawn["rows"]]


def test_tokens_are_literal(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(save_hostile_bert(tmp_path / "hostile")))
    drawn, at = film(model="hostile", layer=2, text=TEXT, query=3, key=7)
    assert errors(at) == []
    assert drawn["query"]["label"] == "<b>·3"
    assert facts(drawn["stages"][2]["caption"]).quoted == ("<b>", "$x^2$")
    labels = [row["label"] for row in drawn["rows"]]
    assert set(labels[:-1]) <= {
        f"{label if len(label) <= 14 else f'{label[:9]}…{label[-4:]}'}·{at}"
        for at, label in enumerate(["[CLS]", "the", *LABELS, "door", "[SEP]"])
    }
