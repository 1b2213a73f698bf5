"""The line of a running lesson: what to see at this step, the question, and the way to the other steps."""

import streamlit as st

from ui.choice import state
from ui.choice.selection import Selection, from_params
from ui.part import Part
from ui.shell.lesson import Lesson, all_lessons
from ui.words.literal import literal


def step_params(lesson: Lesson, number: int) -> dict[str, str]:
    """The parameters of the link to a step, counted from 1."""
    return lesson.steps[number - 1].params | {"lesson": lesson.name, "lesson_step": str(number)}


def step_link(lesson: Lesson, number: int, *, label: str, icon: str | None = None) -> None:
    """A link to a step, counted from 1."""
    page = lesson.steps[number - 1].page
    st.page_link(page.file, label=label, icon=icon, query_params=step_params(lesson, number))


def lesson_line(page: Part, selection: Selection) -> None:
    """Draws the line of the selection's lesson, or why the lesson cannot be shown."""
    lessons, problems = all_lessons()
    lesson = next((lesson for lesson in lessons if lesson.name == selection.lesson), None)
    if lesson is None:
        own = [problem for problem in problems if problem.startswith(f"{selection.lesson}.toml")]
        sentence = (
            own[0]
            if own
            else f"There is no lesson “{selection.lesson}” here; For teachers lists those there are."
        )
        st.warning(literal(sentence))
        _leave()
        return
    number = min(selection.lesson_step, len(lesson.steps))
    step = lesson.steps[number - 1]
    place = f"step {number} of {len(lesson.steps)}"
    with st.container(key="lesson_text", gap=None):
        st.markdown(f"**{literal(lesson.title)}** · {place}. {literal(step.see)}")
        if step.question:
            st.markdown(f"**Predict:** {literal(step.question)}")
            with st.expander("Show the answer", key=f"lesson_answer_{number}"):
                st.markdown(literal(step.answer))
    with st.container(key="lesson_ways", horizontal=True, vertical_alignment="center", gap="small"):
        if number > 1:
            with st.container(key="lesson_back", width="content"):
                step_link(lesson, number - 1, label="Back", icon=":material/arrow_back:")
        if number < len(lesson.steps):
            with st.container(key="lesson_next", width="content"):
                step_link(lesson, number + 1, label="Next step", icon=":material/arrow_forward:")
        if not _is_at(page, selection, lesson, number):
            step_link(lesson, number, label="Return to the step", icon=":material/undo:")
        _leave()


def _leave() -> None:
    st.button(
        "Leave the lesson",
        type="tertiary",
        on_click=state.change,
        kwargs={"lesson": "", "lesson_step": 1},
        key="lesson_leave",
    )


def _is_at(page: Part, selection: Selection, lesson: Lesson, number: int) -> bool:
    """Whether the screen still shows what the step's link asks for."""
    step = lesson.steps[number - 1]
    asked, _ = from_params(step.params)
    names = {"model", "text", *step.params}
    return page == step.page and all(selection.value(name) == asked.value(name) for name in names)
