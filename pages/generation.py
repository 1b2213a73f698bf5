"""How does a decoder write? The tokens that follow the sentence, one after another, each with what its heads read."""

import streamlit as st
from plotly.graph_objects import Figure

from ui.rooms.generate.branches import candidates, side_by_side, texts
from ui.rooms.generate.screen import Screen, can_write, controls, shown, texts_of
from ui.rooms.generate.steps import attention, finding, note, step_field, strip, take_over
from ui.rooms.generate.writing import are_there, without_writing
from ui.shell import errors, verdict
from ui.shell.export.recipe import generation_lines
from ui.shell.export.take import take
from ui.shell.frame import frame
from ui.words.glossary import terms
from ui.words.literal import literal

view = frame("Generate")
place_of_finding = st.container(key="finding", height=28, border=False)
with errors.explained():
    if not can_write(view):
        without_writing(view)
    else:
        controls()
        all_texts = texts_of(view)
        text = shown(view, all_texts)
        if are_there(view, text, all_texts):
            written = tuple(all_text for all_text in all_texts if all_text.work.finished)
            screen = Screen(view=view, text=text, texts=written)
            place_of_finding.markdown(finding(screen))
            strip(screen)
            left, right = st.columns([3, 1], gap="medium")
            with right:
                step_field(screen)
                candidates(screen)
                texts(screen)
                take_over(screen)
            drawn: dict[str, Figure | str]
            with left:
                if (other := screen.beside) is None:
                    drawn = {"Attention over what was written": attention(screen)}
                else:
                    drawn = side_by_side(screen, other)
            st.caption(literal(note(screen)))
            keys = (
                ("written_matrix",)
                if other is None
                else ("branches_first", "branches_second", "branches_difference")
            )
            take(
                view,
                dict(zip(keys, drawn, strict=True)),
                csv=screen.continuation.csv,
                numbers="Written tokens",
                python=generation_lines(view, screen.continuation.picks),
                about=f"tokens written: {len(screen.continuation.written)}",
                drawn=lambda: drawn,
            )
terms("Decoder", "Sampling temperature", "Token", "Layer", "Head", "Weight")
verdict.show(view)
