"""A lesson's file: read, or refused with its name, the place, what was found and what to do."""

import pytest

from ui.shell import lesson
from ui.shell.lesson import BUNDLED, ORDER, LessonError, all_lessons, read_lesson

HEAD = 'title = "Bank"\nminutes = 10\npurpose = "Shows a head."\n'
STEP = '[[steps]]\nlink = "/scaling?layer=3&head=1&query=5"\nsee = "Look."\n'


def test_a_file_is_read():
    bank = read_lesson("bank", HEAD + STEP + 'question = "Who?"\nanswer = "It."\n')
    [step] = bank.steps
    assert (bank.name, bank.title, bank.minutes) == ("bank", "Bank", 10)
    assert (step.page.name, step.params) == ("Scaling", {"layer": "3", "head": "1", "query": "5"})
    assert (step.see, step.say, step.question, step.answer) == ("Look.", "", "Who?", "It.")


def test_an_address_that_was_copied_while_a_lesson_ran_leads_to_its_screen_alone():
    link = "https://example.org/base/scaling?layer=3&lesson=order&lesson_step=2"
    [step] = read_lesson("bank", HEAD + STEP.replace("/scaling?layer=3", link, 1)).steps
    assert step.page.name == "Scaling" and step.params == {"layer": "3", "head": "1", "query": "5"}


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        (HEAD + "minutes = = 3", "line 4", "not TOML"),
        (HEAD.replace("10", '"ten"') + STEP, "minutes", "ten"),
        (HEAD.replace("10", "0") + STEP, "minutes", "0"),
        (HEAD.replace("title", "titel") + STEP, "titel", "it can have"),
        (HEAD + "steps = []", "0 steps", "from 1 to 99"),
        (HEAD + "steps = [3]", "step 1", "3"),
        (HEAD + STEP + STEP.replace("see", "# see"), "step 2", "no see"),
        (HEAD + STEP + STEP.replace("scaling", "scalling"), "step 2", "scalling"),
        (HEAD + STEP.replace("query", "querry"), "step 1", "querry"),
        (HEAD + STEP.replace("head=1", "head=one"), "step 1", "head=one"),
        (HEAD + STEP + 'question = "Who?"', "step 1", "only one of question and answer"),
        (HEAD + STEP.replace('"Look."', '""'), "step 1", "see"),
    ],
)
def test_an_invalid_file_is_refused_with_the_place_and_what_was_found(text, where, reason):
    with pytest.raises(LessonError) as refused:
        read_lesson("bank", text)
    message = str(refused.value)
    assert message.startswith("bank.toml") and where in message and reason in message and "\n" not in message


def test_a_folder_of_ones_own_adds_lessons_and_its_faults_are_named(tmp_path, monkeypatch):
    (tmp_path / "bank.toml").write_text(HEAD + STEP, encoding="utf-8")
    (tmp_path / "bad.toml").write_text("title =", encoding="utf-8")
    (tmp_path / "latin.toml").write_bytes(b'title = "\xe4"')
    monkeypatch.setattr(lesson, "LESSONS", str(tmp_path))
    lessons, problems = all_lessons()
    assert [result.name for result in lessons] == [*ORDER, "bank"]
    assert [problem.split()[0] for problem in problems] == ["bad.toml", "latin.toml"]
    monkeypatch.setattr(lesson, "LESSONS", str(tmp_path / "nowhere"))
    assert "nowhere" in all_lessons()[1][0]


def test_each_bundled_lesson_has_five_to_eight_steps_and_a_question():
    lessons, problems = all_lessons()
    assert problems == [] and {path.stem for path in BUNDLED.glob("*.toml")} == set(ORDER)
    for bundled in lessons:
        assert 5 <= len(bundled.steps) <= 8, bundled.name
        assert any(step.question for step in bundled.steps), bundled.name
