"""The first screen: a sentence, the attention of one head on it, and whether the numbers are the model's."""

from functools import partial

from ui.shell import verdict
from ui.shell.export.take import take
from ui.shell.frame import newest, selected, shell
from ui.shell.navigation import link_to
from ui.stage.query_key_map import notes_of_map
from ui.stage.stage import stage
from ui.stage.tour import guide
from ui.streamlit_fixes.redrawn_block import redrawn_block
from ui.words.glossary import terms

PICTURES = {
    "matrix": "Attention matrix",
    "token_flow": "Token flow",
    "map": "Map of queries and keys",
}
"""By the key of a part of the stage, what its picture is called."""


def together() -> None:
    """All that changes with the text."""
    with selected("Together") as view:
        if view is not None:
            stage(view)
    if view is None:
        return
    if not view.selection.lesson:  # which leads in its place
        with view.places.lead:
            guide(view)
    verdict.show(view)
    terms(
        "Attention",
        "Model",
        "Layer",
        "Head",
        "Token",
        "Special token",
        "Attention matrix",
        "Norm-based weight",
        "Rollout",
        "t-SNE",
        "Perplexity",
    )
    link_to(
        "Other maps",
        label="Where does this score come from?",
        only={"sources": True},
        help="Splits the score of the selected query and key by where both come from: embedding, earlier heads and MLPs.",
    )
    link_to(
        "Myths",
        label="What weights do not say",
        help="A weight says what a head reads, not what the answer depends on: four claims, measured.",
    )
    link_to(
        "Heads off",
        label="What if this head were off?",
        help="Switches this head off, and every other, to measure what happens to an outcome.",
    )
    take(partial(newest, view), PICTURES, notes=notes_of_map)


with shell("Together"):
    redrawn_block(together, None)  # a change draws nothing else
