"""All heads of a profile: by two numbers as points, and ranked by one of them."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from attnviz.corpus.relations import DIRECTIONS
from attnviz.figures.numbers import cell_text, power_text
from attnviz.figures.profile import draw_by_depth, draw_two_numbers
from attnviz.records import Head, Kind
from ui.choice import state, widgets
from ui.components.ranked_list import Row, ranked_list
from ui.page.chart import chart
from ui.page.view import View
from ui.sections.many_sentences.lines import own_lines
from ui.sections.profiles.offered import NOTHING, OWN, corpora, corpus_name, offered, other_name, others
from ui.sections.profiles.own_file import FILE, OwnFile, to_do, uploader
from ui.sections.profiles.screen import Number, Other, Screen, difference, number_names
from ui.session import of_session
from ui.words.literal import literal
from ui.work import cache, profiles
from ui.work.profiles import Listed

CHART = "profile_heads"
MOST_ROWS = 24
N_OF_TWO = 8
"""Heads of each of two models."""


def controls(screen: Screen) -> None:
    """The texts, the two numbers, and the search."""
    found, beside = corpora(screen.weights), others(screen.weights)
    names = number_names(screen.profile, screen.kind)
    shown = screen.view.selection.but(profile_corpus=screen.corpus)
    with st.container(horizontal=True, vertical_alignment="bottom", key="profile_controls"):
        own_lines("Your own texts", uploader)
        if len(found) > 1:
            st.selectbox(
                **widgets.field(
                    "profile_corpus", shown, options=list(found), format_func=corpus_name, width=190
                )
            )
        options = [NOTHING, *(one for one in beside if one != screen.corpus)]
        if len(options) > 1:
            st.selectbox(
                **widgets.field(
                    "profile_other",
                    options=options,
                    format_func=lambda one: (
                        "Nothing" if one == NOTHING else other_name(beside[one], screen.weights)
                    ),
                    width=190,
                )
            )
        for field in ("profile_y", "profile_x")[: 2 if screen.other is None else 1]:
            st.selectbox(
                **widgets.field(field, options=list(names), format_func=names.__getitem__, width=250)
            )
        st.text_input(**widgets.field("profile_search", width=190))
    to_do()


def points(screen: Screen) -> None:
    """A point for each head: by two numbers, by one of them over both texts, or by its depth in two models."""
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
            on_pick=_pick,
            name="Heads; select one",
        )
        return
    chart(
        draw_two_numbers(
            screen.x.means,
            screen.y.means,
            heads=screen.heads,
            titles=(screen.x.title, screen.y.title),
            ends=screen.y.ends,
            picked=screen.head,
            shown=screen.kept,
            is_same_number=screen.is_compared,
            theme=screen.view.theme,
        ),
        key=CHART,
        alt=f"{screen.y.title} of every head by {screen.x.title}; {screen.head.words} is marked",
        on_pick=_pick,
        name="Heads; select one",
    )


def ranking(screen: Screen) -> None:
    """The heads with the largest number, or those that differ most; of two models those of each."""
    if screen.other is not None and not screen.is_compared:
        _ranking_of_two(screen, screen.other)
        return
    if screen.is_compared:
        st.markdown("**Heads that moved**")
        st.caption(moved_words(screen))
    else:
        st.markdown(f"**{literal(screen.ranked.title)}**")
    if not screen.kept:
        st.caption("No head is called so. Clear the search to see all heads.")
        return
    shown = screen.kept[:MOST_ROWS]
    _ranked(screen, shown, screen.heads, screen.ranked, key="profile_ranking")
    if len(screen.kept) > len(shown):
        st.caption(f"The first {len(shown)} of {len(screen.kept)} heads.")


def _ranked(screen: Screen, shown: list[Head], heads: list[Head], number: Number, *, key: str) -> None:
    means = {head: float(number.means[heads.index(head)]) for head in shown}
    largest = max((abs(one) for one in means.values()), default=0.0) or 1.0
    ranked_list(
        [
            Row(
                text=head.title,
                amount=with_interval(number, heads.index(head)),
                length=means[head] / largest,
                picked=head == screen.head,
            )
            for head in shown
        ],
        name=f"Heads, ranked by {number.title}; select one",
        on_pick=lambda row: _pick([shown[row].layer, shown[row].head]),
        theme=screen.view.theme,
        key=key,
        scrolls=True,
    )


def moved_words(screen: Screen) -> str:
    """How many heads differ by more than chance lets expect, and what the first of the list are."""
    n_head = int(np.isfinite(screen.ranked.means).sum())
    if screen.ranked.ends is None or not np.isfinite(screen.ranked.ends[0]).any():
        return f"{screen.ranked.title}. It has no interval, or there are too few texts for one; the largest differences come first."
    n_moved = int(screen.ranked.moved.sum())
    return (
        f"{screen.ranked.title}. Of {n_moved} of {n_head} heads the interval of 95% does not hold 0; by chance that would be about "
        f"{max(1, round(0.05 * n_head))}. They come first, those with the largest difference at the top."
    )


def _ranking_of_two(screen: Screen, other: Other) -> None:
    """The first heads of both models, and how much the best of one is beyond the best of the other."""
    st.markdown(f"**{literal(screen.y.title)}**")
    st.caption(literal(screen.view.selection.model))
    _ranked(screen, screen.kept[:N_OF_TWO], screen.heads, screen.y, key="profile_ranking")
    st.caption(literal(other.name))
    heads, number = other.profile.heads(other.kind), other.number
    order = np.argsort(-np.nan_to_num(number.means, nan=-np.inf), kind="stable")[:N_OF_TWO]
    largest = float(np.nanmax(np.abs(number.means[order]))) or 1.0
    ranked_list(
        [
            Row(
                text=heads[one].title,
                amount=with_interval(number, one),
                length=float(number.means[one]) / largest,
                picked=False,
            )
            for one in order.tolist()
        ],
        name=f"Heads of {other.name}, ranked by {number.title}",
        on_pick=lambda _: None,
        theme=screen.view.theme,
        key="profile_ranking_other",
        scrolls=True,
    )
    st.caption(
        "Their heads are others, so that none has a counterpart: they are compared by rank and by depth."
    )


def between_models(screen: Screen, other: Other) -> str:
    """The heads with the largest number of two models, and the difference."""
    here, there = int(np.nanargmax(screen.y.means)), int(np.nanargmax(other.number.means))
    best = difference(_at(screen.y, here), _at(other.number, there))
    return (
        f"{screen.y.title}: largest in {screen.heads[here].title}, {with_interval(screen.y, here)}; of {other.name} in "
        f"{other.profile.heads(other.kind)[there].title}, {with_interval(other.number, there)}; difference {with_interval(best, 0)}"
    )


def _at(number: Number, place: int) -> Number:
    """The number of one head."""
    ends = None if number.ends is None else (number.ends[0][[place]], number.ends[1][[place]])
    return replace(number, means=number.means[[place]], ends=ends)


def with_interval(number: Number, at: int) -> str:
    """A number of a head with its interval."""
    mean = cell_text(float(number.means[at]))
    if number.ends is None or not np.isfinite(number.ends[0][at]):
        return mean
    low, high = (cell_text(float(one[at])) for one in number.ends)
    return f"{mean} ({low} to {high})"


def headline(screen: Screen) -> str:
    """What the selected head is called, its number, and where it stands; of two models the largest of both."""
    if screen.other is not None and not screen.is_compared:
        return between_models(screen, screen.other)
    names = [one.called for one in profiles.names(screen.profile, screen.kind)[screen.head]]
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
    """What the numbers are of, and whether they were checked."""
    profile = screen.profile
    has_interval = screen.y.ends is not None and bool(np.isfinite(screen.y.ends[0]).any())
    interval = (
        "in parentheses the interval of 95% over texts (bootstrap)"
        if has_interval
        else "there is no interval of this number, or too few texts for one"
    )
    said = f"{corpus_name(screen.corpus)}: means over {profile.n_text:,} texts with {profile.n_token:,} tokens; {interval}. "
    if profile.n_passed == profile.n_verified:
        said += (
            f"{profile.n_verified:,} of these texts were compared with the model’s own attention: weights differ by at most "
            f"{power_text(profile.worst_error)}."
        )
    else:
        said += (
            f"{profile.n_verified - profile.n_passed:,} of {profile.n_verified:,} texts that were compared do not match the "
            f"model’s own attention: weights differ by up to {power_text(profile.worst_error)}."
        )
    if profile.n_failed:
        said += f" {profile.n_failed:,} texts could not be read"
        first = next(iter(screen.failures), None)
        said += "." if first is None else f", the first at line or row {first.place}: {first.reason}"
    if (
        screen.is_compared
        and screen.other is not None
        and screen.other.profile.about["weights"] != dict(screen.weights)
    ):
        said += " Each head is compared with the one in its place, which says something where one of the models was trained from the other."
    return said


def none(view: View) -> None:
    """What is said where the model has no profile; nothing while one is being made."""
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


def _pick(clicked: Any) -> None:
    match clicked:
        case [int(layer), int(head)]:
            state.change(layer=layer, head=head)


def as_csv_rows(screen: Screen) -> tuple[list[str], list[list[object]]]:
    """A row for each head with all its numbers, and where it is compared with itself the difference with its interval."""
    table = screen.profile.table
    names = [
        name
        for name in table.column_names
        if name not in ("distances", "positions", "relations", "token_pairs", "part_pairs")
    ]
    rows = [[row[name] for name in names] for row in table.select(names).to_pylist()]
    if not screen.is_compared or screen.other is None:
        return names, rows
    of_kind = {(screen.kind, *head): at for at, head in enumerate(screen.heads)}
    compared = {
        f"{screen.y.name}_other": screen.other.number.means,
        f"{screen.y.name}_difference": screen.ranked.means,
    }
    if screen.ranked.ends is not None:
        compared |= {
            f"{screen.y.name}_difference_{end}": one
            for end, one in zip(("low", "high"), screen.ranked.ends, strict=True)
        }
    for row in rows:
        at = of_kind.get((row[0], row[1], row[2]))
        row += [None if at is None else float(one[at]) for one in compared.values()]
    return [*names, *compared], rows


def python_lines(screen: Screen) -> str:
    """Python that reads the profile, or makes it of the visitor's own texts, and draws the points that are shown."""
    names, y = number_names(screen.profile, screen.kind), screen.y.name
    if screen.other is None:
        drawn, across, title = "profile", screen.x.name, names[screen.x.name]
    else:
        drawn, across, title = "other", y, f"{names[y]}, {screen.other.name}"
    other = "" if screen.other is None else f"other = {_profile_lines(screen.other.listed)}\n"
    column = partial(_column, name=across, kind=screen.kind if screen.other is None else screen.other.kind)
    if screen.other is not None and not screen.is_compared:
        figure = f"""points = [
    ({screen.view.selection.model!r}, profile.heads({screen.kind!r}), {_column("profile", y, screen.kind)}),
    ({screen.other.name!r}, other.heads({screen.other.kind!r}), {column("other")}),
]
figure = draw_by_depth(points, title={names[y]!r})"""
    else:
        figure = f"""across, up = {column(drawn)}, {_column("profile", y, screen.kind)}
heads = profile.heads({screen.kind!r})
figure = draw_two_numbers(across, up, heads=heads, titles=({title!r}, {names[y]!r}))"""
    draws = "draw_by_depth" if screen.other is not None and not screen.is_compared else "draw_two_numbers"
    return f"""from pathlib import Path

import attnviz.corpus
from attnviz.corpus.pipeline import profile_corpus
from attnviz.corpus.profile import read_profile
from attnviz.figures.profile import {draws}

profile = {_own_lines(screen) if screen.corpus in (OWN, FILE) else _profile_lines(offered(screen.weights)[screen.corpus])}
{other}{figure}
figure.show()
"""


def _profile_lines(listed: Listed) -> str:
    """Python that reads a profile of this server."""
    if listed.is_bundled:
        return f'read_profile(Path(attnviz.corpus.__file__).parent / "bundled" / {listed.name!r})'
    return (
        f"read_profile(Path({f'profiles/{listed.name}'!r}))  # the folder that attnviz corpus profile wrote"
    )


def _own_lines(screen: Screen) -> str:
    """Python that measures the visitor's own texts, which have to be in a file beside it."""
    own = of_session(OwnFile)
    name, column = ("sentences.txt", None) if screen.corpus == OWN else (own.name, own.column)
    of_column = "" if column is None else f", column={column!r}"
    return f"profile_corpus([{name!r}], {screen.view.selection.model!r}, Path('profile'){of_column})"


def _column(profile: str, name: str, kind: Kind) -> str:
    for direction in DIRECTIONS:
        if name.endswith(f" {direction}"):
            relation = name.removesuffix(f" {direction}")
            return f"{profile}.accuracies({relation!r}, {direction!r}, {kind!r})[0]"
    return f"{profile}.numbers({name!r}, {kind!r})"
