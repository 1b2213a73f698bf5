"""The page "Token flow": the lines it sends to the browser are the trace's, and the caption says what is left out."""

import numpy as np
import pytest

from attnviz.heads.flow import MOST_LINES
from attnviz.records import AllHeads, Head
from tests.app.screen import DOOR as TEXT
from tests.app.screen import (
    Facts,
    assert_no_exception,
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
from ui.shell.view import SPECIAL_HIDDEN
from ui.words.findings import MEASURE_NOTES

PAGE = "pages/token_flow.py"
DOOR = {"text": TEXT, "layer": 3, "head": 1}
LONG = "the river flooded an old market twice; Paris reported 17 bridges, and nobody was surprised. " * 40


def lines(at) -> dict[tuple[str, int, int], float]:
    """Weight of each line by head and the positions of its ends."""
    data = component(at, "token_flow")
    given = data["lines"]
    weights = {
        (
            data["matrices"][matrix]["name"],
            data["queries"]["positions"][query],
            data["keys"]["positions"][key],
        ): weight
        for matrix, query, key, weight in zip(
            given["matrix"], given["query"], given["key"], given["weight"], strict=True
        )
    }
    assert len(weights) == len(given["weight"])  # no line twice
    return weights


def caption(at) -> str:
    assert_no_exception(at)
    return " ".join(unescaped(element.value) for element in at.caption)


def caption_facts(at) -> Facts:
    """What the caption says of the lines: how many are drawn, and what they hold."""
    return facts(caption(at))


def kept_share(weights: np.ndarray, share: float) -> set[tuple[int, int]]:
    """exBERT's loop: for each query its strongest keys until they hold the share."""
    kept = set()
    for query, row in enumerate(weights):
        held = 0.0
        for key in np.argsort(-row, kind="stable"):
            if held < share * row.sum():
                kept.add((query, int(key)))
                held += float(row[key])
    return kept


def assert_same_weights(drawn, expected: dict) -> None:
    assert drawn.keys() == expected.keys()
    for line, weight in drawn.items():
        assert weight == pytest.approx(float(expected[line]), rel=1e-3)  # four digits are sent


def test_the_lines_are_the_head_s_weights(door_trace):
    at = open_page(PAGE, **DOOR, query=7)
    weights = door_trace.weights(3, 1)

    kept = kept_share(weights, 0.7)
    assert_same_weights(lines(at), {("L3 H1", *cell): weights[cell] for cell in kept})
    data = component(at, "token_flow")
    assert data["queries"]["labels"] == data["keys"]["labels"] == list(door_trace.tokens.labels)
    assert (data["largest"], data["kept"]) == (1.0, None)
    assert data["queries"]["picked"] == 7
    in_finding = facts(finding(at))
    assert (in_finding.heads, in_finding.quoted[:2], in_finding.numbers[0]) == (
        ((3, 1),),
        ("it", "door"),
        "47.5%",
    )
    held = 100 * sum(weights[cell] for cell in kept) / weights.sum()
    assert caption_facts(at).has(
        str(len(kept)), f"{held:.1f}%", "70%"
    )  # the last is the share that is asked for


def test_a_threshold_by_weight(door_trace):
    at = open_page(PAGE, **DOOR, threshold="weight", weakest=12.5)
    weights = door_trace.weights(3, 1)
    expected = {("L3 H1", int(i), int(j)): weights[i, j] for i, j in np.argwhere(weights >= 0.125)}
    assert_same_weights(lines(at), expected)
    assert "12.5%" in caption_facts(at).numbers
    assert shown(at)["weakest"] == "12.5"


def test_the_share_is_moved_by_its_slider(door_trace):
    at = open_page(PAGE, **DOOR)
    at.slider(key="field_share").set_value(100).run()
    assert len(lines(at)) == (door_trace.weights(3, 1) > 0).sum() == 121
    assert caption_facts(at).has("121", "100.0%")
    assert "100%" not in caption_facts(at).numbers  # a share of 100% is not mentioned
    assert shown(at)["share"] == "100"
    at.button_group(key="field_threshold").set_value("weight").run()
    assert len(lines(at)) == (door_trace.weights(3, 1) >= 0.05).sum()


class TestSeveralHeads:
    def test_have_lines_and_colours_of_their_own(self, door_trace):
        at = open_page(PAGE, **DOOR, heads="3.5,2.4,3")
        data = component(at, "token_flow")
        assert [matrix["name"] for matrix in data["matrices"]] == [
            "L3 H1",
            "L3 H5",
            "L2 H4",
            "L3",
        ]
        assert len({matrix["colour"] for matrix in data["matrices"]}) == 4
        weights = {
            "L3 H1": door_trace.weights(3, 1),
            "L3 H5": door_trace.weights(3, 5),
            "L2 H4": door_trace.weights(2, 4),
            "L3": np.mean([door_trace.weights(3, head) for head in range(12)], axis=0),
        }
        expected = {
            (name, *cell): matrix[cell]
            for name, matrix in weights.items()
            for cell in kept_share(matrix, 0.7)
        }
        assert_same_weights(lines(at), expected)

    def test_are_chosen_in_their_field(self):
        at = open_page(PAGE, **DOOR)
        at.multiselect(key="field_heads").set_value([Head(4, 2), AllHeads(0)]).run()
        assert {name for name, _, _ in lines(at)} == {"L3 H1", "L4 H2", "L0"}
        assert shown(at)["heads"] == "4.2,0"
        at.number_input(key="field_head").set_value(2).run()
        assert [matrix["name"] for matrix in component(at, "token_flow")["matrices"]] == [
            "L3 H2",
            "L4 H2",
            "L0",
        ]

    def test_more_than_there_are_colours_are_left_out_and_named(self):
        at = open_page(PAGE, **DOOR, heads="3.5,2.4,1.7,0.2,5")
        assert [matrix["name"] for matrix in component(at, "token_flow")["matrices"]] == [
            "L3 H1",
            "L3 H5",
            "L2 H4",
            "L1 H7",
        ]
        assert caption_facts(at).has("4", "5")  # what is left out of 4 at most: a head, and layer 5
        assert caption_facts(at).heads == ((0, 2),)

        assert not caption_facts(open_page(PAGE, **DOOR, heads="3.5,2.4,1.7,3.1")).heads

    def test_one_that_is_picked_is_drawn_once(self):
        at = open_page(PAGE, **DOOR, heads="3.1,2.4")
        assert [matrix["name"] for matrix in component(at, "token_flow")["matrices"]] == ["L3 H1", "L2 H4"]

    def test_that_the_model_does_not_have_are_left_out(self):
        at = open_page(PAGE, **DOOR, heads="2.4,6.1,3.12")
        assert [matrix["name"] for matrix in component(at, "token_flow")["matrices"]] == ["L3 H1", "L2 H4"]
        [notice] = notices(at)
        assert facts(notice).numbers == ("2.4", "6.1", "3.12")
        assert "all-MiniLM-L6-v2" in notice

    @pytest.mark.parametrize("heads", ["door", "3.", "-1.2", "3.1.2", "٣.١", ",,", "9" * 40])
    def test_that_are_none_are_said_to_be(self, heads):
        at = open_page(PAGE, **DOOR, heads=heads)
        assert_no_exception(at)
        assert [matrix["name"] for matrix in component(at, "token_flow")["matrices"]] == ["L3 H1"]
        [notice] = notices(at)
        assert facts(notice).quoted == (heads,)


class TestMeasures:
    def test_rollout_is_of_all_heads_of_a_layer(self, door_trace):
        at = open_page(PAGE, **DOOR, heads="3.5,2.4", show="rollout")
        assert [matrix["name"] for matrix in component(at, "token_flow")["matrices"]] == ["L3", "L2"]
        expected = {}
        for layer in (2, 3):
            reached = np.eye(11)
            for below in range(layer + 1):
                mean = np.mean([door_trace.weights(below, head) for head in range(12)], axis=0)
                reached = (0.5 * mean + 0.5 * np.eye(11)) @ reached
            expected |= {(f"L{layer}", *cell): reached[cell] for cell in kept_share(reached, 0.7)}
        assert_same_weights(lines(at), expected)
        assert facts(finding(at)).numbers[:2] == ("0", "3")  # layers
        assert MEASURE_NOTES["rollout"] in caption(at)
        assert shown(at)["heads"] == "3.5,2.4"  # they come back with the weights

    def test_norms_are_as_thick_as_they_are_to_the_largest(self, door_trace):
        at = open_page(PAGE, **DOOR, show="norms")
        norms = door_trace.pattern(3, 1, measure="norms").weights
        assert component(at, "token_flow")["largest"] == pytest.approx(float(norms.max()))
        assert f"{norms.max():.3g}" in caption_facts(at).numbers
        assert_same_weights(lines(at), {("L3 H1", *cell): norms[cell] for cell in kept_share(norms, 0.7)})

    def test_a_threshold_of_norms_is_in_percent_of_the_largest(self, door_trace):
        at = open_page(PAGE, **DOOR, show="norms", threshold="weight", weakest=50)
        norms = door_trace.pattern(3, 1, measure="norms").weights
        assert len(lines(at)) == (norms >= norms.max() / 2).sum()

    def test_scores_have_no_flow_and_the_weights_are_drawn(self, door_trace):
        at = open_page(PAGE, **DOOR, show="scores")
        assert at.button_group(key="field_show").value == "weights"
        assert max(lines(at).values()) == pytest.approx(door_trace.weights(3, 1).max(), rel=1e-3)

    def test_cross_attention_has_no_rollout(self, checkpoint, monkeypatch):
        monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bart")))
        at = open_page(PAGE, model="bart", text="the cat sat on a mat", second="it opened", kind="cross")
        assert_no_exception(at)
        assert errors(at) == []
        data = component(at, "token_flow")
        assert len(data["queries"]["labels"]) != len(data["keys"]["labels"])
        assert [option.content for option in at.button_group(key="field_show").proto.options] == [
            "Weights",
            "Norm-based",
        ]


class TestKept:
    def test_a_link_keeps_a_query(self):
        at = open_page(PAGE, **DOOR, query=5, lines_of="query")
        assert component(at, "token_flow")["kept"] == ["query", 5]
        at.number_input(key="field_layer").set_value(2).run()
        at.slider(key="field_share").set_value(30).run()
        assert component(at, "token_flow")["kept"] == ["query", 5]
        assert shown(at)["lines_of"] == "query"

    def test_a_link_keeps_a_key(self):
        at = open_page(PAGE, **DOOR, query=7, key=3, lines_of="key")
        assert component(at, "token_flow")["kept"] == ["key", 3]

    def test_another_sentence_lets_go(self):
        at = open_page(PAGE, **DOOR, query=5, lines_of="query")
        type_text(at, "Nobody opened the old gate.")
        assert component(at, "token_flow")["kept"] is None
        assert "lines_of" not in shown(at)

    def test_a_piece_keeps_its_word(self):
        at = open_page(PAGE, text="Unbelievably odd.", query=3, unit="words", lines_of="query")
        data = component(at, "token_flow")
        assert data["queries"]["labels"][1] == "unbelievably"
        assert data["kept"] == ["query", 1]
        assert data["queries"]["picked"] == 1

    def test_what_is_hidden_is_not_kept(self):
        at = open_page(PAGE, **DOOR, query=0, lines_of="query", special="hidden")
        data = component(at, "token_flow")
        assert (data["kept"], data["queries"]["picked"]) == (None, None)
        assert facts(finding(at)) == Facts(("[CLS]",), ((3, 1),))  # it has no weight to be named


class TestRowsAndColumns:
    def test_the_border_of_a_pair_is_marked_on_both_sides(self):
        at = open_page(PAGE, text="The door opened.", second="Who was it?")
        data = component(at, "token_flow")
        assert data["queries"]["border"] == data["keys"]["border"] == 6
        assert data["queries"]["labels"][5:7] == ["[SEP]", "who"]

    def test_one_sentence_to_the_other(self, embedded):
        at = open_page(
            PAGE, text="The door opened.", second="Who was it?", sentences="B → A", share=100, layer=2, head=5
        )
        data = component(at, "token_flow")
        assert data["queries"]["border"] is data["keys"]["border"] is None
        weights = embedded.trace("The door opened.", "Who was it?").weights(2, 5)
        assert_same_weights(
            lines(at), {("L2 H5", i, j): weights[i, j] for i in range(6, 11) for j in range(6)}
        )

    def test_hidden_tokens_have_no_lines(self):
        at = open_page(PAGE, **DOOR, special="hidden", share=100)
        assert {query for _, query, _ in lines(at)} == set(range(1, 10))
        assert {key for _, _, key in lines(at)} == set(range(1, 10))
        assert caption_facts(at).has("81", "100.0%")
        assert SPECIAL_HIDDEN in caption(at)


@pytest.fixture(scope="module")
def long_page():
    return open_page(PAGE, text=LONG, cut=1, layer=3, head=1, query=155)


class TestLongText:
    @pytest.mark.nightly
    def test_only_the_strongest_lines_are_sent(self, long_page, embedded):
        weights = embedded.trace(LONG, cut=True).weights(3, 1)
        sent = lines(long_page)
        assert len(weights) == 512
        assert len(sent) == MOST_LINES
        kept = kept_share(weights.astype(np.float64), 0.7)
        of_query = {("L3 H1", *cell) for cell in kept if cell[0] == 155}
        assert of_query <= sent.keys()
        weakest = min(weight for line, weight in sent.items() if line not in of_query)
        stronger = [cell for cell in kept if weights[cell] > weakest * 1.001]
        assert all(("L3 H1", *cell) in sent for cell in stronger)

    @pytest.mark.nightly
    def test_those_of_the_pair_are_drawn_and_the_rest_is_said_to_be_hidden(self, long_page):
        given = component(long_page, "token_flow")["lines"]
        drawn = np.array(given["drawn"], dtype=bool)
        of_query = np.array(given["query"]) == 155
        strongest = np.array(given["key"])[of_query][-1]  # the weakest are sent first
        np.testing.assert_array_equal(drawn, of_query | (np.array(given["key"]) == strongest))
        assert 5 < drawn.sum() < 200
        assert f"{(~drawn).sum():,}" in caption_facts(long_page).numbers

    def test_all_of_a_short_text_are_drawn(self):
        at = open_page(PAGE, **DOOR)
        assert all(component(at, "token_flow")["lines"]["drawn"])

    def test_more_are_drawn_on_request(self):
        at = open_page(PAGE, **DOOR, query=7, key=5, share=100, at_once=30)
        assert sum(component(at, "token_flow")["lines"]["drawn"]) == 11 + 10 + 30
        at.number_input(key="field_at_once").set_value(2000).run()
        assert all(component(at, "token_flow")["lines"]["drawn"])
        assert shown(at)["at_once"] == "2000"

    @pytest.mark.nightly
    def test_the_caption_says_what_they_hold(self, long_page, embedded):
        numbers = caption_facts(long_page).numbers
        share, weaker = numbers[numbers.index("2,000") + 1 :][:2]
        held = 100 * sum(lines(long_page).values()) / 512
        assert float(share.removesuffix("%")) == pytest.approx(held, abs=0.1)
        weights = embedded.trace(LONG, cut=True).weights(3, 1).astype(np.float64)
        assert int(weaker.replace(",", "")) == pytest.approx(len(kept_share(weights, 0.7)) - 2000, abs=5)

    @pytest.mark.nightly
    def test_what_is_sent_is_small(self, long_page):
        [sent] = [element for element in long_page.get("bidi_component") if element.key == "token_flow"]
        assert len(sent.proto.bytes) < 100_000


def test_all_heads_cannot_be_selected_at_once_where_four_is_the_most():
    assert not open_page(PAGE, **DOOR).multiselect(key="field_heads").proto.select_all
