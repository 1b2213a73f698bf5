"""A profile compared with another: heads that moved, or the heads with the largest numbers in two models."""

from dataclasses import replace

import numpy as np
import streamlit as st

from ui.components.ranked_list import Row, ranked_list
from ui.rooms.many_texts.profiles.ranked import ranked, with_interval
from ui.rooms.many_texts.profiles.screen import Number, Other, Screen, difference
from ui.words.literal import literal

N_OF_TWO = 8
"""Heads listed for each of two models."""


def moved_words(screen: Screen) -> str:
    """How many heads differ significantly, how many would by chance, and which come first in the list."""
    n_head = int(np.isfinite(screen.ranked.means).sum())
    if screen.ranked.ends is None or not np.isfinite(screen.ranked.ends[0]).any():
        return f"{screen.ranked.title}. It has no interval, or there are too few texts for one; the largest differences come first."
    n_moved = int(screen.ranked.moved.sum())
    return (
        f"{screen.ranked.title}. Of {n_moved} of {n_head} heads the interval of 95% does not hold 0; by chance that would be about "
        f"{max(1, round(0.05 * n_head))}. They come first, those with the largest difference at the top."
    )


def ranking_of_two(screen: Screen, other: Other) -> None:
    """The first heads of both models, with bars on one scale."""
    heads = other.profile.heads(other.kind)
    order = np.argsort(-other.number.means, kind="stable")  # NaN comes last
    order = order[np.isfinite(other.number.means[order])][:N_OF_TWO]
    largest = float(max(np.nanmax(np.abs(at.means)) for at in (screen.y, other.number))) or 1.0
    st.markdown(f"**{literal(screen.y.title)}**")
    st.caption(literal(screen.view.selection.model))
    ranked(screen, screen.kept[:N_OF_TWO], screen.heads, screen.y, key="profile_ranking", largest=largest)
    st.caption(literal(other.name))
    ranked_list(
        [
            Row(
                text=heads[value].title,
                amount=with_interval(other.number, value),
                length=float(other.number.means[value]) / largest,
                picked=False,
            )
            for value in order.tolist()
        ],
        name=f"Heads of {other.name}, ranked by {other.number.title}",
        on_pick=lambda _: None,
        theme=screen.view.theme,
        key="profile_ranking_other",
        scrolls=True,
    )
    st.caption(
        "Their heads are others, so that none has a counterpart: they are compared by rank and by depth."
    )


def between_models(screen: Screen, other: Other) -> str:
    """The head with the largest number in each of two models, and the difference."""
    here, there = int(np.nanargmax(screen.y.means)), int(np.nanargmax(other.number.means))
    best = difference(_at(screen.y, here), _at(other.number, there))
    return (
        f"{screen.y.title}: largest in {screen.heads[here].words}, {with_interval(screen.y, here)}; of {other.name} in "
        f"{other.profile.heads(other.kind)[there].words}, {with_interval(other.number, there)}; difference {with_interval(best, 0)}"
    )


def _at(number: Number, place: int) -> Number:
    """The number of one head."""
    ends = None if number.ends is None else (number.ends[0][[place]], number.ends[1][[place]])
    return replace(number, means=number.means[[place]], ends=ends)
