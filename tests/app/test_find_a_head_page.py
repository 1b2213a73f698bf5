"""Find a head: the pair that is asked for, every head's weight for it, and the strongest pairs of one head."""

import numpy as np
import pytest

from attnviz.figures.numbers import number_text
from attnviz.model.trace import Trace
from attnviz.records import Axis
from tests.app.screen import (
    Facts,
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    finding,
    notices,
    open_page,
    shown,
    type_text,
    unescaped,
)
from ui.rooms.all_heads.find_a_head import NO_PAIR
from ui.shell import verdict

PAGE = "pages/find_a_head.py"
PHRASES = "I was watching the untrodden doorstep when it opened."
PAIR = {"text": "The door opened.", "second": "Who opened it?", "layer": 2, "head": 5}


@pytest.fixture
def page():
    return open_page(PAGE)


def heads_listed(at) -> list[tuple[tuple[int, int], str]]:
    """Layer and head of each row, and its number."""
    return [(facts(row["text"]).heads[0], row["amount"]) for row in component(at, "best_heads")["rows"]]


def pairs_listed(at) -> list[tuple[str, str]]:
    return [(row["text"], row["key"]) for row in component(at, "best_pairs")["rows"]]


def marked(at, name: str) -> list[str]:
    return [row["text"] for row in component(at, name)["rows"] if row["picked"]]


def grid_labels(at) -> list[list[str]]:
    return [[cell["label"] for cell in row] for row in component(at, "head_grid")["cells"]]


def weights_of(trace, rows: slice, columns: slice) -> np.ndarray:
    """Mean over the rows of the sum over the columns, [layer, head], head by head."""
    shape = (trace.n_layers(), trace.n_heads(0))
    means = [trace.weights(*place)[rows, columns].sum(axis=1).mean() for place in np.ndindex(shape)]
    return np.array(means).reshape(shape)


class TestThePair:
    def test_the_door_sentence_finds_its_head(self, page, door_trace):
        assert facts(finding(page)) == Facts(("it", "door"), ((3, 1),), ("47.5%", "72"))
        weights = weights_of(door_trace, slice(7, 8), slice(5, 6))
        order = np.argsort(-weights, axis=None)[:24]
        expected = [(divmod(int(index), 12), number_text(float(weights.flat[index]))) for index in order]
        assert heads_listed(page) == expected
        assert [facts(text).heads for text in marked(page, "best_heads")] == [((3, 1),)]
        rows = component(page, "best_heads")["rows"]
        assert rows[1]["length"] == pytest.approx(weights.flat[order[1]] / weights.max(), rel=1e-5)
        assert facts(captions(page)).has("24", "72")

    def test_the_grid_has_the_number_of_every_head(self, page, door_trace):
        weights = weights_of(door_trace, slice(7, 8), slice(5, 6))
        expected = [[f"{value:.3f}" for value in row] for row in weights]
        assert grid_labels(page) == expected
        tooltip = component(page, "head_grid")["cells"][5][7]["text"].split(";")[
            0
        ]  # what follows are its names
        assert facts(tooltip) == Facts(("it", "door"), ((5, 7),), ("0.356", "2", "72"))

    def test_a_head_that_is_not_the_first_says_its_rank_and_who_is(self):
        at = open_page(PAGE, layer=5, head=11, query=7, key=5)
        assert facts(finding(at)) == Facts(("it", "door"), ((5, 11), (3, 1)), ("33.1%", "3", "72", "47.5%"))

    def test_phrases_are_averaged_over_queries_and_summed_over_keys(self, embedded):
        at = open_page(PAGE, text=PHRASES, layer=2, head=8, query=3, query_to=5, key=7, key_to=8)
        weights = weights_of(embedded.trace(PHRASES), slice(3, 6), slice(7, 9))
        in_finding = facts(finding(at))
        assert in_finding.heads[0] == (2, 8)
        assert in_finding.numbers[0] == f"{100 * weights[2, 8]:.1f}%"
        assert in_finding.quoted == ("watching the un", "##dden doorstep")
        assert grid_labels(at)[2][8] == f"{weights[2, 8]:.3f}"

    def test_words_are_picked_whole(self, embedded):
        at = open_page(PAGE, text=PHRASES, layer=2, head=8, unit="words", query=3, query_to=6, key=8)
        weights = weights_of(embedded.trace(PHRASES), slice(3, 8), slice(8, 9))
        assert facts(finding(at)).quoted == ("watching the untrodden", "doorstep")
        assert f"{100 * weights[2, 8]:.1f}%" in finding(at)
        assert at.selectbox(key="field_query_to").value == 5
        assert "untrodden·5" in at.selectbox(key="field_key").options

    def test_the_fields_pick_query_key_and_phrase(self, page):
        page.selectbox(key="field_key").set_value(3).run()
        assert facts(finding(page)).quoted == ("it", "watching")
        page.selectbox(key="field_key_to").set_value(5).run()
        assert facts(finding(page)).quoted == ("it", "watching the door")
        assert shown(page)["key_to"] == "5"
        assert (
            page.selectbox(key="field_key_to").options[0] == "watching·3"
        )  # a phrase ends no earlier than it begins

        page.selectbox(key="field_query").set_value(8).run()
        assert facts(finding(page)).quoted == ("opened", "watching the door")
        page.selectbox(key="field_key").set_value(1).run()
        assert facts(finding(page)).quoted == ("opened", "i")  # another key is one token again
        assert "key_to" not in shown(page)
        assert_no_exception(page)

    def test_another_head_is_asked_about_the_same_pair(self):
        at = open_page(
            PAGE, layer=0, head=2, query=8
        )  # no key: the head's strongest one, which is the previous token
        assert facts(finding(at)).quoted == ("opened", "it")
        at.number_input(key="field_layer").set_value(3).run()
        assert facts(finding(at)).quoted == ("opened", "it")

    def test_another_sentence_has_no_phrase_yet(self):
        at = open_page(PAGE, query=3, query_to=5, key=7)
        type_text(at, "Who opened it?")
        assert_no_exception(at)
        assert "query_to" not in shown(at)

    def test_a_link_to_a_phrase_beyond_the_text_says_so(self):
        at = open_page(PAGE, query=3, query_to=99, key=7)
        [notice] = notices(at)
        assert "query_to" in notice
        assert facts(notice).numbers == ("99", "0", "10", "10")
        assert facts(finding(at)).quoted[0] == "watching the door when it opened . [SEP]"

    def test_norm_based_weights(self, door_trace):
        at = open_page(PAGE, show="norms", query=7, key=5)
        norms = np.stack([door_trace.layer_weights(layer, measure="norms")[:, 7, 5] for layer in range(6)])
        layer, head = divmod(int(norms.argmax()), 12)
        assert heads_listed(at)[0] == ((layer, head), number_text(float(norms.max())))

    def test_rollout_has_no_heads_and_that_is_said(self):
        at = open_page(PAGE, show="rollout", query=7, key=5)
        assert heads_listed(at)[0] == ((3, 1), "0.475")
        assert "Rollout" in captions(at)


class TestStrongestPairs:
    def test_are_the_largest_cells_of_the_text(self, page, door_trace):
        weights = door_trace.weights(3, 1)
        labels = door_trace.tokens.labels
        cells = sorted(
            ((weights[i, j], i, j) for i in range(1, 10) for j in range(1, 10) if i != j), reverse=True
        )[:24]
        assert pairs_listed(page) == [(f"{labels[i]}·{i}", f"{labels[j]}·{j}") for _, i, j in cells]
        assert marked(page, "best_pairs") == ["it·7"]

    def test_special_tokens_and_itself_are_listed_when_asked_for(self, page, door_trace):
        weights = door_trace.weights(3, 1)
        labels = door_trace.tokens.labels
        page.checkbox(key="field_pairs_special").check().run()
        page.checkbox(key="field_pairs_itself").check().run()
        order = [divmod(int(cell), 11) for cell in np.argsort(-weights, axis=None)[:24]]
        assert pairs_listed(page) == [(f"{labels[i]}·{i}", f"{labels[j]}·{j}") for i, j in order]
        assert shown(page)["pairs_special"] == shown(page)["pairs_itself"] == "1"

    def test_follow_the_sentences_that_are_chosen(self):
        at = open_page(PAGE, **PAIR, sentences="A → B")
        assert {key for _, key in pairs_listed(at)} <= {"who·6", "opened·7", "it·8", "?·9"}
        assert {query for query, _ in pairs_listed(at)} <= {"the·1", "door·2", "opened·3", ".·4"}

    def test_of_words(self, embedded):
        at = open_page(PAGE, text=PHRASES, layer=2, head=8, unit="words")
        trace = embedded.trace(PHRASES)
        words = Axis.of(trace.tokens, "words")
        weights = trace.pattern(2, 8).arranged(words, words).weights
        inner = weights[1:-1, 1:-1] * (1 - np.eye(len(words) - 2))
        row, column = np.unravel_index(inner.argmax(), inner.shape)
        expected = [f"{words.labels[index + 1]}·{words.positions[index + 1]}" for index in (row, column)]
        assert list(pairs_listed(at)[0]) == expected

    def test_a_text_without_a_pair_says_so(self):
        at = open_page(PAGE, text="door")
        assert_no_exception(at)
        assert pairs_listed(at) == []
        assert NO_PAIR in captions(at)


class TestOtherModels:
    @pytest.fixture(autouse=True)
    def _offered(self, monkeypatch, checkpoint):
        monkeypatch.setenv("ATTNVIZ_MODELS", f"{checkpoint('gpt2')},{checkpoint('t5')}")

    def test_a_decoder_gives_nothing_to_what_comes_later(self):
        at = open_page(PAGE, model="gpt2", text="the cat", query=2, key=5)
        assert errors(at) == []
        headlines = [unescaped(line.value) for line in at.markdown if line.value.startswith("**")]
        assert facts(headlines[0]) == Facts(("e", "a"))  # no head has a number for it
        assert "decoder" in captions(at).lower()

    def test_cross_attention_has_its_own_keys(self, tiny_model):
        at = open_page(PAGE, model="t5", kind="cross", text="the cat sat.", second="it was", query=1, key=2)
        trace = tiny_model("t5").trace("the cat sat.", "it was")
        weights = np.stack([trace.layer_weights(layer, "cross")[:, 1, 2] for layer in range(4)])
        queries, keys = trace.query_tokens("cross").labels, trace.key_tokens("cross").labels
        assert facts(finding(at)).quoted == (queries[1], keys[2])
        layer, head = divmod(int(weights.argmax()), 2)
        assert heads_listed(at)[0][0] == (layer, head)
        assert len(heads_listed(at)) == 8  # all there are
        assert not [element for element in at.checkbox if element.key == "field_pairs_itself"]


def test_a_phrase_of_a_link_stands_in_its_two_fields():
    at = open_page(PAGE, query=1, query_to=3)
    assert [at.selectbox(key=f"field_{name}").value for name in ("query", "query_to")] == [1, 3]


class TestALongText:
    @pytest.fixture(autouse=True)
    def _a_sentence_is_long(self, own_numbers, monkeypatch):
        monkeypatch.setattr("attnviz.model.trace.LONG", 8)
        monkeypatch.setattr(verdict, "show", lambda view: None)  # which computes all numbers

    def test_the_numbers_of_a_short_one(self, door_trace):
        at = open_page(PAGE, layer=3, head=1, query=7, key=5)
        assert_no_exception(at)
        assert facts(finding(at)) == Facts(("it", "door"), ((3, 1),), ("47.5%", "72"))
        weights = weights_of(door_trace, slice(7, 8), slice(5, 6))
        assert grid_labels(at) == [[f"{value:.3f}" for value in row] for row in weights]
        own = door_trace.weights(3, 1)[1:-1, 1:-1].copy()
        np.fill_diagonal(own, 0)
        order = np.argsort(-own, axis=None)[:24]
        labels = door_trace.tokens.labels
        listed = [
            (f"{labels[row + 1]}·{row + 1}", f"{labels[column + 1]}·{column + 1}")
            for row, column in (divmod(int(index), len(own)) for index in order)
        ]
        assert pairs_listed(at) == listed

    def test_a_pair_and_a_phrase_by_position(self):
        at = open_page(PAGE, layer=3, head=1, query=7, key=5)
        at.number_input(key="field_key_to").set_value(6).run()
        assert facts(finding(at)).quoted == ("it", "door when")
        at.number_input(key="field_key").set_value(3).run()
        assert facts(finding(at)).quoted == ("it", "watching")
        assert "key_to" not in shown(at)
        assert any("was **watching** the" in line.value for line in at.markdown)

    def test_the_strongest_key_where_none_is_selected(self):
        assert facts(finding(open_page(PAGE, layer=3, head=1, query=7))).quoted == ("it", "door")

    def test_no_whole_matrix_is_computed(self, monkeypatch):
        text, real = f"{PHRASES} It was cold.", Trace.pattern

        def pattern(trace: Trace, *asked: object, **named: object):
            assert trace.tokens.text != text
            return real(trace, *asked, **named)

        monkeypatch.setattr(Trace, "pattern", pattern)
        at = open_page(PAGE, text=text, layer=3, head=1, query=9)
        assert_no_exception(at)
        assert not errors(at)
