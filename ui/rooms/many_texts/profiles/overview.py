"""All heads of a profile: as points by two numbers, and ranked by one of them."""

import numpy as np
import streamlit as st

from attnviz.figures.heads import draw_by_depth, draw_two_numbers
from attnviz.figures.numbers import cell_text, counted, power_text
from ui.choice import state, widgets
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.many_texts.joint_map.lines import own_lines
from ui.rooms.many_texts.profiles.beside import N_OF_TWO, between_models, moved_words, ranking_of_two
from ui.rooms.many_texts.profiles.choices import ProfileSettings
from ui.rooms.many_texts.profiles.offered import NOTHING, corpora, corpus_name, other_name, others
from ui.rooms.many_texts.profiles.own_file import to_do, uploader
from ui.rooms.many_texts.profiles.ranked import pick, ranked, with_interval
from ui.rooms.many_texts.profiles.screen import Screen, is_called, number, number_names
from ui.runtime import cache, profiles
from ui.shell.chart import chart
from ui.shell.view import View
from ui.words.literal import literal

CHART = "profile_heads"
MOST_ROWS = 24


def controls(screen: Screen) -> None:
    """The controls for the texts, the two numbers, and the search."""
    corpora_here, beside = corpora(screen.weights), others(screen.weights)
    names = number_names(screen.profile, screen.kind)
    shown = screen.view.selection.but(profile_corpus=screen.corpus)
    with st.container(horizontal=True, vertical_alignment="bottom", key="profile_controls"):
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


def points(screen: Screen) -> None:
    """A point for each head: by two numbers, by one number over both texts, or by its depth in two models."""
    if screen.other is not None and not screen.is_compared:
        other = screen.other
        chart(
            draw_by_depth(
                [
                    (screen.view.selection.model, screen.heads, screen.y.means),
                    (other.name, other.profile.heads(other.kind), other.number.means),
                ],
                title=screen.y.title,
                picked=screen.head,
                theme=screen.view.theme,
            ),
            key=CHART,
            alt=f"{screen.y.title} of every head of two models, by how deep its layer is; {screen.head.words} is marked",
            on_pick=pick,
            name="Heads; select one",
        )
        return
    up = screen.y.title
    if screen.is_compared:
        up = f"{up}, {corpus_name(screen.corpus)}"
    chart(
        draw_two_numbers(
            screen.x.means,
            screen.y.means,
            heads=screen.heads,
            titles=(screen.x.title, up),
            ends=screen.y.ends,
            picked=screen.head,
            shown=screen.kept,
            is_same_number=screen.is_compared,
            theme=screen.view.theme,
        ),
        key=CHART,
        alt=f"{screen.y.title} of every head by {screen.x.title}; {screen.head.words} is marked",
        on_pick=pick,
        name="Heads; select one",
    )


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
    ranked(screen, shown, screen.heads, screen.ranked, key="profile_ranking")
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
            on_pick=lambda row: pick([named[row][0].layer, named[row][0].head]),
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
        f"attnviz corpus profile texts.txt --model {view.selection.model} --out profiles/mine\nATTNVIZ_PROFILES=profiles make run",
        language="bash",
    )
