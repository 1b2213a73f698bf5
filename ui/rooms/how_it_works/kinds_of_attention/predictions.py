"""The model's predictions for a token, without and under a mask, on the page "Kinds of attention"."""

import streamlit as st

from attnviz.figures.labels import isolated
from attnviz.model.answers import Predictions
from attnviz.model.trace import Trace
from attnviz.records import Axis
from ui.runtime import cache
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal


def predictions(view: View, changed: Trace, title: str) -> None:
    """The likeliest tokens for a masked token, or for the selected one, without and under the mask.

    Args:
        changed: the trace under the mask.
        title: name of that mask.
    """
    st.subheader("What the model predicts")
    source = view.selection.source
    position = _place(view)
    before = cache.predictions(source, view.trace, position)
    after = cache.predictions(source, changed, position)
    if before is None or after is None:
        st.markdown(
            f"{literal(source.model)} has no masked-language head, the part that turns a vector back into tokens; with "
            "a model that has one, such as bert-base-uncased or another listed in ATTNVIZ_MODELS, the five likeliest "
            "tokens are shown here, before and under the mask."
        )
        return
    token = literal(name(Axis.of(view.trace.tokens), position))
    if view.kind == "decoder":
        sentence = f"The model's language head gives every token a probability of following {token}."
    else:
        sentence = f"The model's masked-language head gives every token a probability of standing at {token}."
        if position not in _masked(view):
            sentence += (
                " The model sees that token here; mask it with its chip above, and it has to predict it."
            )
    st.markdown(f"{sentence} The five likeliest:")
    for column, heading, predicted, key in zip(
        st.columns(2, gap="medium"),
        ("The model's own", title),
        (before, after),
        ("predicted_before", "predicted_after"),
        strict=True,
    ):
        with column:
            st.markdown(f"**{heading}**")
            _table(predicted, key)


def _masked(view: View) -> list[int]:
    """Positions of mask tokens, masked by chip or typed."""
    label = cache.mask_label(view.selection.source)
    return [at for at, text in enumerate(view.trace.tokens.labels) if text == label]


def _place(view: View) -> int:
    """The selected token, or the first masked one if the selected token is not masked."""
    masked = _masked(view)
    return view.query if not masked or view.query in masked else masked[0]


def _table(predicted: Predictions, key: str) -> None:
    st.dataframe(
        {
            "token": [isolated(label) for label in predicted.labels],
            "probability": 100 * predicted.probabilities.astype(float),
        },
        hide_index=True,
        height=whole_rows(len(predicted.labels)),
        column_config={
            "probability": st.column_config.ProgressColumn(format="%.1f%%", min_value=0, max_value=100)
        },
        key=key,
    )
