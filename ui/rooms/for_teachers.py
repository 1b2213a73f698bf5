"""For teachers: the lessons, with what to say at each step, and how to write one."""

import streamlit as st

from ui.part import Part, Sheet
from ui.shell.lesson import Lesson, Step, all_lessons
from ui.shell.lesson_line import step_link
from ui.words.literal import literal

EXAMPLE = """title = "Two meanings of bank"
minutes = 10
purpose = "Shows what a head makes of an ambiguous word."

[[steps]]
link = "/?text=She+sat+on+the+bank.&layer=3&head=1&query=5"
see = "Look at the row of “bank”."
say = "Ask which other words would decide what it means."
question = "Will “sat” get more attention than “she”?"
answer = "Read it from the row."
"""


def lessons(_: None) -> None:
    """A card for each lesson, and what to know before the first."""
    found, problems = all_lessons()
    for problem in problems:
        st.warning(literal(problem))
    st.markdown(
        "A lesson leads a class through a few screens, with a line at the top that says what to see and to ask."
    )
    for at in range(0, len(found), 2):
        for column, lesson in zip(st.columns(2, gap="medium"), found[at : at + 2], strict=False):
            with column:
                _card(lesson)


def _card(lesson: Lesson) -> None:
    with st.container(border=True, key=f"lesson_{lesson.name}", height="stretch"):
        st.subheader(literal(lesson.title), anchor=lesson.name)
        st.caption(f"{lesson.minutes} minutes, {len(lesson.steps)} steps")
        st.markdown(literal(lesson.purpose))
        with st.container(key=f"lesson_start_{lesson.name}"):
            step_link(lesson, 1, label="Start", icon=":material/play_arrow:")
        with st.expander("Steps", key=f"lesson_steps_{lesson.name}"):
            for number, step in enumerate(lesson.steps, start=1):
                with st.container(key=f"lesson_step_{lesson.name}_{number}", gap=None):
                    step_link(lesson, number, label=f"Step {number}: {step.page.place}")
                    st.markdown(_words(step))


def _words(step: Step) -> str:
    """What to see, say and ask at a step."""
    say = f"*Say:* {literal(step.say)}" if step.say else ""
    ask = f"*Predict:* {literal(step.question)} *Answer:* {literal(step.answer)}" if step.question else ""
    return "  \n".join(filter(None, (literal(step.see), say, ask)))


def teaching(_: None) -> None:
    """How to teach with a lesson, and how to write one."""
    st.header("In class", anchor="class", divider="gray")
    st.markdown(
        "The lesson’s line stays at the top; everything below can be clicked, and “Return to the step” leads back. "
        "The address of each step can be handed out."
    )
    st.markdown(
        "To present, press P, or the button beside Export: the figure fills the window, in type for a classroom. With the pointer on "
        "another figure, P shows that one. Arrow keys lead to the other steps, and Escape leaves. `present=1` in an address opens it so."
    )
    st.header("Write a lesson", anchor="write", divider="gray")
    st.markdown(
        "Save a text file that ends in `.toml` in a folder, name the folder in the environment variable `ATTNVIZ_LESSONS`, "
        "and start attnviz. For each step, set up a screen and copy its address into `link`. `say`, `question` and `answer` "
        "can be left out; a question needs an answer. A changed file is read the next time a page is drawn. This page names "
        "each file that cannot be used, and what to correct."
    )
    st.code(EXAMPLE, language="toml")


PART = Part(
    name="For teachers",
    address="teach",
    question="Which lessons are there, and what is there to say?",
    asks=(),
    shows_text=False,
    sheets=(Sheet(rows=(lessons, teaching)),),
)
