"""What the experiment is with the models that are here, and whether it is what the reader sees."""

from dataclasses import dataclass

import streamlit as st

from attnviz.model.catalogue import BERT, default_model, locate, offer
from ui.choice import state
from ui.choice.presets import Preset, first_screen
from ui.choice.selection import Selection, first_selection
from ui.page import downloads
from ui.page.view import View
from ui.words.literal import literal, quoted
from ui.work import cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One sentence, one head, one query."""

    selection: Selection
    preset: Preset

    @classmethod
    def here(cls) -> "Experiment":
        """With bert-base-uncased where its weights are on disk, with the bundled model and its own head otherwise."""
        model = default_model()
        preset = first_screen(model).preset
        labels = cache.trace(first_selection(model).source).tokens.labels
        query, key = labels.index(preset.query or ""), labels.index(preset.key or "")
        return cls(selection=first_selection(model).but(query=query, key=key), preset=preset)

    def is_shown_in(self, view: View, key: int) -> bool:
        """Whether the reader looks at the experiment itself."""
        shown, own = view.selection, self.selection
        return (shown.source, shown.place, view.query, key) == (own.source, own.place, own.query, own.key)


def introduction(experiment: Experiment, is_shown: bool) -> None:
    """The question, the model that it is asked here, and the way back to the experiment from a variation."""
    own, preset = experiment.selection, experiment.preset
    st.markdown(
        f"A door is being watched, and something opens. In “{literal(own.text)}”, what does {quoted(preset.query or '')} "
        f"attend to? {literal(own.model)} answers with layer {own.layer}, head {own.head}; the same head shows why "
        "two tokens attend to each other: queries and keys that point the same way."
    )
    if locate(offer(BERT)) is None:
        effort = downloads.effort(offer(BERT))
        st.markdown(
            f"With bert-base-uncased, the model used in most articles{f' ({effort})' * bool(effort)}, this page uses “I was "
            "watching the door when \\[MASK\\] opened.”, layer 3, head 11, and step 3 shows which word the model fills in: "
            "that step needs a language head, which the bundled model does not have."
        )
        with st.expander("Download bert-base-uncased"):
            downloads.panel(offer(BERT))
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
