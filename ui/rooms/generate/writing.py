"""The page while a model generates, and for models that cannot."""

from collections.abc import Sequence

import streamlit as st

from ui.rooms.generate.screen import Text
from ui.rooms.generate.steps import so_far
from ui.shell.language_model import offer_language_model
from ui.shell.view import View
from ui.shell.waiting import show_jobs
from ui.words.literal import literal


def are_there(view: View, text: Text, texts: Sequence[Text]) -> bool:
    """Whether the text on screen is complete; incomplete texts are shown as far as generated, token by token.

    Raises:
        AttnvizError: the text on screen cannot be generated.
    """
    for waiting_text in texts:
        if waiting_text.is_refused and waiting_text.work.error is not None:
            if waiting_text is text:
                raise waiting_text.work.error
            st.caption(literal(f"{waiting_text.name}: {waiting_text.work.error}"))
    waiting = [text for text in texts if not (text.work.finished or text.is_refused)]
    if waiting:
        being_written = text if text in waiting else waiting[0]

        def tokens_so_far() -> None:
            st.markdown(so_far(view.trace.tokens.text, being_written.work.told()))

        show_jobs(
            [text.work for text in waiting],
            lambda: "Writing …",
            lambda: "Cancelled: writing.",
            key="write_act",
            result=tokens_so_far,
            is_page_without=True,
        )
    return text.work.finished


def without_writing(view: View) -> None:
    """What the page is for, shown if the model does not generate text."""
    offer_language_model(
        view.selection,
        "cannot write: only a decoder with a language head can. With one, this page shows up to 50 tokens after your sentence, "
        "what else it could have written, and what each head read at every step.",
        key="use_language_model",
    )
