"""Attention from elsewhere is shown as it is, and never called checked."""

import io
from base64 import b64decode

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoModel

import attnviz
from attnviz.viewer.data import measures, stage_data

TEXT = "I was watching the door when it opened."


@pytest.fixture(scope="module")
def outputs(embedded):
    model = AutoModel.from_pretrained(embedded.folder, attn_implementation="eager")
    return model(**embedded.tokenizer(TEXT, return_tensors="pt"), output_attentions=True)


@pytest.fixture(scope="module")
def labels(embedded):
    return embedded.tokenizer.convert_ids_to_tokens(embedded.tokenizer(TEXT)["input_ids"])


def rows(*shape, seed=0):
    """Random rows that sum to 1."""
    numbers = np.random.default_rng(seed).random(shape)
    return numbers / numbers.sum(axis=-1, keepdims=True)


def test_weights_stay_as_they_are(outputs, labels):
    trace = attnviz.Trace.from_arrays(labels, weights=outputs.attentions)
    for layer, weights in enumerate(outputs.attentions):
        np.testing.assert_array_equal(trace.layer_weights(layer), weights[0].detach().numpy())
    assert trace.shape() == (6, 12) and trace.kinds == ("encoder",)
    assert trace.tokens.labels[7] == "it" and trace.tokens.is_special.tolist() == [True] + 9 * [False] + [
        True
    ]
    pattern = trace.pattern(3, 1)
    assert pattern.scores is None and measures(trace, "encoder") == ("weights", "rollout")
    mean = torch.stack([of_layer[0].mean(dim=0) for of_layer in outputs.attentions]).detach()
    expected = torch.eye(len(labels))
    for of_layer in mean[:3]:  # Abnar and Zuidema 2020, with the residual stream as half of each row
        expected = (of_layer + torch.eye(len(labels))) / 2 @ expected
    np.testing.assert_allclose(trace.rollout(2), expected, atol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        lambda weights: weights,
        lambda weights: list(weights),
        lambda weights: [weights[0][None], weights[1][None]],
        lambda weights: torch.tensor(weights, dtype=torch.float64, requires_grad=True),
        lambda weights: weights.tolist(),
    ],
)
def test_arrays_of_any_library_and_form(given):
    weights = rows(2, 3, 4, 4).astype(np.float32)
    trace = attnviz.Trace.from_arrays(list("abcd"), weights=given(weights))
    assert trace.shape() == (2, 3)
    np.testing.assert_array_equal(trace.weights(1, 2), weights[1, 2])


def test_a_decoder_is_told_by_what_no_query_sees():
    weights = np.tril(rows(1, 2, 3, 3))
    weights /= weights.sum(axis=-1, keepdims=True)
    trace = attnviz.Trace.from_arrays(["a", "b", "c"], weights=weights)
    assert trace.kinds == ("decoder",) and not trace.pattern(0, 0).allowed[0, 1]
    assert attnviz.Trace.from_arrays(["a", "b", "c"], weights=weights, kind="encoder").kinds == ("encoder",)


def test_cross_attention_has_tokens_of_its_own():
    trace = attnviz.Trace.from_arrays(["a", "b"], key_tokens=["x", "y", "z"], weights=rows(2, 2, 2, 3))
    pattern = trace.pattern(0, 1)
    assert (
        trace.kinds == ("cross",)
        and pattern.queries.labels == ("a", "b")
        and pattern.keys.labels == ("x", "y", "z")
    )


def test_queries_and_keys_give_scores_and_weights():
    draw = np.random.default_rng(0)
    query, key, value = (draw.standard_normal((2, 3, 4, 8)).astype(np.float32) for _ in range(3))
    trace = attnviz.Trace.from_arrays(list("abcd"), queries=query, keys=key, values=value)
    scores = query[1, 2].astype(np.float64) @ key[1, 2].T.astype(np.float64) / np.sqrt(8)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(trace.scores(1, 2), scores, rtol=1e-5)
    np.testing.assert_allclose(trace.weights(1, 2), weights, rtol=1e-5)
    np.testing.assert_allclose(trace.output(1, 2), weights @ value[1, 2], rtol=1e-4, atol=1e-5)
    given = attnviz.Trace.from_arrays(list("abcd"), weights=rows(2, 3, 4, 4), values=value)
    np.testing.assert_allclose(given.output(1, 2), rows(2, 3, 4, 4)[1, 2] @ value[1, 2], rtol=1e-5)


def test_nothing_calls_them_the_model_s(outputs, labels, embedded, tmp_path):
    trace = attnviz.Trace.from_arrays(labels, weights=outputs.attentions, name="from elsewhere")
    with pytest.raises(attnviz.VerificationError, match="your numbers, not compared"):
        attnviz.verify(embedded, trace)
    page = trace.save_html(tmp_path / "page.html", 3, 1).read_text(encoding="utf-8")
    assert "your numbers, not compared" in page and "from elsewhere" in page


@pytest.mark.parametrize(
    "ask",
    [
        lambda trace: trace.scores(0, 0),
        lambda trace: trace.query(0, 0),
        lambda trace: trace.output(0, 0),
        lambda trace: attnviz.project(trace, 0, 0),
    ],
)
def test_what_they_lack_is_said(ask, outputs, labels):
    with pytest.raises(attnviz.SelectionError, match="made of arrays without them"):
        ask(attnviz.Trace.from_arrays(labels, weights=outputs.attentions))


def test_show_takes_what_people_hold(outputs, labels):
    class Cache(dict):
        """Like TransformerLens's, by the names of its hooks."""

    cache = Cache(
        {f"blocks.{layer}.attn.hook_pattern": weights for layer, weights in enumerate(outputs.attentions)}
    )
    cache["blocks.0.attn.hook_q"] = torch.zeros(1)
    for held in (outputs, outputs.attentions, cache):
        stage = attnviz.show(held, labels, layer=3, head=1)
        assert (stage.selection["layer"], stage.selection["head"]) == (3, 1)
        assert stage.document["counts"] == (12,) * 6
    assert attnviz.show(outputs.attentions[2][0, 4], labels).document["counts"] == (1,)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            rows(2, 3, 3, 3),
            attnviz.ShapeError,
            r"weights of layer 0 are 3 x 3 x 3, \[head, query, key\], for 4 tokens",
        ),
        (
            2 * rows(1, 2, 4, 4),
            attnviz.ShapeError,
            "row 0 of layer 0, head 0 sums to 2. Pass the softmax's output",
        ),
        (-rows(1, 2, 4, 4), attnviz.ShapeError, "32 are negative"),
        (np.full((4, 4), np.nan), attnviz.ShapeError, "NaN or infinity in 16 of 16"),
        ([rows(2, 3, 4, 4)], attnviz.ShapeError, "a batch of 2 texts"),
        ("abc", attnviz.ArgumentError, "arrays of numbers"),
        (1.0, attnviz.ShapeError, "0 axes with 1 numbers"),
        ([], attnviz.ShapeError, "1 axes with 0 numbers"),
        (np.zeros((0, 4, 4)), attnviz.ShapeError, "3 axes with 0 numbers"),
        (
            {"logits": 3},
            attnviz.ArgumentError,
            "These outputs hold no attention. Run the model with output_attentions",
        ),
    ],
)
def test_what_is_no_attention(given, error, words):
    with pytest.raises(error, match=words):
        attnviz.show(given, list("abcd"))


def test_arrays_that_do_not_fit_each_other():
    with pytest.raises(attnviz.ArgumentError, match="neither weights nor both queries and keys"):
        attnviz.Trace.from_arrays(["a"], queries=np.zeros((1, 1, 1, 2)))
    with pytest.raises(attnviz.ShapeError, match="1 layers of weights, 2 layers of values"):
        attnviz.Trace.from_arrays(["a"], weights=np.ones((1, 1, 1, 1)), values=np.zeros((2, 1, 1, 2)))


def test_one_matrix_is_a_pattern():
    pattern = attnviz.AttentionPattern.from_array([[1.0, 0.0], [0.25, 0.75]], ["\u0120a", "b"])
    np.testing.assert_array_equal(pattern.weights, np.float32([[1, 0], [0.25, 0.75]]))
    assert pattern.queries.labels == ("␣a", "b")


def test_patches_of_an_image_have_their_pictures():
    """An array of shares, one of bytes and a picture of Pillow, each as it is in the document that the viewer draws."""
    shares = np.linspace(0, 1, 12).reshape(2, 2, 3)
    numbers = np.arange(4, dtype=np.uint8).reshape(2, 2)
    drawn = Image.fromarray(np.full((3, 3, 3), 200, dtype=np.uint8))
    trace = attnviz.Trace.from_arrays(
        ["[CLS]", "0,0", "0,1"], weights=rows(1, 1, 3, 3), pictures=[shares, numbers, drawn]
    )
    data, _ = stage_data(trace)
    found = [
        np.asarray(Image.open(io.BytesIO(b64decode(url.removeprefix("data:image/png;base64,")))))
        for url in data.queries.pictures
    ]
    for picture, expected in zip(
        found, (np.rint(shares * 255), numbers, np.full((3, 3, 3), 200)), strict=True
    ):
        np.testing.assert_array_equal(picture, expected)
    with pytest.raises(attnviz.ArgumentError, match="A picture was given as the text “a”"):
        attnviz.Trace.from_arrays(["a"], weights=[[1.0]], pictures=["a"])
    with pytest.raises(attnviz.ShapeError, match="3 ids, but 2 entries in pictures"):
        attnviz.Trace.from_arrays(["a", "b", "c"], weights=rows(3, 3), pictures=[numbers, numbers])


def test_a_decoder_has_no_weight_on_later_keys():
    with pytest.raises(attnviz.ShapeError, match="layer 0 has weight on keys after their query"):
        attnviz.Trace.from_arrays(list("abc"), weights=rows(1, 2, 3, 3), kind="decoder")


def test_no_tokens():
    with pytest.raises(attnviz.EmptyTextError, match="No tokens were given"):
        attnviz.Trace.from_arrays([], weights=rows(1, 1, 1, 1))


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, trace: attnviz.ablate(model, trace, "state:1"),
        lambda model, trace: attnviz.ablate(model, trace, lambda states: states.sum(dim=(1, 2))),
        lambda model, trace: attnviz.patch(model, trace, trace, "state:1"),
        lambda model, trace: attnviz.attribute(model, trace, "state:1"),
        lambda model, trace: attnviz.predict(model, trace, 1),
        lambda model, trace: attnviz.lens(model, trace),
    ],
)
def test_no_model_answers_for_arrays(ask, smollm2):
    """Their labels are of no vocabulary, so that any answer would be that to another text."""
    given = attnviz.Trace.from_arrays(["the", "cat", "sat"], weights=rows(30, 9, 3, 3), kind="encoder")
    with pytest.raises(attnviz.SelectionError, match=r"made of arrays|have labels and no ids"):
        ask(smollm2, given)


def test_equal_labels_are_the_same_token():
    trace = attnviz.Trace.from_arrays(["the", "cat", "the"], weights=rows(1, 1, 3, 3))
    table = attnviz.statistics(trace, names=["same_token"])
    assert table.of("same_token")[0, 0] == pytest.approx(
        (trace.weights(0, 0)[0, 2] + trace.weights(0, 0)[2, 0]) / 2
    )
