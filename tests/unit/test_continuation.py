"""What a decoder writes, against transformers' own generate; and that the attention of each step is that of the whole text."""

import csv
import io
from functools import cache
from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers as tf

import attnviz
from attnviz.errors import SelectionError, UnsupportedArchitectureError
from attnviz.model.continuation import _extended, generate, without_end
from attnviz.model.token_labels import PART
from attnviz.model.tokenization import tokenize
from tests import small_records, tiny
from tests.chatting import chat_tokenizer
from tests.tiers import first_gates

pytestmark = pytest.mark.slow

TEXT = "the cat sat when it opened"
DECODERS = [
    name for name, kind in tiny.WITH_HEAD.items() if "CausalLM" in kind.__name__ or "LMHead" in kind.__name__
]
N = 6
GATED = [
    name if name in ("gpt2", "llama", "gemma3") else pytest.param(name, marks=pytest.mark.nightly)
    for name in DECODERS
]
"""Absolute positions, rotary ones with grouped keys, and a sliding window gate a merge."""


@pytest.fixture(scope="module")
def written(headed):
    """The model, and what it writes greedily."""

    @cache
    def of(name):
        model, _ = headed(name)
        return model, generate(model, TEXT, n_tokens=N, top=3)

    return of


def generated(name, headed, ids, **asked):
    """Ids that transformers' own generate adds to the text's."""
    theirs = tiny.WITH_HEAD[name].from_pretrained(headed(name)[1], attn_implementation="eager").eval()
    given = torch.tensor(ids)[None]
    with torch.inference_mode():
        output = theirs.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=N, use_cache=False, **asked
        )
    return output[0, len(ids) :].tolist()


@pytest.mark.parametrize("name", DECODERS)
def test_the_most_likely_tokens_are_those_of_transformers(name, headed, written):
    _, continuation = written(name)
    read = continuation.tokens.ids[: continuation.n_read].tolist()
    assert continuation.tokens.ids[continuation.n_read :].tolist() == generated(
        name, headed, read, do_sample=False
    )
    assert continuation.written == continuation.tokens.labels[continuation.n_read :]
    for [likeliest, *_], label in zip(continuation.candidates, continuation.written, strict=True):
        assert likeliest == label or PART.search(label)  # the text tells which byte of a character it is


@pytest.mark.parametrize("name", DECODERS)
def test_the_attention_of_every_step_is_recorded(name, written):
    """It equals that of a text that ends there: a row is the same whatever follows its token. So are probabilities."""
    model, continuation = written(name)
    whole = continuation.trace
    checks = attnviz.verify(
        model, whole
    ).checks  # random weights write what no tokenizer would make of the text
    assert all(check.passed for check in checks if check.name != "tokens") and len(checks) > 5
    for step in (0, 2, len(continuation.written) - 1):
        last = continuation.n_read + step - 1
        cut = {
            part: getattr(continuation.tokens, part)[: last + 1]
            for part in ("ids", "labels", "is_special", "segment", "word")
        }
        alone = model.trace_tokens(type(continuation.tokens)(text=TEXT, **cut))
        for layer in range(alone.n_layers()):
            np.testing.assert_allclose(
                whole.weights(layer, 0)[last, : last + 1], alone.weights(layer, 0)[last], atol=2e-5
            )
        own = attnviz.predict(model, alone, last, top=3)
        np.testing.assert_allclose(own.probabilities, continuation.candidate_probabilities[step], rtol=2e-4)
        assert own.labels == continuation.candidates[step]


def test_the_table_of_what_was_written(written):
    """Steps are counted from 1, as on the page, and positions go on after the text's, of which there are as many as tokens."""
    model, found = written("gpt2")
    header, *rows = csv.reader(io.StringIO(found.csv().decode("utf-8-sig")))
    assert header == [
        *("step", "position", "written", "probability"),
        *("candidate 1", "probability 1", "candidate 2", "probability 2", "candidate 3", "probability 3"),
    ]
    assert [row[:2] for row in rows] == [
        [str(1 + step), str(len(model.tokenize(TEXT)) + step)] for step in range(N)
    ]
    assert tuple(row[2] for row in rows) == found.written
    assert [[float(cell) for cell in row[3::2]] for row in rows] == [
        [pytest.approx(own), *map(pytest.approx, of_candidates)]
        for own, of_candidates in zip(
            found.probabilities.tolist(), found.candidate_probabilities.tolist(), strict=True
        )
    ]
    assert tuple(tuple(row[4::2]) for row in rows) == found.candidates


@pytest.mark.parametrize("name", GATED)
def test_what_is_recorded_step_by_step_is_the_trace_of_the_whole_text(name, written):
    model, continuation = written(name)
    whole, steps = model.trace_tokens(continuation.tokens), continuation.trace
    assert steps.n_layers() == whole.n_layers()
    for layer in range(whole.n_layers()):
        for part in ("query", "key", "value"):
            np.testing.assert_allclose(
                getattr(steps.attention(layer), part), getattr(whole.attention(layer), part), atol=2e-5
            )
        assert (steps.attention(layer).output_weight is None) == (
            whole.attention(layer).output_weight is None
        )
        for head in range(whole.n_heads(layer)):
            # scores too: minus infinity says which keys a mask hides
            ours, theirs = steps.scores(layer, head), whole.scores(layer, head)
            np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(theirs))
            seen = np.isfinite(theirs)
            assert (np.abs(ours[seen] - theirs[seen]) <= _apart(steps, whole, layer, head)[seen]).all()
            np.testing.assert_allclose(steps.weights(layer, head), whole.weights(layer, head), atol=2e-5)
    np.testing.assert_allclose(steps.last_hidden_state, whole.last_hidden_state, atol=5e-5)


def _apart(steps, whole, layer, head):
    """How far scores [query, key] may be apart, by how far their queries and keys are and by rounding.

    A score near 0 is as inexact as a large one: |q·k - q'·k'| <= |q||k - k'| + |k'||q - q'|, and a sum of n float32 products
    is off by at most n 2^-24 |q||k| (Higham 2002, equation 3.5).
    """
    (query, query_apart), (key, key_apart) = (
        (
            np.linalg.norm(vectors(whole)(layer, head), axis=-1),
            np.linalg.norm(vectors(steps)(layer, head) - vectors(whole)(layer, head), axis=-1),
        )
        for vectors in (attrgetter("query"), attrgetter("key"))
    )
    n = whole.query(layer, head).shape[-1]
    length = np.outer(query + query_apart, key + key_apart)
    apart = np.outer(query + query_apart, key_apart) + np.outer(query_apart, key)
    return whole.attention(layer).scale * (apart + 2 * (n + 1) * 2.0**-24 * length)


def n_tokens_read(model, run):
    """How many tokens the network reads in each of its passes during a call."""
    lengths = []

    def count(_, __, given):
        lengths.append(given["input_ids"].shape[1])

    handle = model.network.register_forward_pre_hook(count, with_kwargs=True)
    try:
        run()
    finally:
        handle.remove()
    return lengths


@pytest.mark.parametrize("name", GATED)
def test_each_token_is_read_once(name, headed):
    model, _ = headed(name)
    n_read = len(model.tokenize(TEXT))
    lengths = n_tokens_read(model, lambda: generate(model, TEXT, n_tokens=3))
    assert lengths == [n_read, 1, 1, 1]


def test_where_positions_follow_the_length_of_the_text_it_is_read_whole(tmp_path):
    """LongRoPE rotates earlier keys again once a text outgrows the original limit."""
    rope = {
        "rope_type": "longrope",
        "rope_theta": 100.0,
        "factor": 2.0,
        "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4],
        "long_factor": [2.0, 2.3, 2.9, 3.1, 3.7],
    }
    n_read = len(attnviz.load_model(str(tiny.save_with_head("llama", tmp_path / "plain"))).tokenize(TEXT))
    rope["original_max_position_embeddings"] = n_read + 2
    folder = tiny.save_with_head("llama", tmp_path / "longrope", rope_parameters=rope)
    model = attnviz.load_model(str(folder))
    continuation = generate(model, TEXT, n_tokens=N)
    ids = continuation.tokens.ids[: continuation.n_read].tolist()
    theirs = tf.LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        for _ in range(N):
            ids.append(int(theirs(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    assert continuation.tokens.ids.tolist() == ids
    assert n_tokens_read(model, lambda: generate(model, TEXT, n_tokens=2)) == [
        continuation.n_read,
        continuation.n_read + 1,
        continuation.n_read + 2,
    ]
    whole = model.trace_tokens(continuation.tokens)
    np.testing.assert_allclose(continuation.trace.weights(2, 5), whole.weights(2, 5), atol=2e-5)


def test_after_a_pair_what_is_written_is_of_the_first_segment(tmp_path):
    """A BERT decoder: each token is read with its own segment, those that are written with segment 0."""
    config = tiny.TEXT_FAMILIES["bert"].config()
    config.is_decoder = True
    theirs = tf.BertLMHeadModel(config).eval()
    with torch.no_grad():  # so that a wrong segment writes other tokens
        theirs.bert.embeddings.token_type_embeddings.weight.mul_(100)
    theirs.save_pretrained(tmp_path)
    tiny.tokenizer("bert").save_pretrained(tmp_path)
    model = attnviz.load_model(str(tmp_path))
    pair = model.tokenize("the cat sat", "it opened")
    continuation = generate(model, pair, n_tokens=N)
    ids, segments = pair.ids[:-1].tolist(), [0, 0, 0, 0, 0, 1, 1]  # [CLS] the cat sat [SEP] it opened
    assert continuation.n_read == len(ids) == len(segments)
    probabilities = []
    with torch.inference_mode():
        for _ in range(N):
            logits = theirs(
                torch.tensor([ids]), token_type_ids=torch.tensor([segments]), use_cache=False
            ).logits
            ids, segments = [*ids, int(logits[0, -1].argmax())], [*segments, 0]
            probabilities.append(float(logits[0, -1].softmax(dim=-1).max()))
    assert continuation.tokens.ids.tolist() == ids
    assert continuation.tokens.segment.tolist() == segments
    np.testing.assert_allclose(continuation.probabilities, probabilities, rtol=1e-4)  # float32
    whole = model.trace_tokens(continuation.tokens)
    for place in whole.heads():
        np.testing.assert_allclose(continuation.trace.weights(*place), whole.weights(*place), atol=2e-5)


@pytest.mark.parametrize("name", first_gates(*DECODERS))
def test_a_picked_token_is_written_and_the_text_goes_on_from_it(name, headed, written):
    model, plain = written(name)
    own = plain.tokens.ids[plain.n_read :].tolist()
    end = tiny.SHARED["eos_token_id"]  # after it nothing is written
    picked = next(value for value in plain.candidate_ids[2].tolist() if value not in (own[2], end))
    continuation = generate(model, TEXT, n_tokens=N, picks={2: picked})
    ids = continuation.tokens.ids.tolist()
    assert ids[: plain.n_read + 3] == [*plain.tokens.ids[: plain.n_read].tolist(), *own[:2], picked]
    theirs = generated(name, headed, ids[: plain.n_read + 3], do_sample=False)
    assert ids[plain.n_read + 3 :] == theirs[: N - 3]
    rank = plain.candidate_ids[2].tolist().index(picked)
    assert continuation.probabilities[2] == pytest.approx(plain.candidate_probabilities[2][rank], rel=1e-4)
    assert continuation.picks == {2: picked}


def test_a_pick_leaves_the_draws_of_the_other_steps(written):
    model, _ = written("gpt2")
    asked = {"n_tokens": N, "temperature": 2.0, "seed": 5}
    plain = generate(model, TEXT, **asked)
    same = {3: int(plain.tokens.ids[plain.n_read + 3])}
    assert generate(model, TEXT, **asked, picks=same).tokens.ids.tolist() == plain.tokens.ids.tolist()


@pytest.mark.parametrize("picks", [{N: 5}, {-1: 5}, {0: tiny.VOCABULARY}, {0: -1}])
def test_picks_that_there_are_not(picks, written):
    with pytest.raises(SelectionError, match="was picked for step"):
        generate(written("gpt2")[0], TEXT, n_tokens=N, picks=picks)


def test_a_refused_pick_is_told_with_what_there_is(written):
    """Steps are counted from 1, ids from 0."""
    last = tiny.VOCABULARY - 1
    with pytest.raises(SelectionError) as refused:
        generate(written("gpt2")[0], TEXT, n_tokens=N, picks={2: 70_000})
    for part in ("id 70000", "step 3;", f"1 to {N},", f"0 to {last}."):
        assert part in str(refused.value)


def test_a_text_is_written_up_to_the_last_token_that_the_model_has_room_for(written):
    model, continuation = written("gpt2")
    room = tiny.LIMIT - continuation.n_read
    full = generate(model, TEXT, n_tokens=room, picks={step: 5 for step in range(room)})
    assert len(full.tokens) == tiny.LIMIT
    with pytest.raises(SelectionError, match=f"reads at most {tiny.LIMIT} tokens"):
        generate(model, TEXT, n_tokens=room + 1)


def test_no_more_candidates_are_kept_than_the_vocabulary_has(written):
    continuation = generate(written("gpt2")[0], TEXT, n_tokens=1, top=10_000)
    [ids] = continuation.candidate_ids.tolist()
    assert sorted(ids) == [*range(tiny.VOCABULARY)]


def test_a_pick_after_the_end_of_the_text(headed):
    model, _ = headed("llama")
    ends = {0: tiny.SHARED["eos_token_id"]}
    with pytest.raises(SelectionError, match="ends the text with step 1"):
        generate(model, TEXT, n_tokens=N, picks=ends | {2: 5})


@pytest.mark.parametrize("temperature", [0.7, 2.0])
def test_draws_are_those_of_transformers_with_the_same_seed(temperature, headed, written):
    model, _ = written("gpt2")
    continuation = generate(model, TEXT, n_tokens=N, temperature=temperature, seed=5)
    torch.manual_seed(5)
    read = continuation.tokens.ids[: continuation.n_read].tolist()
    theirs = generated("gpt2", headed, read, do_sample=True, temperature=temperature, top_k=0)
    assert continuation.tokens.ids[continuation.n_read :].tolist() == theirs
    again = generate(model, TEXT, n_tokens=N, temperature=temperature, seed=5)
    other = generate(model, TEXT, n_tokens=N, temperature=temperature, seed=6)
    assert again.written == continuation.written != other.written


def test_it_ends_with_the_end_token(headed, monkeypatch):
    model, _ = headed("llama")
    plain = generate(model, TEXT, n_tokens=N)
    assert not plain.ended and len(plain.written) == N
    at = next(step for step in range(N) if plain.written[step] not in plain.written[:step] and step)
    monkeypatch.setattr(
        model.network.generation_config, "eos_token_id", int(plain.tokens.ids[plain.n_read + at])
    )
    ended = generate(model, TEXT, n_tokens=N)
    assert ended.ended and ended.written == plain.written[: at + 1]


def test_how_far_it_is_is_told(written):
    model, _ = written("gpt2")
    told = []
    continuation = generate(
        model, TEXT, n_tokens=4, progress=lambda share, token: told.append((share, token))
    )
    assert [share for share, _ in told] == [0.25, 0.5, 0.75, 1.0]
    assert [token.probability for _, token in told] == continuation.probabilities.tolist()
    assert all(token.label for _, token in told)


@pytest.mark.parametrize("name", ["bert", "t5"])
def test_a_model_that_does_not_write_is_refused(name, headed, tiny_model):
    model = headed("bert")[0] if name == "bert" else tiny_model(name)
    with pytest.raises(UnsupportedArchitectureError, match="is no decoder with a language head"):
        generate(model, TEXT)


@pytest.mark.parametrize(
    "asked",
    [
        {"n_tokens": 0},
        {"top": 0},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"seed": 2**64},
        {"seed": -1},
    ],
)
def test_what_cannot_be_asked_for(asked, written):
    with pytest.raises(SelectionError, match=r"(were|was) asked for"):
        generate(written("gpt2")[0], TEXT, **asked)


def test_more_tokens_than_the_model_reads(written):
    model, continuation = written("gpt2")
    assert model.max_tokens is not None
    with pytest.raises(SelectionError, match=f"reads at most {model.max_tokens}"):
        generate(model, TEXT, n_tokens=model.max_tokens - continuation.n_read + 1)


@pytest.mark.parametrize("temperature", [1e-40, 5e-324])
def test_a_temperature_near_0_writes_what_0_does(temperature, written):
    model, plain = written("gpt2")
    assert generate(model, TEXT, n_tokens=N, temperature=temperature).written == plain.written


def test_a_pair_is_continued_after_its_second_sentence(written):
    model, _ = written("gpt2")
    pair = model.trace("the cat", "sat on it").tokens
    continuation = generate(model, pair, n_tokens=2)
    assert continuation.tokens.labels[: continuation.n_read] == pair.labels
    joined = generate(model, "the cat" + "sat on it", n_tokens=2)
    assert continuation.tokens.ids.tolist() == joined.tokens.ids.tolist()


def test_the_bundled_language_model_writes_what_transformers_does(smollm2):
    continuation = generate(smollm2, "When Mary and John went to the store, John gave a drink to", n_tokens=4)
    config = type(smollm2.network.config).from_dict(smollm2.network.config.to_dict())
    theirs = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    theirs.base_model.load_state_dict(smollm2.network.state_dict())
    theirs.tie_weights()
    read = torch.tensor(continuation.tokens.ids[: continuation.n_read].tolist())[None]
    with torch.inference_mode():
        made = theirs.generate(
            read, attention_mask=torch.ones_like(read), max_new_tokens=4, min_new_tokens=4, do_sample=False
        )
        attentions = theirs(made, output_attentions=True).attentions
    assert continuation.tokens.ids.tolist() == made[0].tolist()
    assert continuation.written[0].strip("␣") == "Mary"
    for layer, head in ((0, 8), (17, 3), (23, 3), (29, 1)):
        np.testing.assert_allclose(
            continuation.trace.weights(layer, head), attentions[layer][0, head].numpy(), atol=2e-5
        )


def test_only_end_tokens_that_a_tokenizer_adds_are_left_out():
    """A text that ends in a special token of its own keeps all its tokens, and what is known of them."""
    special = np.array([True, False, False, True, True, True])
    read = small_records.tokens(6, is_special=special, in_text=(3,), unknown=(2,))
    kept = without_end(read)
    assert kept.ids.tolist() == [0, 1, 2, 3] and kept.labels == ("0", "1", "2", "3")
    assert (kept.in_text, kept.unknown) == ((3,), (2,))
    assert kept.is_special.tolist() == [True, False, False, True]
    assert without_end(kept) is kept


@pytest.mark.stand_ins
def test_what_is_known_of_the_tokens_of_a_text_and_of_those_written_after_it():
    """Their words are not known; a special token that is written is one of the text."""
    made = chat_tokenizer()
    read = tokenize(made, "ab <|said|>c", max_tokens=None)
    end = made.eos_token_id
    ids = [*read.ids.tolist(), *made("d e")["input_ids"], end]
    whole = _extended(SimpleNamespace(tokenizer=made), read, ids)
    assert whole.labels == ("a", "b", "␣", "<|said|>", "c", "d", "␣", "e", "<|end|>")
    assert whole.ids.tolist() == ids
    assert whole.text == "ab cd e"
    assert whole.is_special.tolist() == [at in (3, 8) for at in range(9)]
    assert whole.in_text == (3, 8)
    assert whole.word.tolist() == [*read.word.tolist(), -1, -1, -1, -1]
    assert whole.segment.tolist() == [0] * 9
