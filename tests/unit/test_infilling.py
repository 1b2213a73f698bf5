"""The token in a gap, against brute force: every token of the vocabulary in the gap, in transformers' own models, without a cache."""

import csv
import io

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import EmptyTextError, SelectionError, TextTooLongError, UnsupportedArchitectureError
from attnviz.model import incremental, infilling
from tests import tiny
from tests.tiers import first_gates

pytestmark = pytest.mark.slow

BEFORE, AFTER = "the cat sat when", " opened."


def brute_force(name, headed, before, after):
    """P(token | before), log P(after | before, token) and P(token | before, after), [vocabulary], each in float64."""
    model, folder = headed(name)
    theirs = tiny.WITH_HEAD[name].from_pretrained(folder, attn_implementation="eager").double().eval()
    tokenizer = model.tokenizer
    read = tokenizer(before)["input_ids"]
    while read and read[-1] == tokenizer.eos_token_id:
        read.pop()
    then = tokenizer(after, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        prior = theirs(torch.tensor([read])).logits[0, -1].log_softmax(dim=-1)
        rows = torch.tensor([[*read, token, *then] for token in range(len(prior))])
        logits = theirs(rows, use_cache=False).logits.log_softmax(dim=-1)[:, len(read) : -1]
        likelihood = logits.gather(-1, rows[:, len(read) + 1 :, None])[..., 0].sum(dim=1)
    joint = (prior + likelihood).exp()
    return prior.exp().numpy(), likelihood.numpy(), (joint / joint.sum()).numpy()


FAMILIES = first_gates("llama", "gpt2", "gemma3", "qwen2", "gpt-neox", "opt", "phi", "mistral", "deepseek-v3")
"""Llama has grouped keys; GPT-2 absolute positions; Gemma 3 a sliding window."""


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_whole_vocabulary_is_brute_force(name, cached, headed, monkeypatch):
    if not cached:
        monkeypatch.setattr(incremental, "_cache_for", lambda network: None)
    monkeypatch.setattr(infilling, "_BATCH", 7)  # a last batch of another size
    model, _ = headed(name)
    filled = attnviz.fill(model, BEFORE, AFTER, share=1.0, most=10**6)
    prior, likelihood, posterior = brute_force(name, headed, BEFORE, AFTER)
    assert sorted(filled.ids.tolist()) == list(range(len(prior)))
    np.testing.assert_allclose(filled.probabilities, posterior[filled.ids], atol=1e-6)
    np.testing.assert_allclose(filled.before_probabilities, prior[filled.ids], atol=1e-6)
    np.testing.assert_allclose(
        filled.after_log_probabilities, likelihood[filled.ids], atol=2e-4
    )  # nats, up to -40
    assert (np.diff(filled.probabilities) <= 0).all()
    assert filled.mass == pytest.approx(1.0) and filled.left_out == pytest.approx(0.0, abs=1e-9)
    assert filled.probabilities.sum() == pytest.approx(1.0)
    assert filled.after_shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_whatever_side_is_padded(side, headed, monkeypatch):
    model, _ = headed("llama")
    monkeypatch.setattr(model.tokenizer, "padding_side", side)
    filled = attnviz.fill(model, BEFORE, AFTER, share=1.0, most=10**6)
    *_, posterior = brute_force("llama", headed, BEFORE, AFTER)
    np.testing.assert_allclose(filled.probabilities, posterior[filled.ids], atol=1e-6)


def test_candidates_are_the_likeliest_before_the_gap_until_they_cover_the_share(headed):
    model, _ = headed("llama")
    prior, likelihood, _ = brute_force("llama", headed, BEFORE, AFTER)
    order = np.argsort(-prior)
    n_needed = next(n for n in range(1, len(prior) + 1) if prior[order[:n]].sum() >= 0.5)
    filled = attnviz.fill(model, BEFORE, AFTER, share=0.5)
    assert set(filled.ids.tolist()) == set(order[:n_needed].tolist())
    assert filled.mass == pytest.approx(prior[order[:n_needed]].sum(), abs=1e-6)
    assert filled.left_out == pytest.approx(prior[order[n_needed:]].sum(), abs=1e-6)
    joint = (prior * np.exp(likelihood))[filled.ids]
    np.testing.assert_allclose(filled.probabilities, joint / joint.sum(), atol=1e-6)
    assert len(attnviz.fill(model, BEFORE, AFTER, share=1.0, most=3).ids) == 3


def test_nothing_after_the_gap_leaves_the_prediction_of_the_next_token(headed):
    model, _ = headed("llama")
    filled = attnviz.fill(model, BEFORE, "", share=1.0, most=10**6)
    trace = model.trace(BEFORE)
    np.testing.assert_allclose(filled.probabilities, filled.before_probabilities)
    likeliest = attnviz.predict(model, trace, len(trace.tokens) - 1, top=5)
    assert filled.labels[:5] == likeliest.labels
    np.testing.assert_allclose(filled.probabilities[:5], likeliest.probabilities, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    ["the cat sat when ___ opened.", "the cat sat when _____ opened.", "the cat sat when [MASK] opened."],
)
def test_a_gap_marked_in_a_text_is_that_between_two_texts(text, headed):
    model, _ = headed("llama")
    marked, apart = attnviz.fill(model, text, most=9), attnviz.fill(model, BEFORE, AFTER, most=9)
    assert marked.labels == apart.labels and marked.after == AFTER
    np.testing.assert_array_equal(marked.probabilities, apart.probabilities)


def test_a_masked_language_model_predicts_the_gap_itself(headed):
    model, folder = headed("bert")
    filled = attnviz.fill(model, "the cat sat when ___ opened", share=1.0, most=10**6)
    theirs = tiny.WITH_HEAD["bert"].from_pretrained(folder, attn_implementation="eager").eval()
    given = model.tokenizer(f"the cat sat when {model.mask_label} opened", return_tensors="pt")
    at = given["input_ids"][0].tolist().index(model.tokenizer.mask_token_id)
    with torch.inference_mode():
        expected = theirs(**given).logits[0, at].double().softmax(dim=-1).numpy()
    np.testing.assert_allclose(filled.probabilities, expected[filled.ids], atol=1e-6)
    assert filled.before_probabilities is None and filled.after_log_probabilities is None
    assert filled.after_shares is None and filled.mass == pytest.approx(1.0)
    few = attnviz.fill(model, "the cat sat when [MASK] opened", most=4)
    np.testing.assert_allclose(few.probabilities, filled.probabilities[:4], atol=1e-6)
    assert few.mass == pytest.approx(few.probabilities.sum())


def test_the_table(headed):
    model, _ = headed("llama")
    filled = attnviz.fill(model, BEFORE, AFTER, most=5)
    header, *rows = csv.reader(io.StringIO(filled.csv().decode("utf-8-sig")))
    assert header[:4] == ["rank", "id", "candidate", "probability"] and len(header) == 6
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5]
    for row, number, probability, prior in zip(
        rows, filled.ids, filled.probabilities, filled.before_probabilities, strict=True
    ):
        assert int(row[1]) == number and row[2] == filled.labels[int(row[0]) - 1]
        assert (float(row[3]), float(row[4])) == (pytest.approx(probability), pytest.approx(prior))


def test_progress_reaches_the_end(headed, monkeypatch):
    monkeypatch.setattr(infilling, "_BATCH", 2)
    shares = []
    attnviz.fill(headed("llama")[0], BEFORE, AFTER, most=5, progress=shares.append)
    assert shares == [0.4, 0.8, 1.0]


class TestRefused:
    @pytest.mark.parametrize("text", ["the cat", "___ cat ___", "the ___ [MASK]"])
    def test_no_gap_or_several(self, text, headed):
        with pytest.raises(SelectionError, match="one gap"):
            attnviz.fill(headed("llama")[0], text)

    def test_several_mask_tokens_of_a_masked_language_model(self, headed):
        with pytest.raises(SelectionError, match="2"):
            attnviz.fill(headed("bert")[0], "the [MASK]", " sat")

    def test_nothing_to_predict_from(self, headed):
        with pytest.raises(EmptyTextError, match="before the gap"):
            attnviz.fill(headed("llama")[0], "___ opened.")

    @pytest.mark.parametrize("given", [{"share": 0.0}, {"share": 1.5}, {"most": 0}])
    def test_numbers_out_of_range(self, given, headed):
        with pytest.raises(SelectionError, match="candidate"):
            attnviz.fill(headed("llama")[0], BEFORE, AFTER, **given)

    def test_a_text_too_long_with_its_gap(self, headed):
        with pytest.raises(TextTooLongError, match=str(tiny.LIMIT)):
            attnviz.fill(headed("gpt2")[0], BEFORE, " opened" * tiny.LIMIT)

    def test_a_model_without_a_language_head(self, embedded):
        with pytest.raises(UnsupportedArchitectureError, match="no language head"):
            attnviz.fill(embedded, BEFORE, AFTER)


@pytest.mark.nightly
class TestBundledLanguageModel:
    @pytest.mark.parametrize(
        ("before", "after", "expected", "mass"),
        [
            (
                "I was watching the door when",
                " opened.",
                {"␣it": 0.953, "␣they": 0.027, "␣she": 0.005},
                0.958,
            ),
            ("The capital of France is", ", as everyone knows.", {"␣Paris": 0.970, "␣London": 0.011}, 0.978),
            (
                "When Mary and John went to the store,",
                " gave a drink to John.",
                {"␣Mary": 0.901, "␣she": 0.044, "␣they": 0.036},
                0.928,
            ),
            (
                "She gave the book to",
                " friend.",
                {"␣a": 0.743, "␣her": 0.103, "␣my": 0.066, "␣his": 0.060},
                0.863,
            ),
        ],
    )
    def test_four_sentences(self, before, after, expected, mass, smollm2):
        """Measured once with 200 candidates, by forward passes of whole sentences; given to three digits."""
        filled = attnviz.fill(smollm2, before, after, most=200)
        assert filled.mass == pytest.approx(mass, abs=1e-3)
        likeliest = dict(zip(filled.labels, filled.probabilities.tolist(), strict=True))
        assert list(likeliest)[: len(expected)] == list(expected)
        for label, probability in expected.items():
            assert likeliest[label] == pytest.approx(probability, abs=2e-3)

    def test_twenty_candidates_are_plain_forward_passes(self, smollm2):
        filled = attnviz.fill(smollm2, "I was watching the door when", " opened.", share=1.0, most=20)
        read = smollm2.tokenizer("I was watching the door when")["input_ids"]
        then = smollm2.tokenizer(" opened.")["input_ids"]
        head = smollm2.language_head
        with torch.inference_mode():
            for number, log in zip(filled.ids.tolist(), filled.after_log_probabilities.tolist(), strict=True):
                ids = torch.tensor([[*read, number, *then]])
                states = smollm2.reference(input_ids=ids).last_hidden_state
                logits = head(inputs_embeds=states).logits[0].double().log_softmax(dim=-1)
                expected = sum(float(logits[len(read) + at, token]) for at, token in enumerate(then))
                assert log == pytest.approx(expected, abs=1e-4)
