"""What a decoder writes, against transformers' own generate; and that a trace of all tokens holds the attention of each step."""

from functools import cache

import numpy as np
import pytest
import torch

import attnviz
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.model.continuation import continue_text
from attnviz.model.token_labels import PART
from tests import tiny

pytestmark = pytest.mark.slow

TEXT = "the cat sat when it opened"
DECODERS = [
    name for name, kind in tiny.WITH_HEAD.items() if "CausalLM" in kind.__name__ or "LMHead" in kind.__name__
]
N = 6


@pytest.fixture(scope="module")
def written(headed):
    """The model, and what it writes greedily."""

    @cache
    def of(name):
        model, _ = headed(name)
        return model, continue_text(model, TEXT, n_tokens=N, top=3)

    return of


def generated(name, headed, ids, **asked):
    """Ids of transformers' own generate, without the text's."""
    theirs = tiny.WITH_HEAD[name].from_pretrained(headed(name)[1], attn_implementation="eager").eval()
    given = torch.tensor(ids)[None]
    with torch.inference_mode():
        found = theirs.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=N, use_cache=False, **asked
        )
    return found[0, len(ids) :].tolist()


@pytest.mark.parametrize("name", DECODERS)
def test_the_most_likely_tokens_are_those_of_transformers(name, headed, written):
    _, found = written(name)
    read = found.tokens.ids[: found.n_read].tolist()
    assert found.tokens.ids[found.n_read :].tolist() == generated(name, headed, read, do_sample=False)
    assert found.written == found.tokens.labels[found.n_read :]
    for [likeliest, *_], label in zip(found.candidates, found.written, strict=True):
        assert likeliest == label or PART.search(label)  # which of a character's bytes it is, the text tells


@pytest.mark.parametrize("name", DECODERS)
def test_one_trace_holds_the_attention_of_every_step(name, written):
    """A row of attention is the same whatever follows its token; so are the probabilities of the next one."""
    model, found = written(name)
    whole = model.trace_tokens(found.tokens)
    checks = attnviz.verify(
        model, whole
    ).checks  # random weights write what no tokenizer would make of the text
    assert all(one.passed for one in checks if one.name != "tokens") and len(checks) > 5
    for step in (0, 2, len(found.written) - 1):
        last = found.n_read + step - 1
        cut = {
            part: getattr(found.tokens, part)[: last + 1]
            for part in ("ids", "labels", "is_special", "segment", "word")
        }
        alone = model.trace_tokens(type(found.tokens)(text=TEXT, **cut))
        for layer in range(alone.n_layers()):
            np.testing.assert_allclose(
                whole.weights(layer, 0)[last, : last + 1], alone.weights(layer, 0)[last], atol=2e-5
            )
        own = attnviz.predict(model, alone, last, top=3)
        np.testing.assert_allclose(own.probabilities, found.candidate_probabilities[step], rtol=2e-4)
        assert own.labels == found.candidates[step]


@pytest.mark.parametrize("temperature", [0.7, 2.0])
def test_draws_are_those_of_transformers_with_the_same_seed(temperature, headed, written):
    model, _ = written("gpt2")
    found = continue_text(model, TEXT, n_tokens=N, temperature=temperature, seed=5)
    torch.manual_seed(5)
    read = found.tokens.ids[: found.n_read].tolist()
    theirs = generated("gpt2", headed, read, do_sample=True, temperature=temperature, top_k=0)
    assert found.tokens.ids[found.n_read :].tolist() == theirs
    again = continue_text(model, TEXT, n_tokens=N, temperature=temperature, seed=5)
    other = continue_text(model, TEXT, n_tokens=N, temperature=temperature, seed=6)
    assert again.written == found.written != other.written


def test_it_ends_with_the_end_token(headed, monkeypatch):
    model, _ = headed("llama")
    plain = continue_text(model, TEXT, n_tokens=N)
    assert not plain.ended and len(plain.written) == N
    at = next(step for step in range(N) if plain.written[step] not in plain.written[:step] and step)
    monkeypatch.setattr(model.network.config, "eos_token_id", int(plain.tokens.ids[plain.n_read + at]))
    ended = continue_text(model, TEXT, n_tokens=N)
    assert ended.ended and ended.written == plain.written[: at + 1]


def test_how_far_it_is_is_told(written):
    model, _ = written("gpt2")
    told: list[float] = []
    continue_text(model, TEXT, n_tokens=4, progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("name", ["bert", "t5"])
def test_a_model_that_does_not_write_is_refused(name, headed, tiny_model):
    model = headed("bert")[0] if name == "bert" else tiny_model(name)
    with pytest.raises(UnsupportedArchitectureError, match="is no decoder with a language head"):
        continue_text(model, TEXT)


@pytest.mark.parametrize(
    "asked",
    [{"n_tokens": 0}, {"top": 0}, {"temperature": -1.0}, {"temperature": float("nan")}, {"seed": 2**64}],
)
def test_what_cannot_be_asked_for(asked, written):
    with pytest.raises(SelectionError, match=r"(were|was) asked for"):
        continue_text(written("gpt2")[0], TEXT, **asked)


def test_more_tokens_than_the_model_reads(written):
    model, found = written("gpt2")
    assert model.max_tokens is not None
    with pytest.raises(SelectionError, match=f"reads at most {model.max_tokens}"):
        continue_text(model, TEXT, n_tokens=model.max_tokens - found.n_read + 1)


@pytest.mark.parametrize("temperature", [1e-40, 5e-324])
def test_a_temperature_near_0_writes_what_0_does(temperature, written):
    model, plain = written("gpt2")
    assert continue_text(model, TEXT, n_tokens=N, temperature=temperature).written == plain.written


def test_a_pair_is_continued_after_its_second_sentence(written):
    model, _ = written("gpt2")
    pair = model.trace("the cat", "sat on it").tokens
    found = continue_text(model, pair, n_tokens=2)
    assert found.tokens.labels[: found.n_read] == pair.labels
    one = continue_text(model, "the cat" + "sat on it", n_tokens=2)
    assert found.tokens.ids.tolist() == one.tokens.ids.tolist()
