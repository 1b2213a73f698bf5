"""How does a decoder write? The tokens that follow the sentence, one after another, each with what its heads read."""

import streamlit as st

from ui.export.recipe import generation_lines
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.waiting import is_there
from ui.sections.generation.screen import Screen, can_write, controls, without_writing, writing
from ui.sections.generation.steps import attention, candidates, finding, note, strip, take_over
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Generation")
found = st.container(key="finding", height=28, border=False)
if can_write(view):
    with errors.explained():
        work = writing(view)
        controls()
        n_tokens = view.selection.generation.tokens * (
            len(view.trace.tokens) + view.selection.generation.tokens
        )
        if is_there(work, n_tokens, "Writing", key="write_act"):
            continuation, trace = work.results[0]
            screen = Screen(view=view, found=continuation, trace=trace)
            found.markdown(finding(screen))
            strip(screen)
            left, right = st.columns([3, 1], gap="medium")
            with left:
                drawn = attention(screen)
            with right:
                candidates(screen)
                take_over(screen)
            st.caption(literal(note(screen)))
            take(
                view,
                {"written_matrix": "Attention over what was written"},
                csv=continuation.csv,
                numbers="Written tokens",
                python=generation_lines(view),
                about=f"tokens written: {len(continuation.written)}",
                drawn=lambda: {"Attention over what was written": drawn},
            )
else:
    without_writing(view)
terms("Decoder", "Sampling temperature", "Token", "Layer", "Head", "Weight")
verdict.show(view)
