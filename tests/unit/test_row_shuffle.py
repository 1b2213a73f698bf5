"""Whether a row of weights matters: facts that are planted in crafted networks, and loops over transformers' own network."""

from copy import deepcopy
from math import dist, log

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

import attnviz
from attnviz.effects.outcome import TokenAnswer, TokenState
from attnviz.effects.row_shuffle import ShuffledRow, shuffled_heads, shuffled_row
from tests.hand_made import tokens
from tests.tiny_tokenizers import VOCABULARY, tokenizer

D_HEAD, N_HEAD, D_MODEL = 12, 3, 36
READER, SOURCE = 20, 4
"""Classes of the token whose query is looked at, and of the one token that the copying head reads from."""
SILENT, COPYING, EVEN = 0, 1, 2
CLASSES = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10] * 2
"""Distinct neighbours among the tokens that may be copied."""


@pytest.fixture(scope="module")
def crafted():
    """GPT-2 of two layers in which one head of the last alone carries what is predicted: the token of class SOURCE.

    A token is one dimension. The heads of the first layer, and head SILENT, look at all kinds of keys, and their rows of W_O are 0.
    Head EVEN has no queries, so that its weights are equal, and adds what it reads.
    """
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=D_MODEL,
        n_head=N_HEAD,
        n_layer=2,
        n_positions=40,
        tie_word_embeddings=True,
    )
    network = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "ln_" not in name:
                parameter.zero_()
        network.transformer.ln_f.weight.fill_(3.0)
        table = network.transformer.wte.weight
        table[10 : 10 + D_MODEL] = torch.eye(D_MODEL)  # class c is token 10 + c
        for layer, block in enumerate(network.transformer.h):
            attention = block.attn.c_attn.weight  # [d_model, query key value]
            attention.normal_(std=0.3)
            if layer == 0:
                continue
            query, key, value = attention.split(D_MODEL, dim=1)
            for head, part in ((part, slice(part * D_HEAD, (part + 1) * D_HEAD)) for part in range(N_HEAD)):
                if head != SILENT:
                    query[:, part], key[:, part], value[:, part] = 0.0, 0.0, 0.0
                    value[:D_HEAD, part] = torch.eye(D_HEAD)
                if head == COPYING:
                    query[READER, part], key[SOURCE, part] = 1.0, 1.0
                    block.attn.c_proj.weight[part, :D_HEAD] = 20 * torch.eye(D_HEAD)
                if head == EVEN:
                    block.attn.c_proj.weight[part, :D_HEAD] = torch.eye(D_HEAD)
    model = attnviz.wrap(network, tokenizer("bytes"), name="crafted")
    classes = [*CLASSES[:7], SOURCE, *CLASSES[7:], READER]
    return model, model.trace([10 + number for number in classes])


class TestPlanted:
    """The query is the last of 22 tokens, which sees them all."""

    query = 21

    @pytest.mark.parametrize("outcome", [None, TokenState(position=21), "answer:last:$"])
    @pytest.mark.parametrize("place", [(1, SILENT), (0, 0), (0, 1), (0, 2)])
    def test_a_head_without_w_o_does_not_matter_at_all(self, crafted, place, outcome):
        model, trace = crafted
        row = shuffled_row(model, trace, *place, self.query, outcome)
        assert np.ptp(row.weights) > 0.01 and not row.is_even
        assert not row.has_effect and (row.change, row.p) == (0.0, 1.0)

    def test_a_head_that_alone_carries_a_copied_token_matters(self, crafted):
        model, trace = crafted
        assert trace.weights(1, COPYING)[self.query, 7] > 0.999
        predicted = attnviz.predict(model, trace, self.query)
        assert predicted.ids[0] == 10 + SOURCE and predicted.probabilities[0] > 0.99
        row = shuffled_row(model, trace, 1, COPYING, self.query)
        is_elsewhere = row.orders[:, 7] != 7  # the weight that is the model's own of the source
        assert 17 <= is_elsewhere.sum() <= 19
        assert row.has_effect and row.change > 0.99
        np.testing.assert_array_equal(row.changes > 0.99, is_elsewhere)
        assert row.p == pytest.approx(
            (1 + (~is_elsewhere).sum()) / 20
        )  # as the permutations that leave it there
        many = shuffled_row(model, trace, 1, COPYING, self.query, n_shuffles=199)
        assert many.p < 0.1 and many.change > 0.99

    def test_an_even_row_says_that_permutations_tell_nothing(self, crafted):
        model, trace = crafted
        row = shuffled_row(model, trace, 1, EVEN, self.query)
        assert row.is_even and np.isnan(row.change) and np.isnan(row.p) and len(row.frame()) == 0
        first = shuffled_row(model, trace, 1, COPYING, 0)  # sees itself alone
        assert first.is_even and first.keys.tolist() == [0]

    def test_the_grid_of_heads_has_the_same_facts(self, crafted):
        model, trace = crafted
        told = []
        grid = shuffled_heads(model, trace, self.query, progress=told.append)
        assert grid.heads.shape == grid.p_values.shape == (2, N_HEAD)
        assert np.isnan(grid.heads[1, EVEN]) and np.isnan(grid.p_values[1, EVEN])
        for place in ((0, 0), (0, 1), (0, 2), (1, SILENT)):
            assert (grid.heads[place], grid.p_values[place]) == (0, 1)
        assert grid.heads[1, COPYING] > 0.99 and tuple(grid.ranked()[0]) == (1, COPYING)
        assert told == sorted(told) and told[-1] == 1

    def test_what_is_before_the_query_does_not_change(self, crafted):
        model, trace = crafted
        row = shuffled_row(model, trace, 1, COPYING, self.query, TokenState(position=self.query - 1))
        assert not row.has_effect and row.p == 1


class ByLoops:
    """Transformers' GPT-2, in which one row of one head is computed again from other weights."""

    def __init__(self, folder, ids, layer, head, query):
        self.network = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        self.ids, self.query = torch.tensor([list(ids)]), query
        self.block = self.network.transformer.h[layer].attn
        self.head = head
        projected = []
        kept = self.block.c_attn.register_forward_hook(lambda *call: projected.append(call[2]))
        with torch.inference_mode():
            out = self.network(input_ids=self.ids, output_attentions=True, output_hidden_states=True)
        kept.remove()
        self.own = out.attentions[layer][0, head, query].tolist()
        d_model = self.network.config.n_embd
        self.part = slice(
            head * d_model // self.block.num_heads, (head + 1) * d_model // self.block.num_heads
        )
        self.value = projected[0][0, :, 2 * d_model :][:, self.part]
        self.base = self.measures(self.own)

    def measures(self, weights):
        """The next token's probabilities at the query, its last state, and all logits, for other weights of the row."""

        def change(module, inputs):
            given = inputs[0].clone()
            given[0, self.query, self.part] = sum(
                weight * value for weight, value in zip(weights, self.value, strict=True)
            )
            return (given,)

        kept = self.block.c_proj.register_forward_pre_hook(change)
        with torch.inference_mode():
            out = self.network(input_ids=self.ids, output_hidden_states=True)
        kept.remove()
        logits = out.logits[0].double()
        return (
            logits[self.query].softmax(dim=-1).tolist(),
            out.hidden_states[-1][0, self.query].tolist(),
            logits,
        )


@pytest.mark.parametrize("outcome", [None, "state", "length", "answer"])
def test_changes_and_p_are_those_of_loops(headed, outcome):
    model, folder = headed("gpt2")
    trace = model.trace("the cat sat")
    layer, head, query, last = 1, 1, 6, len(trace.tokens) - 1
    loops = ByLoops(folder, trace.tokens.ids.tolist(), layer, head, query)
    given = {
        None: None,
        "state": TokenState(position=query),
        "length": TokenState(position=query, by="length"),
        "answer": TokenAnswer(position=last, token="a", against="b"),
    }[outcome]
    row = shuffled_row(model, trace, layer, head, query, given, n_shuffles=9, seed=3)
    assert row.keys.tolist() == list(range(query + 1))  # those that it sees
    np.testing.assert_allclose(row.weights, loops.own[: query + 1], atol=1e-6)
    answer = int(np.argmax(loops.base[0]))
    chosen = [model.tokenizer.convert_tokens_to_ids(name) for name in "ab"]

    def unit(vector):
        length = dist(vector, [0.0] * len(vector))
        return [number / length for number in vector]

    def number(of):
        shares, state, logits = of
        if outcome is None:
            return [log(shares[answer])]
        if outcome == "answer":
            return [float(logits[last, chosen[0]] - logits[last, chosen[1]])]
        return unit(state) if outcome == "state" else state

    def change(of):
        if outcome is None:
            return sum(abs(now - before) for now, before in zip(of[0], loops.base[0], strict=True)) / 2
        if outcome == "state":
            return 1 - sum(a * b for a, b in zip(unit(of[1]), unit(loops.base[1]), strict=True))
        return dist(number(of), number(loops.base))

    arrangements = [loops.base]
    for order in row.orders.tolist():
        weights = [loops.own[order[key]] if key <= query else 0.0 for key in range(len(loops.own))]
        arrangements.append(loops.measures(weights))
    changes = [change(of) for of in arrangements[1:]]
    np.testing.assert_allclose(row.changes, changes, rtol=2e-3, atol=3e-7)
    assert row.change == pytest.approx(sorted(changes)[4], rel=2e-3, abs=3e-7) and row.has_effect
    numbers = [number(of) for of in arrangements]
    mean = [sum(column) / len(numbers) for column in zip(*numbers, strict=True)]
    distances = [dist(vector, mean) for vector in numbers]
    np.testing.assert_allclose(row.distances, distances, rtol=5e-3, atol=1e-6)
    n_as_far = sum(other >= distances[0] * 0.999 for other in distances[1:])
    assert row.p == (1 + n_as_far) / 10


def test_special_tokens_keep_their_weights(tiny_model):
    bert = tiny_model("bert")
    trace = bert.trace("the cat sat on a mat")
    words = np.flatnonzero(~trace.tokens.is_special).tolist()
    all_keys, some = (shuffled_row(bert, trace, 1, 1, 3, keeps_special=keeps) for keeps in (False, True))
    assert all_keys.keys.tolist() == list(range(len(trace.tokens)))
    assert some.keys.tolist() == words and some.orders.max() == len(words) - 1
    np.testing.assert_allclose(some.weights, trace.weights(1, 1)[3, words], atol=1e-6)
    assert some.outcome == TokenState(position=3).words(trace.tokens)  # without a language head


def test_the_grid_is_the_row_of_each_head(headed):
    model, _ = headed("llama")
    trace = model.trace("the cat")
    grid = shuffled_heads(model, trace, 5, n_shuffles=7, seed=2)
    for layer, head in np.ndindex(grid.heads.shape):
        row = shuffled_row(model, trace, layer, head, 5, n_shuffles=7, seed=2)
        assert grid.heads[layer, head] == pytest.approx(row.change, rel=1e-2, abs=1e-6)
        assert grid.p_values[layer, head] == pytest.approx(row.p)
    assert len({*grid.heads.ravel().tolist()}) == grid.heads.size
    other = shuffled_heads(model, trace, 5, n_shuffles=7, seed=3)
    assert not np.allclose(other.heads, grid.heads, rtol=1e-3)


def test_p_of_an_arrangement_by_chance_is_small_as_rarely_as_it_says():
    random, small = np.random.default_rng(0), 0
    for _ in range(2000):
        outcomes = random.gamma(0.5, size=20)  # skewed
        away = np.abs(outcomes - outcomes.mean())
        small += row_of(away).p <= 0.05
    assert 0.035 <= small / 2000 <= 0.065


def row_of(distances, change=0.5) -> ShuffledRow:
    n = len(distances) - 1
    return ShuffledRow(
        kind="decoder",
        layer=0,
        head=0,
        query=1,
        outcome="",
        key_tokens=tokens(["a", "b"]),
        keys=np.arange(2),
        weights=np.array([0.25, 0.75], dtype=np.float32),
        orders=np.tile([1, 0], (n, 1)),
        changes=np.full(n, change, dtype=np.float32),
        distances=np.asarray(distances, dtype=np.float32),
        rounding=1e-6,
    )


@pytest.mark.parametrize(
    ("distances", "p"),
    [
        ([3.0, 1.0, 2.0, 2.5], 0.25),
        ([2.0, 1.0, 2.0, 2.5], 0.75),
        ([2.0, 1.0, 1.999, 2.5], 0.75),  # tied but for weights that are nearly 0
        ([2.0, 1.0, 1.99, 2.5], 0.5),
        ([0.0, 1.0, 2.0, 3.0], 1.0),
    ],
)
def test_p_counts_those_that_are_as_far(distances, p):
    assert row_of(distances).p == p


def test_changes_within_rounding_are_none():
    """However far apart rounding takes the arrangements."""
    row = row_of([3e-7, 1e-7, 2e-7], change=9e-7)
    assert not row.has_effect and (row.change, row.p) == (0.0, 1.0)
    assert row_of([3e-7, 1e-7, 2e-7], change=1.1e-6).p == pytest.approx(1 / 3)


def test_rounding_of_a_run_is_no_effect(embedded, door_trace):
    """Of a head of the bundled model whose rows of W_O become 0, in batches that round as its own run does not."""
    network = deepcopy(embedded.network)
    with torch.no_grad():
        network.encoder.layer[2].attention.output.dense.weight[:, 32:64] = 0
    model = attnviz.wrap(network, embedded.tokenizer)
    trace = model.trace(door_trace.tokens.text)
    for outcome in (None, "length:7", "similarity:A window."):
        row = shuffled_row(model, trace, 2, 1, 7, outcome)
        assert not row.has_effect and 0 < row.rounding < 1e-4
        assert shuffled_row(model, trace, 2, 0, 7, outcome).has_effect


def test_of_encoder_and_decoder_an_outcome_is_needed_for_the_encoder(tiny_model):
    bart = tiny_model("bart")
    trace = bart.trace("the cat sat", "it opened .")
    with pytest.raises(attnviz.SelectionError, match="Give an outcome, such as state:0"):
        shuffled_row(bart, trace, 0, 0, 1, kind="encoder")
    encoder = shuffled_row(bart, trace, 0, 0, 1, "state:0", kind="encoder")
    cross = shuffled_row(bart, trace, 1, 1, 2, kind="cross")
    assert encoder.has_effect and cross.has_effect
    assert cross.keys.tolist() == list(range(len(trace.tokens)))


@pytest.mark.parametrize(
    ("query", "n_shuffles", "message"), [(99, 9, "[Qq]uery 99"), (1, 0, "0 permutations")]
)
def test_what_is_not_there(tiny_model, query, n_shuffles, message):
    bert = tiny_model("bert")
    with pytest.raises(attnviz.SelectionError, match=message):
        shuffled_row(bert, bert.trace("the cat"), 0, 0, query, n_shuffles=n_shuffles)
