"""All heads of a profile as points by two numbers and ranked by one of them, alone or compared with another profile."""

from dataclasses import replace

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures.heads import draw_by_depth, draw_two_numbers
from attnviz.figures.numbers import cell_text, counted, power_text
from attnviz.records import Head
from attnviz.starting import COMMAND
from ui.choice import state, widgets
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.many_texts.own_corpora import corpus_name, own_lines, to_do, uploader
from ui.rooms.many_texts.profiles.measured_heads import (
    NOTHING,
    Number,
    Other,
    ProfileSettings,
    Screen,
    corpora,
    difference,
    is_called,
    number,
    number_names,
    other_name,
    others,
    shown_profile,
    with_interval,
)
from ui.runtime import cache, profiles
from ui.shell.chart import chart, picks
from ui.shell.heads import ranked_heads
from ui.shell.view import View
from ui.words.literal import literal

CHART = "profile_heads"
MOST_ROWS = 24
N_OF_TWO = 8
"""Heads listed for each of two models."""


def screen_of(view: View) -> Screen | None:
    """The contents of the page; None, after drawing what can be done, if the model has no profile, or none yet."""
    with st.container(key="profile_notes"):  # has its place, or what follows would move with it
        screen = shown_profile(view)
    if screen is None:
        none(view)
    return screen


def controls(screen: Screen) -> None:
    """The controls for the texts, the two numbers, and the search."""
    corpora_here, beside = corpora(screen.weights), others(screen.weights)
    names = number_names(screen.profile, screen.kind)
    shown = screen.view.selection.but(profile_corpus=screen.corpus)
    with st.container(horizontal=True, vertical_alignment="bottom", key="part_controls"):
        own_lines("Your own texts", uploader)
        if len(corpora_here) > 1:
            st.selectbox(
                **widgets.field(
                    "profile_corpus", shown, options=list(corpora_here), format_func=corpus_name, width=190
                )
            )
        options = [NOTHING, *(name for name in beside if name != screen.corpus)]
        if len(options) > 1:
            st.selectbox(
                **widgets.field(
                    "profile_other",
                    options=options,
                    format_func=lambda corpus: (
                        "Nothing" if corpus == NOTHING else other_name(beside[corpus], screen.weights)
                    ),
                    width=190,
                )
            )
        there = screen.view.selection.but(profile_x=screen.x.name, profile_y=screen.y.name)
        for field in ("profile_y", "profile_x")[: 2 if screen.other is None else 1]:
            st.selectbox(
                **widgets.field(field, there, options=list(names), format_func=names.__getitem__, width=230)
            )
        st.text_input(**widgets.field("profile_search", width=190))
    to_do()


def points(screen: Screen) -> Figure:
    """A point for each head: by two numbers, by one number over both texts, or by its depth in two models."""
    other, up, theme = screen.other, screen.y.title, screen.view.theme
    if other is not None and not screen.is_compared:
        of_other = other.name, other.profile.heads(other.kind), other.number.means
        of_both = [(screen.view.selection.model, screen.heads, screen.y.means), of_other]
        drawn = draw_by_depth(of_both, title=up, picked=screen.head, theme=theme)
        of_what = "of every head of two models, by how deep its layer is"
    else:
        drawn = draw_two_numbers(
            screen.x.means,
            screen.y.means,
            heads=screen.heads,
            titles=(screen.x.title, f"{up}, {corpus_name(screen.corpus)}" if screen.is_compared else up),
            ends=screen.y.ends,
            picked=screen.head,
            shown=screen.kept,
            is_same_number=screen.is_compared,
            theme=theme,
        )
        of_what = f"of every head by {screen.x.title}"
    chart(
        drawn,
        key=CHART,
        alt=f"{up} {of_what}; {screen.head.words} is marked",
        on_pick=picks("layer", "head"),
        name="Heads; select one",
    )
    st.caption(about(screen))
    return drawn


def ranking(screen: Screen) -> None:
    """The heads with the largest number, or the largest difference; for two models, those of each."""
    if screen.other is not None and not screen.is_compared:
        ranking_of_two(screen, screen.other)
        return
    if wanted := screen.view.selection.of(ProfileSettings).search.strip():
        _matches(screen, wanted)
        return
    if screen.is_compared:
        st.markdown("**Heads that moved**")
        st.caption(moved_words(screen))
    else:
        st.markdown(f"**{literal(screen.ranked.title)}**")
    shown = screen.kept[:MOST_ROWS]
    ranked(screen, shown, screen.ranked)
    if len(screen.kept) > len(shown):
        st.caption(f"The first {len(shown)} of {len(screen.kept)} heads.")


def _matches(screen: Screen, wanted: str) -> None:
    """The heads whose name matches the search, and the best head of each number whose title matches."""
    of_head = profiles.names(screen.profile, screen.kind)
    named = [
        (head, head_name)
        for head in screen.kept
        for head_name in of_head[head]
        if is_called(f"{head_name.called} {head_name.relation}", wanted)
    ]
    named = sorted(named, key=lambda pair: -pair[1].share)[:MOST_ROWS]
    st.markdown(f"**Heads called “{literal(wanted)}”**")
    if named:
        ranked_list(
            [
                Row(
                    text=f"{head.title}: {head_name.called}",
                    amount=f"{cell_text(head_name.share)} ({cell_text(head_name.low)} to {cell_text(head_name.high)})",
                    length=head_name.share,
                    picked=head == screen.head,
                )
                for head, head_name in named
            ],
            name=f"Heads called {wanted}; select one",
            on_pick=lambda row: state.change(layer=named[row][0].layer, head=named[row][0].head),
            theme=screen.view.theme,
            key="profile_ranking",
            scrolls=True,
        )
        st.caption(
            "A head has a name where its share is above a half, the whole interval of 95% included, and above any fixed distance."
        )
    else:
        st.caption("No head is called so. Clear the search to see all heads.")
    _best_by(screen, wanted)


def _best_by(screen: Screen, wanted: str) -> None:
    """For each number whose title matches the search, the head with the largest value, whatever its name."""
    titles = number_names(screen.profile, screen.kind)
    chosen = [
        number(screen.profile, screen.kind, name)
        for name, title in titles.items()
        if is_called(title, wanted)
    ]
    best = [
        (number, int(np.nanargmax(number.means))) for number in chosen if np.isfinite(number.means).any()
    ][:N_OF_TWO]
    if not best:
        return
    st.markdown("**Numbers called so, and their largest head**")
    largest = max(1.0, *(abs(float(number.means[at])) for number, at in best))  # most are shares
    ranked_list(
        [
            Row(
                text=f"{number.title}: {screen.heads[at].short}",
                amount=with_interval(number, at),
                length=float(number.means[at]) / largest,
                picked=screen.heads[at] == screen.head,
            )
            for number, at in best
        ],
        name="Numbers, and the head with the largest; select one to rank all heads by it",
        on_pick=lambda row: state.change(
            profile_y=best[row][0].name,
            profile_search="",
            layer=screen.heads[best[row][1]].layer,
            head=screen.heads[best[row][1]].head,
        ),
        theme=screen.view.theme,
        key="profile_numbers",
        scrolls=True,
    )
    st.caption(
        "Selecting one ranks all heads by it. Of this many heads the largest is a little larger than on other texts."
    )


def headline(screen: Screen) -> str:
    """The selected head's name, number and rank; for two models, the largest number of each."""
    if screen.other is not None and not screen.is_compared:
        return between_models(screen, screen.other)
    names = [name.called for name in profiles.names(screen.profile, screen.kind)[screen.head]]
    called = f"{screen.head.title}: {', '.join(names)}" if names else f"{screen.head.title} has no name"
    at = screen.at
    if not np.isfinite(screen.y.means[at]):
        return f"{called}. {screen.y.title} is not defined for it"
    if screen.is_compared:
        return f"{called}. {screen.ranked.title}: {with_interval(screen.ranked, at)}"
    rank = 1 + int((screen.y.means > screen.y.means[at]).sum())
    n_head = int(np.isfinite(screen.y.means).sum())
    return f"{called}. {screen.y.title}: {with_interval(screen.y, at)}, rank {rank} of {n_head}"


def about(screen: Screen) -> str:
    """What the numbers were measured on, and whether they were checked."""
    profile = screen.profile
    has_interval = screen.y.ends is not None and bool(np.isfinite(screen.y.ends[0]).any())
    interval = (
        "in parentheses the interval of 95% over texts"
        if has_interval
        else "there is no interval of this number, or too few texts for one"
    )
    sentence = f"{corpus_name(screen.corpus)}: means over {counted(profile.n_text, 'text')} with {counted(profile.n_token, 'token')}; {interval}. "
    if profile.n_passed == profile.n_verified:
        sentence += (
            f"{profile.n_verified:,} of these texts were compared with the model’s own attention: weights differ by at most "
            f"{power_text(profile.worst_error)}."
        )
    else:
        sentence += (
            f"{profile.n_verified - profile.n_passed:,} of {profile.n_verified:,} texts that were compared do not match the "
            f"model’s own attention: weights differ by up to {power_text(profile.worst_error)}."
        )
    if profile.n_failed:
        sentence += f" {counted(profile.n_failed, 'text')} could not be read"
        first = next(iter(screen.failures), None)
        sentence += "." if first is None else f", the first at line or row {first.place}: {first.reason}"
    if (
        screen.is_compared
        and screen.other is not None
        and screen.other.profile.about["weights"] != dict(screen.weights)
    ):
        sentence += " Each head is compared with the one in its place, which says something where one of the models was trained from the other."
    return sentence


def none(view: View) -> None:
    """The message if the model has no profile; nothing while one is being computed."""
    own_lines("Your own texts", uploader)
    to_do()
    if corpora(cache.weights(view.selection.source)):
        return
    st.markdown(
        f"There is no profile of {literal(view.selection.model)}. A profile measures every head over many texts: bring texts of your "
        "own, or make one with"
    )
    st.code(
        f"attnviz corpus profile texts.txt --model {view.selection.model} --out profiles/mine\nATTNVIZ_PROFILES=profiles {COMMAND}",
        language="bash",
    )


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
    ranked(screen, screen.kept[:N_OF_TWO], screen.y, largest)
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


def ranked(screen: Screen, shown: list[Head], number: Number, largest: float = 0.0) -> None:
    """Heads with their numbers; bars are shares of ``largest``, or of the largest number shown."""
    places = [screen.heads.index(head) for head in shown]
    largest = largest or max((abs(float(number.means[at])) for at in places), default=0.0) or 1.0
    ranked_heads(
        screen.view,
        [
            (head, with_interval(number, at), float(number.means[at]) / largest)
            for head, at in zip(shown, places, strict=True)
        ],
        name=f"Heads, ranked by {number.title}; select one",
        key="profile_ranking",
        scrolls=True,
    )
