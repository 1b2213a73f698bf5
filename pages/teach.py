"""For teachers: the lessons, with what to say at each step, and how to write one."""

import streamlit as st

from ui.shell.frame import page_alone
from ui.shell.lesson import all_lessons
from ui.shell.lesson_line import step_link
from ui.shell.navigation import TEACH
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

with page_alone(TEACH):
    lessons, problems = all_lessons()
    for problem in problems:
        st.warning(literal(problem))
    st.markdown(
        "A lesson leads a class through a few screens. Its line stays at the top; everything below can be clicked, and "
        "“Return to the step” leads back. The address of each step can be handed out."
    )
    st.markdown(
        "To present, press P, or the button beside Export: the figure fills the window, in type for a classroom. With the pointer on "
        "another figure, P shows that one. Arrow keys lead to the other steps, and Escape leaves. `present=1` in an address opens it so."
    )
    for lesson in lessons:
        st.subheader(literal(lesson.title), anchor=lesson.name)
        st.markdown(f"{lesson.minutes} minutes, {len(lesson.steps)} steps. {literal(lesson.purpose)}")
        for number, step in enumerate(lesson.steps, start=1):
            with st.container(key=f"lesson_step_{lesson.name}_{number}", horizontal=True, gap="medium"):
                step_link(lesson, number, label=f"Step {number}: {step.page.place}")
                words = [literal(step.see)]
                if step.say:
                    words.append(f"*Say:* {literal(step.say)}")
                if step.question:
                    words.append(f"*Predict:* {literal(step.question)} *Answer:* {literal(step.answer)}")
                st.markdown("  \n".join(words), width="stretch")
    st.header("Write a lesson", anchor="write", divider="gray")
    st.markdown(
        "Save a text file that ends in `.toml` in a folder, name the folder in the environment variable `ATTNVIZ_LESSONS`, "
        "and start attnviz. For each step, set up a screen and copy its address into `link`. `say`, `question` and `answer` "
        "can be left out; a question needs an answer. A changed file is read the next time a page is drawn. This page names "
        "each file that cannot be used, and what to correct."
    )
    st.code(EXAMPLE, language="toml")
