"""Step 3: what the model fills in, where it has a language head."""

import streamlit as st

from attnviz.figures.labels import isolated
from attnviz.figures.numbers import share_text
from attnviz.model.catalogue import BERT, locate, offer
from ui.choice.presets import DOOR_MASK
from ui.choice.selection import Selection
from ui.page import downloads
from ui.page.view import View
from ui.words.findings import name
from ui.words.literal import literal, quoted
from ui.work import cache


def blank(selection: Selection, query: int) -> int:
    """Position of the mask token: the query where it is one or there is none, the first one otherwise."""
    label = cache.mask_label(selection.source)
    masked = [at for at, one in enumerate(cache.trace(selection.source).tokens.labels) if one == label]
    return query if not masked or query in masked else masked[0]


def answer(view: View) -> None:
    """The five likeliest tokens at the mask token; what is missing where there is none, or no language head."""
    st.subheader("3. What does the model fill in?", anchor=False)
    source, trace = view.selection.source, view.trace
    label = cache.mask_label(source)
    at = blank(view.selection, view.query)
    masked = trace.tokens.labels[at] == label
    found = cache.predictions(source, trace, at)
    if found is None:
        st.markdown(
            f"This step needs a language head, the part that turns a vector back into tokens; {literal(source.model)} has "
            "none. bert-base-uncased has one."
        )
        _offer_bert()
    elif not masked and view.kind == "encoder":
        st.markdown(
            f"There is no {quoted(label or 'mask token')} in this sentence. Mask a token with its chip above, and the model "
            "has to fill it in."
        )
    else:
        st.markdown(
            f"At {literal(name(view.queries, at))}: "
            + ", ".join(
                f"**{literal(isolated(word))}** {share_text(float(probability))}"
                for word, probability in zip(found.labels, found.probabilities, strict=True)
            )
            + "."
        )


def _offer_bert() -> None:
    """Where its weights are not on disk: what the download is for, how long it takes, and the button."""
    bert, head = offer(BERT), DOOR_MASK.head
    if locate(bert) is not None or head is None:
        return
    effort = downloads.effort(bert)
    st.markdown(
        f"With it{f' ({effort})' * bool(effort)} this page reads “{literal(DOOR_MASK.text)}” in layer {head.layer}, head "
        f"{head.head}, the experiment of most articles, and this step shows which word the model fills in."
    )
    with st.expander("Download bert-base-uncased"):
        downloads.panel(bert)
