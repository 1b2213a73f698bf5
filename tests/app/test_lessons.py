"""Lessons: each step's link shows what its text names, and the line leads from step to step."""

import re
from urllib.parse import parse_qsl

import pytest
from scipy.special import softmax

import attnviz
from attnviz.figures.numbers import share_text
from attnviz.records import MIXINGS
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    errors,
    facts,
    finding,
    is_stage,
    matrix,
    notices,
    open_page,
    picked,
    shown,
    type_text,
    unescaped,
)
from ui.choice.fields import written
from ui.choice.selection import usual
from ui.shell import lesson
from ui.shell.lesson import all_lessons
from ui.shell.lesson_line import step_params

LESSONS = {all_lesson.name: all_lesson for all_lesson in all_lessons()[0]}
STEPS = [(name, number) for name in LESSONS for number in range(1, len(LESSONS[name].steps) + 1)]


def open_step(name, number):
    return open_page(LESSONS[name].steps[number - 1].page.file, **step_params(LESSONS[name], number))


def line(at):
    return next(element.value for element in at.markdown if " · step " in element.value)


def links(at):
    return {element.proto.label: element.proto for element in at.main.get("page_link")}


@pytest.mark.parametrize(("name", "number"), STEPS, ids=str)
def test_a_step_shows_what_its_text_names(name, number, embedded, smollm2):
    at = open_step(name, number)
    assert_no_exception(at)
    assert errors(at) == []
    step = LESSONS[name].steps[number - 1]
    here = shown(at)
    asked = {key: here.get(key, written(usual(key))) for key in step.params}
    assert asked == step.params
    assert notices(at) == []
    assert f"step {number} of {len(LESSONS[name].steps)}" in line(at)
    assert "Return to the step" not in links(at)
    see_and_answer = f"{step.see} {step.answer}"
    place = (int(here["layer"]), int(here["head"]))
    assert set(facts(step.see).heads) <= {place}
    others = unescaped(" ".join(element.value for element in at.markdown if " · step " not in element.value))
    if is_stage(at):  # the headline, and the share of each token of the query's row
        others += " ".join(
            [finding(at), *(share_text(float(weight)) for weight in matrix(at)[picked(at)[0]] if weight >= 0)]
        )
    if (method := here.get("show", "weights")) in MIXINGS:  # the list beside the matrix has the selected row
        model = {read.name: read for read in (embedded, smollm2)}[here["model"]]
        mixed = getattr(attnviz, method)(model, model.trace(here["text"])).matrices
        others += " ".join(share_text(float(share)) for share in mixed[place[0], int(here["query"])])
    for number_said in re.findall(r"\d+\.\d+%?", see_and_answer):
        assert re.search(rf"(?<![\d.]){re.escape(number_said)}", others), (
            "the screen does not say this number"
        )
    words = set(re.findall(r"“([^” ]+)”", step.see))
    if words:
        text = here["text"].lower()
        assert {word for word in words if not re.search(rf"\b{word.lower()}\b", text)} == set()
    if words and not step.page.address:
        first = finding(at).partition(";")[0]
        assert words & {*re.findall(r"“([^”]+)”", first)}, "the screen is about other tokens"


def test_the_heads_do_what_the_lessons_say_without_a_number(embedded, smollm2):
    """What is said of all tokens or heads, from the weights themselves."""
    for text in (DOOR, "The dog chased the cat.", "The cat chased the dog."):
        trace = embedded.trace(text)
        previous, following, resting = (trace.weights(*place) for place in ((0, 2), (1, 8), (2, 7)))
        words = range(1, len(previous) - 1)
        assert all(previous[word].argmax() == word - 1 for word in words)
        if text == DOOR:
            assert sum(following[word].argmax() == word + 1 for word in words) >= 6
            assert all(resting[word].argmax() == 0 and resting[word, 0] > 0.7 for word in words)
    trace = smollm2.trace("The capital of France is")
    heads = [trace.weights(layer, head)[1:, 0].mean() for layer in range(30) for head in range(9)]
    assert sum(share > 0.5 for share in heads) > len(heads) / 2
    [bank] = [step.params for step in LESSONS["why_scale"].steps if step.params.get("scale") == "1"]
    row = embedded.trace(bank["text"]).pattern(0, 11).scores[6]
    with_scale, without = (softmax(row * scale).max() for scale in (1, 32**0.5))
    assert with_scale < 0.2 and without > 0.8


def test_the_line_leads_to_the_steps_beside_and_back_to_this_one():
    at = open_step("weighted_mean", 3)
    for label, number in (("Back", 2), ("Next step", 4)):
        step = LESSONS["weighted_mean"].steps[number - 1]
        assert links(at)[label].page == step.page.address
        assert dict(parse_qsl(links(at)[label].query_string)) == step_params(LESSONS["weighted_mean"], number)
    at = open_step("weighted_mean", 1)
    assert "Back" not in links(at)
    at = type_text(at, "the old door creaked")
    assert shown(at)["lesson"] == "weighted_mean", "everything can be changed in a lesson"
    query = dict(parse_qsl(links(at)["Return to the step"].query_string))
    assert query == step_params(LESSONS["weighted_mean"], 1)
    at.button(key="lesson_leave").click().run()
    assert "lesson" not in shown(at) and shown(at)["text"] == "the old door creaked"
    assert "Next step" not in links(at)


def test_another_text_leads_back_even_where_the_step_keeps_the_usual_one():
    [usual_text, *_] = [
        (name, number) for name, number in STEPS if "text" not in LESSONS[name].steps[number - 1].params
    ]
    assert "Return to the step" not in links(open_step(*usual_text))
    step = LESSONS[usual_text[0]].steps[usual_text[1] - 1]
    other = "I was watching the cat when it ran away."
    at = open_page(step.page.file, **{"text": other} | step_params(LESSONS[usual_text[0]], usual_text[1]))
    assert "Return to the step" in links(at)


def test_the_answer_is_there_to_be_opened():
    at = open_step("weighted_mean", 2)
    step = LESSONS["weighted_mean"].steps[1]
    [answer] = [expander for expander in at.expander if expander.label == "Show the answer"]
    assert not answer.proto.expanded
    assert [unescaped(element.value) for element in answer.markdown] == [step.answer]
    assert any(unescaped(element.value).endswith(step.question) for element in at.markdown)


def test_a_lesson_that_is_not_there_is_explained_and_the_page_still_drawn():
    at = open_page(lesson="nowhere", lesson_step=4)
    assert_no_exception(at)
    assert ["nowhere" in element.value for element in at.warning] == [True]
    assert shown(at)["query"]
    at.button(key="lesson_leave").click().run()
    assert not at.warning


def test_the_teachers_page_has_each_step_with_its_link_and_what_to_say(tmp_path, monkeypatch):
    (tmp_path / "bad.toml").write_text("title =", encoding="utf-8")
    monkeypatch.setattr(lesson, "LESSONS", str(tmp_path))
    at = open_page("pages/teach.py")
    assert_no_exception(at)
    assert [unescaped(element.value).startswith("bad.toml") for element in at.warning] == [True]
    page_links = [element.proto for element in at.main.get("page_link")]
    assert [(link.label == "Start", dict(parse_qsl(link.query_string))) for link in page_links] == [
        (is_start, step_params(LESSONS[name], number))
        for name, number in STEPS
        for is_start in ((True, False) if number == 1 else (False,))
    ]
    text = unescaped(" ".join(element.value for element in at.markdown))
    assert all(step.say in text for lesson in LESSONS.values() for step in lesson.steps)
    example = at.code[0].value
    assert len(lesson.read_lesson("bank", example).steps) == 1


def test_the_menu_leads_to_the_teachers_page_and_keeps_what_is_shown():
    at = open_page(layer=2, head=5)
    assert "teach" in [element.proto.page for element in at.sidebar.get("page_link")]
    at.switch_page("pages/teach.py").run()
    assert (shown(at)["layer"], shown(at)["head"]) == ("2", "5")
