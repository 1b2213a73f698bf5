"""The page "Compare": its pictures are those of A and B, B follows A in all that is not set, and links hold it."""

import re
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

from attnviz.heads.comparison import compare
from attnviz.model import verification
from tests.app.screen import (
    DOOR,
    Facts,
    assert_no_exception,
    captions,
    charts,
    component,
    errors,
    facts,
    figure,
    notices,
    numbers,
    open_page,
    shown,
    step_head,
    type_text,
    unescaped,
)
from ui.rooms.compare.differences import KINDS_DIFFER, SPLITS_DIFFER
from ui.shell.view import SPECIAL_HIDDEN

PAGE = "pages/compare.py"
WINDOW = DOOR.replace("door", "window")
LONGER = "I was watching the big old window when suddenly it opened."


def top_line(at) -> str:
    """The line at the top."""
    assert_no_exception(at)
    return unescaped(next(element.value for element in at.markdown if element.value.startswith("**"))).strip(
        "*"
    )


def cells(at, part: str) -> np.ndarray:
    return numbers(figure(at, f"compare_{part}")["data"][0]["z"])


def labels(at) -> list[str]:
    return figure(at, "compare_difference")["data"][0]["x"]


def sides(at) -> dict[str, Facts]:
    """What the headings of the matrices A and B name."""
    headings = [element.value for element in at.markdown if re.match(r"\*\*[AB]\*\* ", element.value)]
    return {heading[2]: facts(heading) for heading in headings}


def heads(at) -> dict[str, tuple[int, int]]:
    """Layer and head of A and B."""
    return {side: named.heads[0] for side, named in sides(at).items()}


def test_at_first_the_next_head_is_b(door_trace):
    at = open_page(PAGE)

    assert facts(top_line(at)) == Facts(("it", "door"), ((3, 1), (3, 2)), ("47.5%", "1.7%"))
    assert heads(at) == {"A": (3, 1), "B": (3, 2)}
    assert at.button_group(key="compare_differs").value == "head"
    a, b = door_trace.weights(3, 1), door_trace.weights(3, 2)
    np.testing.assert_array_equal(cells(at, "first"), a)
    np.testing.assert_array_equal(cells(at, "second"), b)
    np.testing.assert_array_equal(cells(at, "difference"), b - a)
    assert not any(name.startswith("other") for name in shown(at))

    step_head(at)  # and so it stays while A is changed
    assert heads(at) == {"A": (3, 2), "B": (3, 3)}


def test_changes_are_listed_and_a_click_picks_one(door_trace):
    at = open_page(PAGE)
    expected = compare(door_trace.pattern(3, 1), door_trace.pattern(3, 2))
    rows = component(at, "changes")["rows"]

    first = expected.largest(1)[0]
    assert (
        (rows[0]["text"], rows[0]["key"])
        == ("opened·8", "door·5")
        == (labels(at)[first.query], labels(at)[first.key])
    )
    assert rows[0]["amount"] == "0.759 → 0.0184"
    assert len(rows) == 10
    assert [row["picked"] for row in rows].index(True) == 5  # it -> door
    assert (
        component(at, "changed_rows")["rows"][0]["text"] == labels(at)[int(np.nanargmax(expected.row_change))]
    )


def test_b_follows_a_in_all_that_is_not_set(embedded):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, other_text=WINDOW)
    at.number_input(key="field_layer").set_value(2).run()
    at.number_input(key="field_head").set_value(5).run()

    assert heads(at) == {"A": (2, 5), "B": (2, 5)}
    window = embedded.trace(WINDOW)
    np.testing.assert_array_equal(cells(at, "second"), window.weights(2, 5))
    assert shown(at)["other_text"] == WINDOW
    assert "other_layer" not in shown(at)


def test_a_word_that_differs_is_one_entry():
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, key=5, other_text=WINDOW)
    assert facts(top_line(at)) == Facts(("it", "door", "window"), numbers=("47.5%", "11.4%"))
    assert labels(at)[5] == "door→window·5"
    assert not [label for label in labels(at) if re.search("·[−+]", label)]  # each has a partner


def test_what_has_no_partner_is_shown_as_such():
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, key=5, other_text=LONGER)
    assert facts(top_line(at)) == Facts(("it", "door", "door"))
    assert labels(at)[4:10] == ["the·4", "door·−5", "big·+5", "old·+6", "window·+7", "when·6"]
    assert facts(captions(at)).has("1", "4")  # tokens of A and of B
    assert cells(at, "difference").shape == (15, 15)


def test_a_link_with_all_of_b_shows_just_that(embedded):
    b = {
        "other_text": WINDOW,
        "other_second": "Who did it?",
        "other_masked": "5",
        "other_layer": "4",
        "other_head": "7",
    }
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, key=5, **b)

    assert_no_exception(at)
    assert errors(at) == notices(at) == []
    assert {name: value for name, value in shown(at).items() if name.startswith("other")} == b
    expected = embedded.trace(WINDOW, "Who did it?", masked=(5,)).weights(4, 7)
    second = cells(at, "second")
    np.testing.assert_array_equal(second[np.isfinite(second)], expected.ravel())
    assert at.button_group(key="compare_several").value == ["head", "layer", "sentence", "masked"]
    assert at.number_input(key="field_other_layer").value == 4
    assert at.number_input(key="field_other_head").value == 7
    assert at.text_input(key="field_other_text").value == WINDOW
    assert at.multiselect(key="field_other_masked").value == [5]


def test_fields_of_b_are_shown_when_chosen_and_go_with_it(embedded):
    at = open_page(PAGE)
    at.button_group(key="compare_several").set_value(["layer", "sentence"]).run()
    assert facts(top_line(at)).quoted == ("it", "door", "window")
    assert (shown(at)["other_layer"], shown(at)["other_text"]) == ("4", WINDOW)
    assert "other_head" not in shown(at)

    at.text_input(key="field_other_text").set_value(WINDOW).run()
    at.number_input(key="field_other_layer").set_value(2).run()
    np.testing.assert_array_equal(cells(at, "second"), embedded.trace(WINDOW).weights(2, 1))

    at.button_group(key="compare_several").set_value([]).run()  # back to the start
    assert at.button_group(key="compare_differs").value == "head"
    assert not any(name.startswith("other") for name in shown(at))


def test_b_differs_in_one_thing_unless_several_are_asked_for():
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, key=5)
    at.button_group(key="compare_differs").set_value("layer").run()
    assert at.button_group(key="compare_differs").value == "layer"
    at.button_group(key="compare_differs").set_value("sentence").run()
    assert (
        at.text_input(key="field_other_text").value == WINDOW
    )  # one word is replaced, so that something differs
    assert np.nanmax(np.abs(cells(at, "difference"))) > 0.1
    at.text_input(key="field_other_text").set_value(LONGER).run()
    assert shown(at)["other_text"] == LONGER
    assert shown(at).keys().isdisjoint({"other_layer", "other_head"})
    assert heads(at) == {"A": (3, 1), "B": (3, 1)}

    at.button_group(key="compare_several").set_value(["head", "sentence"]).run()
    assert heads(at)["B"] == (3, 2)
    assert not [
        element for element in at.button_group if element.key == "compare_differs"
    ]  # it could not show both


def test_the_default_sentence_of_b_is_renewed_with_a_s_and_a_typed_one_stays():
    at = open_page(PAGE, text=DOOR)
    at.button_group(key="compare_differs").set_value("sentence").run()
    type_text(at, "I saw you")
    assert at.text_input(key="field_other_text").value == "We saw you"
    type_text(at, "Der Hund schlief.")
    assert at.text_input(key="field_other_text").value == DOOR  # no word of it has a partner
    at.text_input(key="field_other_text").set_value("Die Katze schlief.").run()
    type_text(at, "I saw you")
    assert at.text_input(key="field_other_text").value == "Die Katze schlief."


def test_a_field_of_b_that_was_not_set_yet_sets_it():
    at = open_page(PAGE)
    at.number_input(key="field_other_head").set_value(6).run()
    assert heads(at)["B"] == (3, 6)
    step_head(at)
    assert heads(at) == {"A": (3, 2), "B": (3, 6)}


def test_before_and_after_a_token_is_masked(embedded, door_trace):
    masked = embedded.trace(DOOR, masked=(5,))
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, key=5)
    at.button_group(key="compare_differs").set_value("masked").run()
    assert shown(at)["other_masked"] == "5"  # the picked key
    assert sides(at) == {"A": Facts((), ((3, 1),)), "B": Facts(("door",), ((3, 1),))}  # what is masked
    np.testing.assert_array_equal(cells(at, "second"), masked.weights(3, 1))

    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, key=5, masked=5)  # masked by its chip
    assert facts(top_line(at)) == Facts(("it", "[MASK]", "door", "door"), numbers=("60.2%", "47.5%"))
    assert [named.quoted for named in sides(at).values()] == [("door",), ()]
    np.testing.assert_array_equal(cells(at, "first"), masked.weights(3, 1))
    np.testing.assert_array_equal(cells(at, "second"), door_trace.weights(3, 1))

    at.multiselect(key="field_other_masked").set_value([7]).run()
    assert shown(at)["other_masked"] == "7"
    np.testing.assert_array_equal(cells(at, "second"), embedded.trace(DOOR, masked=(7,)).weights(3, 1))


@pytest.mark.parametrize(
    "b",
    [
        {"other_head": 4},
        {"other_layer": 5, "other_head": 0},
        {"other_text": WINDOW},
        {"other_text": LONGER, "other_masked": "5,6"},
        {"other_text": WINDOW, "masked": "3"},
        {"masked": "5"},
    ],
    ids=str,
)
def test_swapping_twice_changes_nothing_and_once_exchanges_the_matrices(b):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, key=4, **b)
    before = cells(at, "first"), cells(at, "second"), top_line(at), shown(at)

    at.button(key="swap").click().run()
    assert_no_exception(at)
    for part, expected in (("first", before[1]), ("second", before[0])):
        there = cells(at, part)
        np.testing.assert_array_equal(
            np.sort(there[np.isfinite(there)]), np.sort(expected[np.isfinite(expected)])
        )
    at.button(key="swap").click().run()

    np.testing.assert_array_equal(cells(at, "first"), before[0])
    np.testing.assert_array_equal(cells(at, "second"), before[1])
    assert top_line(at) == before[2]


def test_two_that_are_the_same_are_called_so():
    at = open_page(PAGE, layer=3, head=1, other_head=1)
    assert facts(top_line(at)) == Facts()  # there is no difference to give a number of
    assert (cells(at, "difference") == 0).all()
    assert "No cell differs between A and B." in [text.value for text in at.markdown]
    assert not {"changes", "changed_rows"} & {str(element.key) for element in at.get("bidi_component")}


@pytest.mark.parametrize(
    ("b", "named"),
    [
        ({"other_text": "door " * 700}, ("702", "512")),
        ({"other_text": "  "}, ()),
        ({"other_model": "gone"}, ()),
    ],
    ids=["too long", "blank", "gone"],
)
def test_errors_of_b_are_explained_and_a_stays(b, named, door_trace):
    at = open_page(PAGE, **b)

    assert_no_exception(at)
    [error] = errors(at)
    assert facts(error).numbers == named
    np.testing.assert_array_equal(cells(at, "first"), door_trace.weights(3, 1))
    assert facts(top_line(at)).quoted[:2] == ("it", "door")
    assert facts(top_line(at)).numbers[0] == "47.5%"
    assert "compare_second" not in charts(at)


def test_a_b_that_is_too_long_can_be_cut():
    at = open_page(PAGE, other_text="the old door " * 300)
    at.button(key="cut_other").click().run()
    assert errors(at) == []
    assert cells(at, "second").shape == (104, 104)  # 512 tokens and 7 of A alone, in blocks of 5


def test_a_model_that_is_not_on_disk_is_offered_and_a_stays(door_trace):
    at = open_page(PAGE, other_model="bert-base-uncased")
    assert_no_exception(at)
    assert any("**bert-base-uncased**" in unescaped(element.value) for element in at.markdown)
    assert at.button(key="start_download")
    np.testing.assert_array_equal(cells(at, "first"), door_trace.weights(3, 1))


def test_another_model_with_fewer_layers_is_aligned_by_what_is_written(tiny_model, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bert")))
    at = open_page(PAGE, text="the doors opened", layer=5, head=1, other_model="bert")

    assert_no_exception(at)
    assert errors(at) == []
    assert facts(captions(at)).has("5", "0", "2", "2")  # asked for, first, last and shown
    assert SPLITS_DIFFER in captions(at)
    expected = tiny_model("bert").trace("the doors opened").weights(2, 1)
    second = cells(at, "second")
    np.testing.assert_array_equal(second[np.isfinite(second)], expected.ravel())


def verdicts(at):
    """What the links to the Verification page say, by the text that they lead to."""
    links = [element.proto for element in at.main.get("page_link") if element.proto.page == "verification"]
    return {(shown(at) | dict(parse_qsl(link.query_string)))["text"]: link.label for link in links}


def test_a_sentence_of_b_has_a_verdict_of_its_own(monkeypatch):
    right = verification.verify

    def wrong_for_b(model, trace):
        report = right(model, trace)
        if "window" not in trace.tokens.labels:
            return report
        wrong = {"encoder": np.full((6, 12), 0.3)}
        checks = tuple(
            replace(check, differences=wrong) if check.name == "head outputs" else check
            for check in report.checks
        )
        return replace(report, checks=checks)

    monkeypatch.setattr(verification, "verify", wrong_for_b)
    text = "A door and a window that differ."  # a text of its own: reports are remembered
    at = open_page(PAGE, text=text.replace("window", "wall"), other_text=text)
    assert_no_exception(at)
    by_text = verdicts(at)
    assert by_text.keys() == {text, text.replace("window", "wall")}
    assert by_text[text].startswith(":red[") and facts(by_text[text]).numbers[0] == "0.3"
    assert by_text[text.replace("window", "wall")].startswith(":green[")


def test_another_head_of_the_same_sentence_needs_no_second_verdict():
    assert verdicts(open_page(PAGE, text=DOOR, layer=3, head=1, other_head=2)).keys() == {DOOR}


def test_links_to_what_is_not_there_are_explained():
    at = open_page(PAGE, other_head=99, other_masked="x")
    assert_no_exception(at)
    assert [facts(notice).quoted for notice in notices(at) if "“" in notice] == [("x",)]
    assert heads(at)["B"] == (3, 11)
    assert shown(at)["other_head"] == "11"  # the link says what is shown


def test_rows_and_columns_are_chosen_for_both(embedded):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, other_head=2, special="hidden", unit="words")
    assert cells(at, "difference").shape == (9, 9)
    assert SPECIAL_HIDDEN in captions(at)
    np.testing.assert_allclose(cells(at, "second"), embedded.trace(DOOR).weights(3, 2)[1:-1, 1:-1], rtol=1e-6)


def test_rollout_is_compared_layer_by_layer(door_trace):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, query=7, key=5, show="rollout")
    assert at.button_group(key="compare_differs").value == "layer"
    np.testing.assert_array_equal(cells(at, "second"), door_trace.rollout(4))
    assert facts(top_line(at)).numbers[1:3] == ("0", "3")  # the layers of A


@pytest.mark.nightly
def test_512_tokens_are_light():
    text = " ".join(f"door{number}" for number in range(400))
    at = open_page(PAGE, text=text, cut=1)
    assert cells(at, "difference").shape == (128, 128)
    assert facts(captions(at)).has("4", "4")  # cells in a block
    sent = sum(map(len, charts(at).values()))
    assert sent < 1_500_000  # the budget of one heatmap of 512 tokens


@pytest.mark.nightly
def test_long_texts_are_zoomed_to_single_cells_around_the_picked_pair(embedded):
    text = " ".join(f"door{number}" for number in range(80))
    whole = embedded.trace(text)
    n = len(whole.tokens)
    weights = whole.weights(3, 1)
    assert 128 < n < 256
    at = open_page(PAGE, text=text, layer=3, head=1, query=90, key=70, other_head=2)
    assert cells(at, "first").shape == (-(-n // 2), -(-n // 2))
    assert at.button(key="compare_zoom_out").disabled

    at.button(key="compare_zoom_in").click().run()
    half = -(-n // 2)
    assert shown(at)["other_zoom"] == str(half)
    assert cells(at, "first").shape == cells(at, "difference").shape == (half, half)
    at.button(key="compare_zoom_in").click().run()
    length = -(-half // 2)
    first = [90 - length // 2, 70 - length // 2]
    rows, columns = (slice(start, start + length) for start in first)
    np.testing.assert_array_equal(cells(at, "first"), weights[rows, columns])
    np.testing.assert_array_equal(cells(at, "second"), whole.weights(3, 2)[rows, columns])
    assert facts(captions(at)).has(*map(str, (length, n, length, n)))  # queries and keys
    while not at.button(key="compare_zoom_in").disabled:
        at.button(key="compare_zoom_in").click().run()
    assert cells(at, "first").shape == (12, 12)

    at.button(key="compare_zoom_out").click().run()
    assert shown(at)["other_zoom"] == "24"
    at.button(key="compare_all_cells").click().run()
    assert "other_zoom" not in shown(at)
    assert cells(at, "first").shape == (half, half)  # in blocks of 2 again


def test_a_sentence_has_nothing_to_zoom():
    at = open_page(PAGE, text=DOOR, layer=3, head=1, other_zoom=12)
    assert not [element for element in at.button if element.key == "compare_zoom_in"]
    assert cells(at, "first").shape == (11, 11)
    assert not facts(captions(at)).has("11", "11")


@pytest.mark.parametrize(("what", "count"), [("layer", 6), ("head", 12)])
def test_a_typed_layer_or_head_of_b_that_is_not_there_is_answered_in_words(what, count):
    at = open_page(PAGE, text=DOOR, layer=3, head=1, **{f"other_{what}": 2})
    field = at.number_input(key=f"field_other_{what}")
    assert field.proto.has_max is False  # a browser would mark a larger number red and not send it
    field.set_value(14).run()
    assert_no_exception(at)
    of_layer = ("3",) * (what == "head")
    assert facts(captions(at)).has("14", *of_layer, "0", str(count - 1), str(count - 1))
    assert at.number_input(key=f"field_other_{what}").value == count - 1
    assert heads(at)["B"] == {"layer": (5, 1), "head": (3, 11)}[what]


@pytest.mark.parametrize(
    ("model", "other"),
    [("all-MiniLM-L6-v2", "SmolLM2-135M-Instruct"), ("SmolLM2-135M-Instruct", "all-MiniLM-L6-v2")],
)
def test_an_encoder_and_a_decoder_are_compared_with_a_word_on_what_a_token_may_see(model, other):
    at = open_page(PAGE, model=model, text=DOOR, other_model=other, layer=3, head=1)
    assert_no_exception(at)
    assert not errors(at)
    assert {"compare_first", "compare_second", "compare_difference"} <= charts(at).keys()
    causal = cells(at, "first" if model.startswith("Smol") else "second")
    assert np.nanmax(np.triu(np.nan_to_num(causal), 1)) == 0
    assert KINDS_DIFFER in captions(at)
