"""Step 4: the visitor's own variation, and what it changes."""

from functools import partial

import numpy as np
import streamlit as st
from jaxtyping import Float

from attnviz.errors import SelectionError
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import share_text
from attnviz.model.infilling import Infilling
from attnviz.records import AttentionPattern, Head, bare
from ui.choice import state
from ui.choice.exchanged import exchanged
from ui.choice.selection import Selection
from ui.rooms.door_experiment.near import Door, Experiment, door_map, near
from ui.runtime import cache, head_cache
from ui.shell.gap import Gap, fillers, masked_position, wait_for
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.streamlit_fixes.stale_values import tie
from ui.words.extremes import places_of_largest
from ui.words.findings import amount, name, strongest_key
from ui.words.literal import literal

WORDS = ("door", "window", "box", "letter", "shop", "bird", "sky")
"""The experiment's own word first; each is one token of BERT's vocabulary."""


def variation(door: Door) -> None:
    """Another word, head or sentence, and the experiment's numbers beside the visitor's."""
    view, key, experiment = door.view, door.screen.key, door.experiment
    selection = view.selection
    st.subheader("4. Change one thing", anchor=False)
    with st.container(key="door_change", horizontal=True, vertical_alignment="center"):
        st.selectbox(
            "Replace “door” with",
            WORDS,
            index=None,
            placeholder="Select a word",
            width=320,
            **tie(
                "experiment_word",
                _word_of(selection, experiment.selection),
                partial(_take_word, experiment.selection),
                is_list=True,
            ),
            help="Puts this word into the experiment's sentence and computes everything again.",
        )
        weights = head_cache.pair_weights(
            selection.source, view.kind, (view.query, view.query + 1), (key, key + 1), measure="weights"
        )
        best = strongest_heads(weights)
        if not best or selection.place in best:
            st.markdown(in_words(best), width="content")
        else:
            st.button(
                f"Select the strongest head for this pair: {best[0].short}",
                icon=":material/search:",
                on_click=lambda: state.change(
                    layer=best[0].layer, head=best[0].head, query=view.query, key=key
                ),
                key="experiment_head",
                help="Selects a head that gives this pair the largest weight.",
            )
        link_to(
            "Side by side",
            label="Compare side by side",
            selection=compared(selection.but(query=view.query, key=key), experiment.selection),
            help="Shows the experiment and yours side by side; until you change something, the same sentence with one word "
            "exchanged.",
        )
    st.caption("Or type a sentence of your own above; the experiment's numbers stay in the table.")
    table = _table(view, door.weights, key, experiment)
    st.table({title: [literal(cell) for cell in cells] for title, cells in table.items()}, hide_index=True)
    _wait_for_experiment(experiment)


def _wait_for_experiment(experiment: Experiment) -> None:
    """The progress of what fills the experiment's own gap, whose numbers stand in the table beside any variation."""
    own = experiment.selection
    gap = Gap.at(own, masked_position(own, own.query or 0))
    waiting = {
        name: work
        for name in fillers(own.model)
        if not ((work := gap.filled_by(name)).finished or work.error)
    }
    if waiting:
        wait_for(waiting, key="gap_own_act")


def compared(shown: Selection, own: Selection) -> Selection:
    """The experiment as A and the variation as B; with another word if they are the same, since nothing would differ."""
    names = ("model", "text", "second", "masked", "layer", "head")
    b = {f"other_{name}": shown.value(name) for name in names if shown.value(name) != own.value(name)}
    if "other_second" in b:
        b["other_text"] = shown.text
    return own.but(**b or {"other_text": exchanged(own.text)})


def strongest_heads(weights: Float[np.ndarray, "layer head"]) -> tuple[Head, ...]:
    """The heads with the largest weight for a pair: several if tied, none if all weights are 0."""
    places = places_of_largest(weights, share_text) if np.nanmax(weights) > 0 else ()
    return tuple(Head(*place) for place in places)


def in_words(best: tuple[Head, ...]) -> str:
    """The sentence shown if the selected head is one of these, or there is none."""
    match best:
        case ():
            return "No head gives the pair any weight."
        case (_,):
            return "Of all heads this one gives the pair the largest weight."
        case (_, *others):
            return f"Of all heads this one and {len(others)} more give the pair the largest weight."
    raise AssertionError(best)


def _word_of(shown: Selection, own: Selection) -> str | None:
    """The word in place of the experiment's "door"; None in any other sentence."""
    return next((word for word in WORDS if own.text.replace("door", word) == shown.text), None)


def _take_word(own: Selection, word: str) -> None:
    """Selects the experiment's sentence with another word for "door"; query and key keep their positions."""
    text = own.text.replace("door", word)
    state.change(model=own.model, text=text, second="", cut=False, query=own.query, key=own.key)


def _table(view: View, pattern: AttentionPattern, key: int, experiment: Experiment) -> dict[str, list[str]]:
    own = experiment.selection
    of_own = cache.pattern(own.source, *own.place, cache.trace(own.source).kinds[0], "weights")
    assert own.query is not None and own.key is not None
    columns = {"The experiment": _column(own, of_own, own.query, own.key)}
    if not experiment.is_shown_in(view, key):
        columns["Yours"] = _column(view.selection, pattern, view.query, key)
    names = list(dict.fromkeys(row for column in columns.values() for row in column))
    return {"": names} | {
        title: [column.get(name, "") for name in names] for title, column in columns.items()
    }


def _column(selection: Selection, pattern: AttentionPattern, query: int, key: int) -> dict[str, str]:
    """One side's column of the table, by row name."""
    row, column = pattern.queries.index(query), pattern.keys.index(key)
    strongest = strongest_key(pattern, query)
    given = "not shown"
    if row is not None and column is not None:
        given = f"{amount(pattern, row, column)} on {name(pattern.keys, key)}"
    return {
        "sentence": isolated(selection.text),
        "model": selection.model,
        "head": str(selection.place.title),
        "query": name(pattern.queries, query),
        "weight on the key": given,
        "strongest key, special tokens and itself aside": name(pattern.keys, strongest),
        "rank of the key on the map, 1 is nearest": _nearness(selection, pattern, query, key),
        **{f"{model} fills in": _filled(selection, query, model) for model in fillers(selection.model)},
    }


def _nearness(selection: Selection, pattern: AttentionPattern, query: int, key: int) -> str:
    """The key's rank by distance from the query on the map of step 2, among how many keys."""
    nearness = near(door_map(selection, pattern.kind), query, key)
    return f"{nearness.n_nearer + 1} of {nearness.n_key}"


def _filled(selection: Selection, query: int, model: str) -> str:
    """The likeliest token that a model puts in the place of the query, with its probability."""
    try:
        work = Gap.at(selection, masked_position(selection, query)).filled_by(model)
    except SelectionError:
        return "nothing: a special token is no gap"
    if not work.finished:
        return "nothing" if work.error else "…"
    infilling: Infilling = work.results[0]
    return f"{isolated(bare(infilling.labels[0]))}, {share_text(float(infilling.probabilities[0]))}"
