"""Step 3: what would stand in the place of the query; on a decoder also the heads that read the key, and what one of them does."""

import numpy as np
import streamlit as st

from attnviz.effects import ablation
from attnviz.effects.outcome import TokenAnswer
from attnviz.figures.numbers import number_text, share_text
from attnviz.model.catalogue import BERT, SMOLLM2, SMOLLM2_INSTALL, locate, offer
from attnviz.model.infilling import Infilling
from attnviz.records import Head
from ui.choice.presets import DOOR_MASK
from ui.rooms.door_experiment.near import Door
from ui.runtime import cache, head_cache, with_model
from ui.runtime.jobs import TELLS_PROGRESS, job
from ui.runtime.with_model import Measuring
from ui.shell import downloads, errors
from ui.shell.gap import Gap, candidates, fillers, masked_position
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.words.findings import name
from ui.words.literal import literal, quoted

_MOST = 3
"""Heads that are named for each query."""


def answer(door: Door) -> tuple[str, ...]:
    """The likeliest tokens for the gap at the mask token, or else at the query; returns the charts' keys."""
    view = door.view
    st.subheader("3. What would fill the gap?", anchor=False)
    drawn: tuple[str, ...] = ()
    if view.selection.bundle:
        st.markdown(
            "An opened bundle holds no model that could fill a gap. Close the bundle to run its sentence."
        )
        return drawn
    if not fillers(view.selection.model):
        st.markdown(f"No model on this machine predicts tokens. `{SMOLLM2_INSTALL}` installs {SMOLLM2}.")
    with errors.explained(key="cut_gap"):
        gap = Gap.at(view.selection, masked_position(view.selection, view.query))
        drawn = tuple(candidates(view, gap, key="gap"))
    _offer_bert()
    return drawn


def _offer_bert() -> None:
    """If BERT's weights are not on disk: what the download is for, how long it takes, and the button."""
    bert, head = offer(BERT), DOOR_MASK.head
    if locate(bert) is not None or head is None:
        return
    effort = downloads.effort(bert)
    st.markdown(
        f"With {BERT}{f' ({effort})' * bool(effort)} this page reads “{literal(DOOR_MASK.text)}” in layer {head.layer}, head "
        f"{head.head}, the experiment of most articles, and this step shows what that model fills in, too."
    )
    with st.expander(f"Download {BERT}"):
        downloads.panel(bert)


def second_half(door: Door) -> None:
    """Draws it where the selected model is a decoder that has filled its own gap."""
    view, key, selection = door.view, door.screen.key, door.view.selection
    if (
        view.trace.kinds != ("decoder",)
        or cache.model(selection.model).language_head is None
        or selection.bundle
    ):
        return
    query = masked_position(selection, view.query)
    if query == 0 or key > query:
        return
    st.markdown(
        f"**Which heads of {literal(selection.model)} look at {quoted(view.key_tokens.labels[key])}?**"
    )
    last = len(view.query_tokens) - 1
    best = {at: _strongest(view, at, key) for at in dict.fromkeys((query, min(query + 1, last)))}
    for at, heads in best.items():
        listed = ", ".join(f"{head.short} {share_text(weight)}" for head, weight in heads)
        st.markdown(f"At {literal(name(view.queries, at))}: {listed}.")
    link_to(
        "Find a head",
        label="Find a head for this pair",
        selection=selection.but(query=query, key=key, query_to=None, key_to=None),
        help="Shows what every head gives from the query to the key.",
    )
    work = Gap.at(selection, query).filled_by(selection.model)
    if work.finished and len(work.results[0].labels) > 1:
        _without(view, query, best[query][0][0], work.results[0])


def _strongest(view: View, query: int, key: int) -> list[tuple[Head, float]]:
    """The heads with the largest weight of a query on a key, largest first."""
    weights = head_cache.pair_weights(
        view.selection.source, view.kind, (query, query + 1), (key, key + 1), measure="weights"
    )
    order = np.argsort(-np.nan_to_num(weights, nan=-1.0), axis=None)[:_MOST]
    places = [Head(*map(int, np.unravel_index(flat, weights.shape))) for flat in order]
    return [(head, float(weights[head.layer, head.head])) for head in places]


def _without(view: View, query: int, head: Head, infilling: Infilling) -> None:
    """What switching a head off does to the logarithm of the ratio of the two likeliest candidates' probabilities."""
    model = cache.model(view.selection.model)
    first, second = (model.name_of(int(number)) for number in infilling.ids[:2])
    outcome = TokenAnswer(position=query - 1, token=first, against=second)
    selection = view.selection
    given = ablation.remove_in_order, model.name, view.trace, Measuring(outcome), (head,)
    work = job(
        "one head off",
        (selection.source, str(outcome), head),
        lambda: [(with_model.call, given, {"kind": view.kind, **TELLS_PROGRESS})],
    )
    work.settle(2.0)
    ratio = f"log P({first}) − log P({second})"
    before = name(view.queries, query - 1)
    if work.finished:
        removal: ablation.Removal = work.results[0]
        st.markdown(
            literal(
                f"After {before}, {ratio} is {number_text(removal.base)}; with {head.words} off, "
                f"{number_text(float(removal.outcomes[0]))}. The text after the gap plays no part here."
            )
        )
    link_to(
        "Heads off",
        label=f"Switch off every head: {ratio}",
        selection=selection.but(layer=head.layer, head=head.head, outcome=str(outcome)),
        help="Shows what each head changes when it is off, with this outcome filled in.",
    )
