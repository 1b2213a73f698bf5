"""The first screen: its numbers are the model's, and every control changes what it says it changes."""

import re
from dataclasses import replace

import numpy as np
import pytest
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

import attnviz
from attnviz.errors import VerificationError
from attnviz.maths import attention
from attnviz.model import verification
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from tests.app.screen import (
    DOOR,
    Facts,
    alt,
    assert_no_exception,
    captions,
    charts,
    chips,
    component,
    errors,
    facts,
    figure,
    finding,
    matrix,
    notices,
    numbers,
    open_page,
    picked,
    shown,
    type_text,
)
from ui.choice.presets import MEASURED, PRESETS, offered_presets
from ui.shell.navigation import ROOMS
from ui.words.findings import lines_note
from ui.words.reliability import READ, reading_of, short


@pytest.fixture
def first_screen():
    return open_page()


def choose(at, name, value):
    """Chooses one of the segments of a control."""
    return at.button_group(key=f"field_{name}").set_value(value).run()


def verdict(at):
    """The link to the Verification page in the page itself."""
    [link] = [element.proto for element in at.main.get("page_link") if element.proto.page == "verification"]
    return link


def test_it_shows_the_door_example(first_screen):
    assert facts(finding(first_screen)) == Facts(("it", "[CLS]", "door"), ((3, 1),), ("48.4%", "47.5%"))
    assert picked(first_screen) == [7]
    assert errors(first_screen) == notices(first_screen) == []


def test_the_cells_are_the_weights(first_screen, door_trace):
    heatmap = figure(first_screen, "matrix")["data"][0]

    np.testing.assert_array_equal(matrix(first_screen), door_trace.weights(3, 1))
    np.testing.assert_array_equal(numbers(heatmap["customdata"]), door_trace.scores(3, 1))
    assert matrix(first_screen)[7, 5] == pytest.approx(0.475, abs=5e-4)
    assert matrix(first_screen)[5, 7] < 0.1  # a transposed matrix would have it there


def test_two_equal_tokens_stay_two_rows(first_screen):
    type_text(first_screen, "the door the door")
    heatmap = figure(first_screen, "matrix")["data"][0]
    assert heatmap["y"] == ["[CLS]·0", "the·1", "door·2", "the·3", "door·4", "[SEP]·5"]
    assert heatmap["x"] == heatmap["y"]


def test_the_bars_are_the_strongest_keys_of_the_query(first_screen, door_trace):
    bars = figure(first_screen, "ranking")["data"][0]
    row = door_trace.weights(3, 1)[7]

    np.testing.assert_array_equal(numbers(bars["x"]), np.sort(row)[::-1][:8])
    assert bars["y"][:2] == ["[CLS]·0", "door·5"]
    assert Facts(("it",), numbers=("3",)) in [
        facts(line.value) for line in first_screen.caption
    ]  # not listed


def test_the_verdict_leads_to_the_verification_page(first_screen):
    link = verdict(first_screen)
    assert link.label.startswith(":green[")
    assert facts(link.label).numbers[0] == "13"  # comparisons
    assert link.query_string == first_screen.sidebar.get("page_link")[0].proto.query_string


@pytest.mark.parametrize(
    ("start", "button", "end"),
    [
        ((3, 1), "head_next", (3, 2)),
        ((3, 1), "head_previous", (3, 0)),
        ((3, 11), "head_next", (4, 0)),
        ((4, 0), "head_previous", (3, 11)),
        ((5, 11), "head_next", (0, 0)),
        ((0, 0), "head_previous", (5, 11)),
    ],
)
def test_previous_and_next_walk_through_all_heads(start, button, end, door_trace):
    at = open_page(layer=start[0], head=start[1])
    at.button(key=button).click().run()

    assert facts(finding(at)).heads == (end,)
    assert at.number_input(key="field_layer").value == end[0]
    assert at.number_input(key="field_head").value == end[1]
    np.testing.assert_array_equal(matrix(at), door_trace.weights(*end))
    assert notices(at) == []


def test_the_query_stays_picked_while_the_head_changes(first_screen):
    first_screen.button(key="head_next").click().run()
    assert picked(first_screen) == [7]
    assert shown(first_screen)["query"] == "7"


@pytest.mark.parametrize(
    "preset", offered_presets(EMBEDDED, fills_blanks=False), ids=lambda preset: preset.name
)
def test_a_preset_shows_its_sentence_and_picks_its_query(first_screen, preset):
    first_screen.button_group(key="preset_choice").set_value(preset).run()

    assert_no_exception(first_screen)
    assert errors(first_screen) == notices(first_screen) == []
    assert first_screen.text_area(key="field_text").value == preset.text
    assert chips(first_screen)[picked(first_screen)[0]] == preset.query
    if preset.key is not None:
        assert preset.key in facts(finding(first_screen)).quoted[1:]
    assert first_screen.button_group(key="preset_choice").value is None  # the same one can be picked again


@pytest.mark.nightly
def test_an_example_of_the_language_model_comes_with_its_head_pair_and_outcome_and_says_what_it_shows():
    preset = MEASURED[3]
    at = open_page(model=SMOLLM2, text="The door opened.")
    at.button_group(key="preset_choice").set_value(preset).run()
    assert_no_exception(at)
    assert errors(at) == []
    [said] = notices(at)
    assert preset.name in said and f"{100 * preset.numbers[0]:.1f}%" in said
    asked = {"layer": preset.head.layer, "head": preset.head.head} | dict(
        zip(("query", "key"), preset.at, strict=True)
    )
    assert {name: shown(at)[name] for name in asked} == {name: str(value) for name, value in asked.items()}
    at.button_group(key="preset_choice").set_value(MEASURED[0]).run()
    assert shown(at)["outcome"] == MEASURED[0].outcome


def test_a_text_of_the_language_model_starts_at_a_link_of_its_own_not_at_the_first_token():
    at = open_page(
        model=SMOLLM2, text=MEASURED[0].text, layer=MEASURED[0].head.layer, head=MEASURED[0].head.head
    )
    assert_no_exception(at)
    said = facts(finding(at)).quoted
    assert said[0] == "␣and" and "␣Mary" in said[1:]  # others give "When" more than that


@pytest.mark.parametrize(("query", "bars", "left_out"), [(4, 5, []), (13, 8, [("13", "6")])])
def test_only_keys_that_a_query_sees_are_counted_as_not_listed(query, bars, left_out):
    at = open_page(model=SMOLLM2, text=MEASURED[0].text, query=query)
    assert len(figure(at, "ranking")["data"][0]["y"]) == bars
    assert [facts(line.value).numbers for line in at.caption if "not listed" in line.value] == [*left_out]


def test_a_preset_replaces_a_pair(first_screen):
    type_text(first_screen, "The door opened.", "Who opened it?")
    first_screen.button_group(key="preset_choice").set_value(PRESETS[0]).run()

    assert first_screen.text_area(key="field_second").value == ""
    assert chips(first_screen).count("[SEP]") == 1


def test_a_preset_replaces_a_text_that_cannot_be_shown(first_screen):
    type_text(first_screen, " ")
    assert len(errors(first_screen)) == 1
    first_screen.button_group(key="preset_choice").set_value(PRESETS[0]).run()

    assert errors(first_screen) == []
    assert first_screen.text_area(key="field_text").value == DOOR


def test_a_second_sentence_is_read_as_a_pair(first_screen):
    type_text(first_screen, "The door opened.", "Who opened it?")

    assert chips(first_screen) == [
        *("[CLS]", "the", "door", "opened", ".", "[SEP]"),
        *("who", "opened", "it", "?", "[SEP]"),
    ]
    assert shown(first_screen)["second"] == "Who opened it?"
    type_text(first_screen, "The door opened.", "")
    assert chips(first_screen).count("[SEP]") == 1
    assert "second" not in shown(first_screen)


def test_a_new_sentence_forgets_what_was_picked_in_the_old(first_screen):
    type_text(first_screen, "door")
    assert picked(first_screen) == [1]
    assert notices(first_screen) == []


def test_hidden_special_tokens_leave_the_other_weights_as_they_are(first_screen, door_trace):
    choose(first_screen, "special", "hidden")
    weights = door_trace.weights(3, 1)

    np.testing.assert_array_equal(matrix(first_screen), weights[1:-1, 1:-1])
    lost = weights[1:-1, [0, -1]].sum(axis=1)
    labels = figure(first_screen, "matrix")["data"][0]["y"]
    assert labels[6] == f"it·7, {100 * lost[6]:.0f}% hidden"
    assert f"{100 * lost.mean():.1f}%" in facts(captions(first_screen)).numbers  # on average


def test_the_headline_counts_what_is_hidden_and_names_the_most_of_what_is_shown(door_trace):
    at = open_page(text=DOOR, layer=3, head=1, query=7, key=3, special="hidden")
    row = door_trace.weights(3, 1)[7]
    most = int(row[1:-1].argmax()) + 1
    assert most == 5 and row.argmax() == 0  # "door", and [CLS], which is hidden
    labels = door_trace.tokens.labels
    equal = row[1:-1].mean()
    shares = tuple(f"{100 * share:.1f}%" for share in (row[most], equal, row[3], row[0] + row[10]))
    said = facts(finding(at))
    assert (said.quoted, said.numbers) == ((labels[7], labels[most], labels[3]), ("9", *shares))
    assert "of 9 shown keys" in finding(at)  # since more than half is hidden


def test_the_headline_agrees_with_renormalised_cells(door_trace):
    at = open_page(text=DOOR, layer=3, head=1, query=7, key=5, special="renormalised")
    row = door_trace.weights(3, 1)[7]
    share = row[5] / row[1:-1].sum()
    assert matrix(at)[6, 4] == pytest.approx(share, rel=1e-5)
    assert facts(finding(at)).numbers == (f"{100 * share:.1f}%", f"{100 * (row[0] + row[10]):.1f}%")
    assert numbers(figure(at, "ranking")["data"][0]["x"])[0] == pytest.approx(share, rel=1e-5)


def test_renormalised_rows_sum_to_one(first_screen, door_trace):
    choose(first_screen, "special", "renormalised")
    weights = door_trace.weights(3, 1)[1:-1, 1:-1]

    np.testing.assert_allclose(matrix(first_screen), weights / weights.sum(axis=1, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(matrix(first_screen).sum(axis=1), 1.0, rtol=1e-6)


def test_scores_are_those_before_the_softmax(first_screen, door_trace):
    choose(first_screen, "show", "scores")
    np.testing.assert_array_equal(matrix(first_screen), door_trace.scores(3, 1))
    heatmap = figure(first_screen, "matrix")["data"][0]
    np.testing.assert_array_equal(numbers(heatmap["customdata"]), door_trace.weights(3, 1))
    lowest = door_trace.scores(3, 1).min()
    assert lowest < 0
    assert heatmap["zmin"] == pytest.approx(lowest)  # the colours begin there, not at 0


def test_colours_end_below_the_cells_of_special_tokens_and_a_switch_lets_them_run_to_the_largest(door_trace):
    weights = door_trace.weights(3, 3)
    at = open_page(layer=3, head=3)
    heatmap = figure(at, "matrix")["data"][0]
    words = weights[1:-1, 1:-1].max()
    assert heatmap["zmax"] == pytest.approx(words) and words < weights.max()
    np.testing.assert_array_equal(matrix(at), weights)  # the numbers stay
    assert f"Colours end at {100 * words:.1f}%: cells of special tokens hold more." in captions(at)
    assert component(at, "head_rail")["clips"]
    at.toggle(key="field_clip").set_value(False).run()
    assert figure(at, "matrix")["data"][0]["zmax"] == pytest.approx(weights.max())
    assert "Colours end" not in captions(at)
    assert not component(at, "head_rail")["clips"]
    assert shown(at)["clip"] == "0"


@pytest.mark.parametrize("other", [{"show": "scores"}, {"colour": "logarithmic"}, {"special": "hidden"}])
def test_colours_are_clipped_only_where_a_special_token_would_flatten_them(other):
    at = open_page(layer=3, head=3, **other)
    assert "Colours end" not in captions(at)


def test_a_language_model_s_first_token_does_not_flatten_the_colours(smollm2):
    trace = smollm2.trace(MEASURED[0].text)
    weights = trace.weights(15, 3)
    at = open_page(model=SMOLLM2, text=MEASURED[0].text, layer=15, head=3)
    end = max(weights[:, 1:].max(), weights.mean())
    assert figure(at, "matrix")["data"][0]["zmax"] == pytest.approx(end, rel=1e-5)
    assert f"Colours end at {100 * end:.1f}%: cells of the first token hold more." in captions(at)


def test_logarithmic_colours_leave_the_numbers_as_they_are(first_screen, door_trace):
    linear = figure(first_screen, "matrix")["data"][0]["colorscale"]
    choose(first_screen, "colour", "logarithmic")
    logarithmic = figure(first_screen, "matrix")["data"][0]["colorscale"]

    np.testing.assert_array_equal(matrix(first_screen), door_trace.weights(3, 1))
    assert [colour for _, colour in linear] == [colour for _, colour in logarithmic]
    assert linear != logarithmic
    assert logarithmic[16][0] == pytest.approx(0.01)


def test_the_same_settings_give_the_same_map_and_others_another(first_screen):
    def points(at):
        return [numbers(one["x"]) for one in figure(at, "map")["data"] if one["mode"] == "markers+text"]

    before = points(first_screen)
    first_screen.number_input(key="field_perplexity").set_value(2.0).run()
    other = points(first_screen)
    first_screen.number_input(key="field_perplexity").set_value(5.0).run()

    np.testing.assert_array_equal(before, points(first_screen))
    assert not np.allclose(before, other)


def test_a_perplexity_too_large_for_the_text_is_lowered_and_it_is_said(first_screen):
    first_screen.number_input(key="field_perplexity").set_value(90.0).run()
    [note] = [element.value for element in first_screen.caption if element.value.startswith("t-SNE")]
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
    [note] = [element.value for element in first_screen.caption if element.value.startswith("t-SNE")]
    assert f"{value:g}" in note if name != "metric" else value in note
    assert shown(first_screen)[name] == (f"{value:g}" if name != "metric" else value)


def test_the_readout_line_holds_the_picked_cell(first_screen):
    data = component(first_screen, "heatmap_events")
    assert re.findall(r"\S+·\d+", data["picked"]) == ["it·7", "door·5"]
    assert facts(data["picked"]).numbers == ("0.475", "4.13")  # weight and score
    weights, scores = matrix(first_screen), numbers(figure(first_screen, "matrix")["data"][0]["customdata"])
    np.testing.assert_allclose(np.log(weights) + np.array(data["normalisers"])[:, None], scores, atol=1e-4)


@pytest.fixture
def sent():
    """All that is sent to the browser, first things first."""
    messages = []
    ForwardMsgQueue.on_before_enqueue_msg(messages.append)
    yield messages
    ForwardMsgQueue.on_before_enqueue_msg(None)


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


def test_the_matrix_is_sent_before_what_does_not_depend_on_it(first_screen, sent):
    type_text(first_screen, "the old door")
    kinds = [kind_of(message) for message in sent]
    before, after = kinds[: kinds.index("matrix")], kinds[kinds.index("matrix") + 1 :]

    assert [kind for kind in kinds if kind in ("matrix", "ranking", "map")] == ["matrix", "ranking", "map"]
    later = {"page_info_changed", "number_input", "file_uploader", "download_button"}
    assert later <= set(after), "the page has changed; what else could be in front of the matrix?"
    assert not later & set(before)
    # What listens to taps, the theme, tooltips, links, terms, Enter and who presents, the current part, and the tokens.
    assert before.count("bidi_component") == 9


def test_the_verdict_is_sent_after_all_pictures(first_screen, sent):
    type_text(first_screen, "the old door creaked")
    [checked] = [
        at
        for at, one in enumerate(sent)
        if kind_of(one) == "page_link" and one.delta.new_element.page_link.label.startswith(":green[")
    ]
    assert checked > [kind_of(message) for message in sent].index("map")


def test_a_matrix_that_cannot_be_drawn_leaves_the_menu_and_the_link(monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("no matrix today")

    monkeypatch.setattr("ui.stage.matrix.draw_pattern", failing)
    at = open_page(text="A door that is not drawn.")
    assert len({error.message for error in at.exception}) == 1
    assert len(at.sidebar.get("page_link")) == len(ROOMS) + 1  # and the page for teachers
    assert at.button(key="head_next")
    assert shown(at)["text"] == "A door that is not drawn."


def test_pictures_have_words_for_those_who_do_not_see_them(first_screen):
    alts = [alt(first_screen, key) for key in charts(first_screen)]
    assert facts(alts[0]).quoted[:2] == ("it", "door")
    assert "47.5%" in facts(alts[0]).numbers
    assert all(alts)
    assert not any("\\" in alt for alt in alts)  # Markdown's escapes would be read out


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


def test_a_blank_second_sentence_is_none():
    at = open_page(second="  ")
    assert errors(at) == []
    assert chips(at)[-1] == "[SEP]" and chips(at).count("[SEP]") == 1


def test_the_map_says_how_it_may_be_read(door_trace):
    map_ = attnviz.project(door_trace, 3, 1)
    judged = reading_of(map_.in_map, map_.chance)
    at = open_page(layer=3, head=1)
    assert READ[judged.order] in captions(at)
    assert short(judged) in " ".join(line.value for line in at.markdown)


@pytest.mark.parametrize("show", ["weights", "scores", "norms", "rollout"])
def test_the_map_says_what_its_lines_are(show, door_trace):
    at = open_page(show=show)
    assert lines_note(show) in captions(at)
    drawn = figure(at, "map")["data"]
    [keys] = [
        np.stack([numbers(one["x"]), numbers(one["y"])], 1) for one in drawn if one.get("name") == "keys"
    ]
    weights = door_trace.weights(3, 1)[7]
    found = []
    for line in drawn:
        if line.get("mode") == "lines":
            end = numbers(line["x"])[1], numbers(line["y"])[1]
            found.append((line["line"]["width"], weights[np.abs(keys - end).sum(1).argmin()]))
    assert len(found) > 2 and sorted(found) == sorted(found, key=lambda one: one[1])


def test_a_sentence_that_has_the_query_s_word_keeps_it_as_the_query():
    at = open_page(text=DOOR, query=7)
    type_text(at, "Then it rained, and the door opened.")
    assert [chips(at)[one] for one in picked(at)] == ["it"]
    type_text(at, "The dog slept.")
    strongest = open_page(text="The dog slept.")
    assert shown(at)["query"] == shown(strongest)["query"]


def test_the_sidebar_says_how_to_show_a_model_of_one_s_own():
    at = open_page()
    assert "ATTNVIZ_MODELS=/path/to/checkpoint make run" in [one.value for one in at.code]
