"""The first screen: a sentence, the attention of one head on it, and whether the numbers are the model's."""

from attnviz.figures.labels import isolated
from ui.part import Block, Part, Picture, Sheet
from ui.rooms.explore.stage.query_key_map import notes_of_map
from ui.rooms.explore.stage.stage import stage
from ui.rooms.explore.stage.tour import guide
from ui.shell.export.captions import LINES, NUMBERS, measured
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.findings import measure_text


def of_matrix(view: View) -> str:
    """What the cells of a matrix of one head are, and where their colours end."""
    selection = view.selection
    end = None if view.trace.is_long(view.kind) else view.colour_end(view.pattern())
    logarithmic = ", logarithmic" * (selection.colour == "logarithmic" and selection.show != "scores")
    ends = "" if end is None else f", colours end at {measure_text(end, view.measure)}"
    of_all = ", all heads" * view.is_of_layer
    return f"cell colour: {NUMBERS[selection.show]}{of_all}{logarithmic}{ends}"


def of_ranking(view: View) -> str:
    """What the bars of the ranked keys are."""
    return f"bar length: {measured(view)} of the query “{isolated(view.query_tokens.labels[view.query])}”"


def invitation(view: View) -> None:
    """The tour, above the stage; a lesson leads in its place."""
    if not view.selection.lesson:
        with view.places.lead:
            guide(view)


def further(view: View) -> None:
    """Links to what explains the picture."""
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


MATRIX = Picture("matrix", "Attention matrix", of_matrix)

PART = Part(
    name="Together",
    address="",
    question="Where does each token look?",
    asks=("sentence", "head", "rows"),
    is_stage=True,
    longest=8192,
    terms=(
        "Attention",
        "Model",
        "Layer",
        "Head",
        "Token",
        "Special token",
        "Attention matrix",
        "Norm-based weight",
        "Rollout",
        "ALTI",
        "Value zeroing",
        "t-SNE",
        "Perplexity",
    ),
    sheets=(
        Sheet(
            rows=(
                Block(
                    stage,
                    (
                        MATRIX,
                        Picture("token_flow", "Token flow", lambda view: f"line thickness: {measured(view)}"),
                        Picture("map", "Map of queries and keys", LINES),
                    ),
                ),
                invitation,
                further,
            ),
            notes=notes_of_map,
        ),
    ),
)
