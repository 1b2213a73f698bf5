"""The experiment with the models available here, and whether it is on screen."""

from dataclasses import dataclass

import streamlit as st

from attnviz.model.catalogue import default_model
from ui.choice import state
from ui.choice.presets import Preset, first_preset
from ui.choice.selection import Selection, first_selection
from ui.runtime import cache
from ui.shell.view import View
from ui.words.literal import literal, quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One sentence, one head, one query."""

    selection: Selection
    preset: Preset

    @classmethod
    def here(cls) -> "Experiment":
        """With bert-base-uncased if its weights are on disk, otherwise with the bundled model and its own head."""
        model = default_model()
        preset = first_preset(model)
        labels = cache.trace(first_selection(model).source).tokens.labels
        query, key = labels.index(preset.query or ""), labels.index(preset.key or "")
        return cls(selection=first_selection(model).but(query=query, key=key), preset=preset)

    def is_shown_in(self, view: View, key: int) -> bool:
        """Whether the screen shows the experiment itself."""
        shown, own = view.selection, self.selection
        return (shown.source, shown.place, view.query, key) == (own.source, own.place, own.query, own.key)


def introduction(experiment: Experiment, is_shown: bool) -> None:
    """The question, the head that answers it here, and from a variation the link back to the experiment."""
    own, preset = experiment.selection, experiment.preset
    query, key = quoted(preset.query or ""), quoted(preset.key or "")
    st.markdown(
        f"“{literal(own.text)}” What opened? Layer {own.layer}, head {own.head} of {literal(own.model)} links {query} to "
        f"{key}. Four steps: the attention of {query}, the vectors behind it, the word that a model would fill in, and "
        "what changes when you change one thing."
    )
    if not is_shown:
        st.button(
            "Back to the experiment",
            icon=":material/replay:",
            on_click=lambda: state.change(
                **{
                    name: experiment.selection.value(name)
                    for name in ("model", "text", "second", "layer", "head", "query", "key")
                },
                kind="",
                cut=False,
            ),
            key="experiment_again",
            help="Shows the experiment's own sentence, head and query again.",
        )
