"""The first screen: its map, its verdict, the order in which its parts are sent, and what stays when one fails."""

from dataclasses import replace

import numpy as np
import pytest
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

import attnviz
from attnviz.errors import VerificationError
from attnviz.maths import attention
from attnviz.model import verification
from tests.app.screen import (
    alt,
    assert_no_exception,
    captions,
    charts,
    choose,
    errors,
    facts,
    figure,
    finding,
    numbers,
    open_page,
    shown,
    type_text,
)
from ui.rooms import ROOMS
from ui.words.findings import lines_note
from ui.words.reliability import READ, reading_of, short


@pytest.fixture
def sent():
    """Everything that is sent to the browser, in order."""
    messages = []
    ForwardMsgQueue.on_before_enqueue_msg(messages.append)
    yield messages
    ForwardMsgQueue.on_before_enqueue_msg(None)


def verdict(at):
    """The link to the Verification page in the main part of the page."""
    [link] = [element.proto for element in at.main.get("page_link") if element.proto.page == "verification"]
    return link


def kind_of(message):
    """What a message is: an element by its type, a chart by its key, anything else by its own type."""
    if message.WhichOneof("type") != "delta":
        return message.WhichOneof("type")
    if message.delta.WhichOneof("type") != "new_element":
        return message.delta.WhichOneof("type")
    element = message.delta.new_element
    kind = element.WhichOneof("type")
    drawn = element.bidi_component
    return drawn.id.rpartition("-")[2] if drawn.component_name == "attnviz_plotly_figure" else kind


def test_the_same_settings_give_the_same_map_and_others_another(first_screen):
    def points(at):
        return [numbers(trace["x"]) for trace in figure(at, "map")["data"] if trace["mode"] == "markers+text"]

    before = points(first_screen)
    first_screen.number_input(key="field_perplexity").set_value(2.0).run()
    other = points(first_screen)
    first_screen.number_input(key="field_perplexity").set_value(5.0).run()

    np.testing.assert_array_equal(before, points(first_screen))
    assert not np.allclose(before, other)


def test_a_perplexity_too_large_for_the_text_is_lowered_and_it_is_said(first_screen):
    first_screen.number_input(key="field_perplexity").set_value(90.0).run()
    [note] = [element.proto.help for element in first_screen.caption if element.value.startswith("t-SNE")]
    assert_no_exception(first_screen)
    assert facts(note).has("90", "7.0")  # what was asked for, and what it was lowered to


@pytest.mark.parametrize(
    ("name", "value"), [("metric", "euclidean"), ("iterations", 250), ("perplexity", 3.0), ("seed", 4)]
)
def test_settings_of_the_map_are_in_its_note_and_in_the_link(first_screen, name, value):
    if name == "metric":
        choose(first_screen, name, value)
    else:
        first_screen.number_input(key=f"field_{name}").set_value(value).run()
    [note] = [element.proto.help for element in first_screen.caption if element.value.startswith("t-SNE")]
    assert f"{value:g}" in note if name != "metric" else value in note
    assert shown(first_screen)[name] == (f"{value:g}" if name != "metric" else value)


def test_the_map_says_how_it_may_be_read(door_trace):
    map_ = attnviz.project(door_trace, 3, 1)
    reading = reading_of(map_.in_map, map_.chance)
    at = open_page(layer=3, head=1)
    assert READ[reading.order] in captions(at)
    assert short(reading) in captions(at)


@pytest.mark.parametrize("show", ["weights", "scores", "norms", "rollout"])
def test_the_map_says_what_its_lines_are(show, door_trace):
    at = open_page(show=show)
    assert lines_note(show) in captions(at)
    drawn = figure(at, "map")["data"]
    [keys] = [
        np.stack([numbers(trace["x"]), numbers(trace["y"])], 1)
        for trace in drawn
        if trace.get("name") == "keys"
    ]
    weights = door_trace.weights(3, 1)[7]
    pairs = []
    for line in drawn:
        if line.get("mode") == "lines":
            end = numbers(line["x"])[1], numbers(line["y"])[1]
            pairs.append((line["line"]["width"], weights[np.abs(keys - end).sum(1).argmin()]))
    assert len(pairs) > 2 and sorted(pairs) == sorted(pairs, key=lambda pair: pair[1])


def test_the_stage_is_sent_before_what_does_not_depend_on_it(first_screen, sent):
    type_text(first_screen, "the old door")
    kinds = [kind_of(message) for message in sent]
    first = next(
        at
        for at, message in enumerate(sent)
        if "stage_data" in str(message.delta.new_element.bidi_component.id)
    )
    before, after = kinds[:first], kinds[first + 1 :]
    later = {"page_info_changed", "map", "download_button"}
    assert later <= set(after), "the page has changed; what else could be in front of the stage?"
    assert not later & set(before)
    assert before.count("bidi_component") == 2  # of the whole page, and of presenting


def test_the_verdict_is_sent_after_all_pictures(first_screen, sent):
    type_text(first_screen, "the old door creaked")
    [checked] = [
        at
        for at, message in enumerate(sent)
        if kind_of(message) == "page_link" and message.delta.new_element.page_link.label.startswith(":green[")
    ]
    assert checked > [kind_of(message) for message in sent].index("map")


def test_the_verdict_leads_to_the_verification_page(first_screen):
    link = verdict(first_screen)
    assert link.label.startswith(":green[")
    assert facts(link.label).numbers[0] == "13"  # comparisons
    assert link.query_string == first_screen.sidebar.get("page_link")[0].proto.query_string


class TestAVerdictThatFails:
    @pytest.fixture
    def broken(self, monkeypatch):
        """attnviz with a softmax scale one percent off."""
        right = attention.attention_scores

        def wrong(query, key, scale, **mask):
            return right(query, key, 1.01 * scale, **mask)

        monkeypatch.setattr("attnviz.maths.attention.attention_scores", wrong)

    def test_it_is_shown_where_the_other_would_be(self, broken):
        at = open_page(text="A broken door is no door.")  # a text of its own: reports are remembered
        label = verdict(at).label

        assert label.startswith(":red[") and "attention weights" in label
        assert verdict(at).icon == ":material/cancel:"
        assert ":green[" not in label
        assert_no_exception(at)

    def test_the_verification_page_says_which_checks_failed(self, broken):
        at = open_page("pages/verification.py", text="A broken door is no door at all.")

        assert any(":red[" in line.value and "attention weights" in line.value for line in at.markdown)
        table = at.table[0].value
        failed = [
            name.split(".")[0]
            for name, result in zip(table["compared"], table["result"], strict=True)
            if "failed" in result
        ]
        assert failed == ["**Attention weights", "**Norm-based weights"]
        assert_no_exception(at)


def test_a_verdict_that_fails_on_a_later_rung_gives_that_rung_s_numbers(monkeypatch):
    right = verification.verify

    def failing(model, trace):
        report = right(model, trace)
        wrong = {"encoder": np.full((6, 12), 0.3)}
        checks = tuple(
            replace(check, differences=wrong) if check.name == "head outputs" else check
            for check in report.checks
        )
        return replace(report, checks=checks)

    monkeypatch.setattr(verification, "verify", failing)
    label = verdict(open_page(text="A second broken door.")).label
    assert label.startswith(":red[") and "head outputs" in label
    assert facts(label).numbers[0] == "0.3"


@pytest.mark.parametrize("page", ["attention.py", "pages/verification.py"])
def test_a_verdict_that_cannot_be_had_is_explained(page, monkeypatch):
    def failing(model, trace):
        raise VerificationError("The reference returns nothing. Report this model.")

    monkeypatch.setattr(verification, "verify", failing)
    at = open_page(page, text="A third broken door.")
    assert_no_exception(at)
    assert errors(at) == ["The reference returns nothing. Report this model."]


def test_a_map_that_cannot_be_drawn_leaves_the_stage_the_menu_and_the_link(monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("no map today")

    monkeypatch.setattr("ui.rooms.explore.stage.query_key_map.draw_projection", failing)
    at = open_page(text="A door that is not drawn.")
    assert len({error.message for error in at.exception}) == 1
    assert len(at.sidebar.get("page_link")) == sum(room.in_menu for room in ROOMS)
    assert "“door”" in finding(at)
    assert shown(at)["text"] == "A door that is not drawn."


def test_pictures_have_words_for_those_who_do_not_see_them(first_screen):
    alts = [alt(first_screen, key) for key in charts(first_screen)]
    assert all(alts)
    assert not any("\\" in alt for alt in alts)  # Markdown's escapes would be read out


def test_the_sidebar_says_how_to_show_a_model_of_one_s_own():
    at = open_page()
    assert "ATTNVIZ_MODELS=/path/to/checkpoint make run" in [code.value for code in at.code]
