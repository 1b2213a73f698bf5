"""Answers of a checkpoint's own head, against transformers' own models with that head, and its pipelines."""

import numpy as np
import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

import attnviz
from attnviz.effects.ablation import ablate
from attnviz.effects.input_attribution import attribute_inputs
from attnviz.effects.outcome import LAST, ClassAnswer, TokenAnswer, measured, own_answer
from tests import tiny

TEXT = "the cat sat when it opened"
AT = 3
# float32 through three layers, and a softmax over 300 tokens
RTOL = 2e-4


def logits(theirs: tf.PreTrainedModel, model: attnviz.Model, trace: attnviz.Trace) -> np.ndarray:
    with torch.inference_mode():
        return theirs(**model.inputs(trace.tokens)).logits[0].double().numpy()


def states(trace: attnviz.Trace, *, n: int = 1) -> torch.Tensor:
    """The last hidden states of the text and n - 1 variants of it, which differ at every token."""
    own = torch.tensor(trace.last_hidden_state)
    noise = torch.randn(n, *own.shape, generator=torch.Generator().manual_seed(0))
    noise[0] = 0
    return own + noise


def assert_differentiable(outcome, trace: attnviz.Trace, *, only: int | None = None) -> None:
    """The gradient is there, at one token alone where one answers, and predicts a small change."""
    hidden = states(trace, n=3).double().float().requires_grad_()
    number = outcome(hidden)
    assert number.shape == (3,)
    (gradient,) = torch.autograd.grad(number.sum(), hidden)
    sizes = gradient.abs().amax(dim=(0, 2))
    assert sizes.max() > 0
    if only is not None:
        assert (sizes > 0).nonzero().flatten().tolist() == [only]
    step = gradient / gradient.norm() * 1e-2
    with torch.no_grad():
        change = (outcome(hidden + step) - outcome(hidden - step)).sum() / 2
    assert float(change) == pytest.approx(float((gradient * step).sum()), rel=0.02)


class TestTokens:
    @pytest.mark.parametrize("name", tiny.WITH_HEAD)
    def test_as_transformers_own(self, name, headed):
        model, folder = headed(name)
        theirs = tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").eval()
        masked = () if model.mask_label is None else [AT]
        trace = model.trace(TEXT, masked=masked)
        expected = logits(theirs, model, trace)[AT]
        first, second = map(int, np.argsort(-expected)[[0, 3]])
        spelled = [model.tokenizer.convert_ids_to_tokens(index) for index in (first, second)]
        if None in spelled:  # the tiny tokenizers have fewer entries than the tiny heads
            first, second = 11, 17
            spelled = model.tokenizer.convert_ids_to_tokens([first, second])
        probability = measured(model, trace, TokenAnswer(position=AT, token=spelled[0]))
        shares = np.exp(expected - expected.max())
        assert probability.value == pytest.approx(shares[first] / shares.sum(), rel=RTOL)
        assert probability.unit == "probability"
        odds = measured(model, trace, TokenAnswer(position=AT, token=spelled[0], against=spelled[1]))
        assert odds.value == pytest.approx(expected[first] - expected[second], rel=RTOL, abs=1e-4)
        assert odds.unit == "difference of logits"
        rank = measured(model, trace, TokenAnswer(position=AT, token=spelled[1], by="rank"))
        assert rank.value == 1 + (expected > expected[second]).sum()
        assert_differentiable(odds, trace, only=AT)
        assert_differentiable(probability, trace, only=AT)

    def test_as_the_pipeline_that_fills_masks(self, headed):
        model, folder = headed("bert")
        pipeline = tf.pipeline("fill-mask", model=str(folder), tokenizer=str(folder), device="cpu")
        trace = model.trace(TEXT, masked=[AT])
        for answer in pipeline(TEXT.replace("sat", "[MASK]"), targets=["door", "cat", "the"]):
            outcome = measured(model, trace, TokenAnswer(position=AT, token=answer["token_str"]))
            assert outcome.value == pytest.approx(answer["score"], rel=RTOL)

    def test_ranks_of_variants(self, headed):
        """Counted in numpy: 1 for the largest logit, and every token has the rank that its logit has when they are sorted."""
        model, folder = headed("gpt2")
        theirs = tiny.WITH_HEAD["gpt2"].from_pretrained(folder, attn_implementation="eager").eval()
        trace = model.trace(TEXT)
        hidden = states(trace, n=3)
        with torch.inference_mode():
            scores = theirs.lm_head(hidden[:, AT]).double().numpy()
        ids = [model.tokenizer.convert_tokens_to_ids(letter) for letter in "aeh"]
        for token, number in zip("aeh", ids, strict=True):
            rank = measured(model, trace, TokenAnswer(position=AT, token=token, by="rank"))
            order = np.argsort(-scores, axis=1)
            np.testing.assert_array_equal(rank(hidden), 1 + np.argwhere(order == number)[:, 1])

    def test_the_last_token_is_asked_unless_another_is(self, headed):
        model, _ = headed("gpt2")
        trace = model.trace(TEXT)
        values = [
            measured(model, trace, TokenAnswer(position=at, token="a", against="b")).value
            for at in (LAST, len(trace.tokens) - 1, 0)
        ]
        assert values[0] == values[1] != values[2]
        assert TokenAnswer(token="a").position == LAST

    @pytest.mark.parametrize(("name", "masked", "at"), [("gpt2", [], LAST), ("bert", [5, AT], AT)])
    def test_what_the_model_answers_itself(self, name, masked, at, headed):
        model, folder = headed(name)
        theirs = tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").eval()
        trace = model.trace(TEXT, masked=masked)
        with torch.inference_mode():
            scores = theirs(**model.inputs(trace.tokens)).logits[0, -1 if at == LAST else at].double().numpy()
        order = np.argsort(-scores)
        own = own_answer(model, trace)
        assert own.position == at
        value = measured(model, trace, own).value
        assert value == pytest.approx(scores[order[0]] - scores[order[1]], rel=1e-3, abs=1e-4)

    def test_without_a_blank_a_masked_model_answers_nothing_itself(self, headed, tiny_model):
        model, _ = headed("bert")
        trace = model.trace(TEXT)
        assert own_answer(model, trace) is None
        assert own_answer(model, trace, AT).position == AT
        assert (
            own_answer(tiny_model("gpt2"), tiny_model("gpt2").trace(TEXT)) is None
        )  # it has no language head

    def test_a_rank_has_no_gradient(self, headed):
        model, _ = headed("gpt2")
        rank, trace = TokenAnswer(token="a", by="rank"), model.trace("a cat")
        methods = {attribute_input.method for attribute_input in attribute_inputs(model, trace, rank)}
        assert "token_replaced" in methods
        assert not methods & {"gradient_times_input", "integrated_gradients"}
        with pytest.raises(attnviz.SelectionError, match="a rank changes in steps"):
            attribute_inputs(model, trace, rank, methods=["integrated_gradients"])

    def test_variants_each_by_itself(self, headed):
        model, _ = headed("bert")
        trace = model.trace(TEXT)
        outcome = measured(model, trace, TokenAnswer(position=AT, token="door"))
        hidden = states(trace, n=4)
        alone = [float(outcome(state[None])[0]) for state in hidden]
        np.testing.assert_allclose(outcome(hidden), alone, rtol=1e-4)
        assert len({round(number, 9) for number in alone}) == 4

    @pytest.mark.parametrize("name", ["bert", "gpt2"])
    def test_heads_switched_off(self, name, headed):
        model, _ = headed(name)
        trace = model.trace(TEXT)
        outcome = measured(model, trace, TokenAnswer(position=AT, token="a", against="b"))
        ablation = ablate(model, trace, outcome)
        assert ablation.base == pytest.approx(outcome.value, rel=1e-5)
        assert np.isfinite(ablation.heads).all()
        assert np.abs(ablation.effects).max() > 0.01

    @pytest.mark.parametrize(
        ("token", "entry"),
        [("door", "door"), ("Door", "door"), ("##ing", "##ing"), ("[MASK]", "[MASK]"), ("[UNK]", "[UNK]")],
    )
    def test_a_token_by_its_entry_or_as_it_is_read(self, token, entry, headed):
        model, _ = headed("bert")
        trace = model.trace(TEXT)
        values = [
            measured(model, trace, TokenAnswer(position=1, token=spelling)).value
            for spelling in (token, entry)
        ]
        assert values[0] == values[1]

    @pytest.mark.parametrize(
        ("token", "reason"),
        [
            ("doors", "2 tokens: door ##s"),
            ("\N{SNOWMAN}", r"as \[UNK\]"),
            (" ", "0 tokens"),
            ("the cat", "2 tokens: the cat"),
        ],
    )
    def test_what_is_no_token(self, token, reason, headed):
        model, _ = headed("bert")
        with pytest.raises(attnviz.SelectionError, match=f"The token “{token}” was asked for; .*{reason}"):
            measured(model, model.trace(TEXT), TokenAnswer(position=1, token=token))

    def test_an_id_without_an_entry_is_a_token_of_the_head(self, headed):
        """The tiny head has more rows than its tokenizer has tokens, as padded vocabularies do."""
        model, folder = headed("gpt2")
        theirs = tiny.WITH_HEAD["gpt2"].from_pretrained(folder, attn_implementation="eager").eval()
        trace = model.trace(TEXT)
        expected = logits(theirs, model, trace)[-1]
        odds = measured(model, trace, TokenAnswer(token="id 263", against="id 299")).value
        assert odds == pytest.approx(expected[263] - expected[299], rel=RTOL, abs=1e-4)
        for token in ("id 5", "id 300"):  # one has an entry, and one no row
            with pytest.raises(attnviz.SelectionError, match="Choose a token"):
                measured(model, trace, TokenAnswer(token=token))

    def test_a_token_against_itself(self, headed):
        model, _ = headed("bert")
        with pytest.raises(attnviz.SelectionError, match="always 0"):
            measured(model, model.trace(TEXT), TokenAnswer(position=1, token="door", against="Door"))


class TestClasses:
    @pytest.mark.parametrize("name", tiny.WITH_CLASSIFIER)
    def test_as_transformers_own(self, name, classifying):
        model, folder = classifying(name)
        theirs = tf.AutoModelForSequenceClassification.from_pretrained(
            folder, attn_implementation="eager"
        ).eval()
        trace = model.trace(TEXT)
        expected = logits(theirs, model, trace)
        assert np.ptp(expected) > 0.05
        shares = np.exp(expected) / np.exp(expected).sum()
        for number, label in enumerate(tiny.CLASSES):
            probability = measured(model, trace, ClassAnswer(label=label))
            assert probability.value == pytest.approx(shares[number], rel=RTOL)
        assert probability.unit == "probability"
        odds = measured(model, trace, ClassAnswer(label="GOOD", against="MEH"))
        assert odds.value == pytest.approx(expected[0] - expected[2], abs=1e-4)
        assert odds.unit == "difference of logits"
        assert_differentiable(odds, trace)
        hidden = states(trace, n=4)
        np.testing.assert_allclose(odds(hidden), [float(odds(state[None])[0]) for state in hidden], atol=1e-4)
        assert attnviz.verify(model, trace).passed
        assert model.language_head is None

    @pytest.mark.parametrize(
        ("settings", "label"),
        [
            ({}, "BAD"),
            ({"problem_type": "multi_label_classification"}, "BAD"),
            ({"id2label": {0: "LABEL_0"}}, "LABEL_0"),
        ],
    )
    def test_probabilities_as_the_pipeline(self, settings, label, tmp_path):
        folder = tiny.save_with_classifier("bert", tmp_path, **settings)
        model = attnviz.load_model(str(folder))
        pipeline = tf.pipeline("text-classification", model=str(folder), tokenizer=str(folder), device="cpu")
        expected = {answer["label"]: answer["score"] for answer in pipeline(TEXT, top_k=None)}
        probability = measured(model, model.trace(TEXT), ClassAnswer(label=label))
        assert probability.value == pytest.approx(expected[label], rel=RTOL)

    @pytest.mark.parametrize("against", [None, "BAD"])
    def test_a_number_is_no_class(self, against, tmp_path):
        folder = tiny.save_with_classifier("bert", tmp_path, problem_type="regression")
        model = attnviz.load_model(str(folder))
        with pytest.raises(attnviz.UnsupportedArchitectureError, match="predicts numbers"):
            measured(model, model.trace(TEXT), ClassAnswer(label="GOOD", against=against))

    @pytest.mark.parametrize(("name", "read"), [("bert", 0), ("gpt2", -1)])
    def test_attention_is_read_where_the_classifier_reads(self, name, read, classifying):
        """BERT's reads the state of [CLS] alone, GPT-2's that of the last token."""
        model, _ = classifying(name)
        trace = model.trace(TEXT)
        (attribution,) = attribute_inputs(model, trace, ClassAnswer(label="GOOD"), methods=["rollout"])
        last = trace.n_layers() - 1
        np.testing.assert_allclose(attribution.values, trace.rollout(last)[read], rtol=1e-5)

    def test_heads_switched_off(self, classifying):
        model, _ = classifying("bert")
        trace = model.trace(TEXT)
        ablation = ablate(model, trace, measured(model, trace, ClassAnswer(label="GOOD", against="BAD")))
        assert np.abs(ablation.effects).max() > 0.01

    @pytest.mark.parametrize("lost", ["bert.pooler.dense.weight", "classifier.weight"])
    def test_a_classifier_that_is_not_whole_is_none(self, lost, tmp_path):
        tiny.save_with_classifier("bert", tmp_path)
        tensors = load_file(tmp_path / "model.safetensors")
        del tensors[lost]
        save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
        assert attnviz.load_model(str(tmp_path)).classifier is None

    def test_a_classifier_that_cannot_run_alone_is_none(self, tmp_path, monkeypatch):
        """One that reads what the network did not give, as BERT's does without its pooler."""
        from attnviz.model import parts

        monkeypatch.setattr(parts._Given, "_pooled", lambda *_: None)
        model = attnviz.load_model(str(tiny.save_with_classifier("bert", tmp_path)))
        assert model.classifier is None
        trace = model.trace(TEXT)
        with pytest.raises(attnviz.UnsupportedArchitectureError, match="BertForSequenceClassification"):
            measured(model, trace, ClassAnswer(label="GOOD"))

    def test_no_such_class(self, classifying):
        model, _ = classifying("bert")
        with pytest.raises(attnviz.SelectionError, match=r"classes of .* are GOOD, BAD, MEH"):
            measured(model, model.trace(TEXT), ClassAnswer(label="good"))

    def test_a_token_is_not_answered_by_a_classifier(self, classifying):
        model, _ = classifying("bert")
        with pytest.raises(
            attnviz.UnsupportedArchitectureError,
            match=r"\(BertForSequenceClassification\) has no language head",
        ):
            measured(model, model.trace(TEXT), TokenAnswer(position=1, token="door"))
