"""All heads of a profile: by two numbers as points, and ranked by one of them."""

from typing import Any

import numpy as np
import streamlit as st

from attnviz.corpus.naming import names_of
from attnviz.corpus.relations import DIRECTIONS
from attnviz.figures.numbers import cell_text, power_text
from attnviz.figures.profile import draw_two_numbers
from ui.choice import state, widgets
from ui.components.ranked_list import Row, ranked_list
from ui.page.chart import chart
from ui.page.view import View
from ui.sections.many_sentences.lines import own_lines
from ui.sections.profiles.offered import OWN, corpora, corpus_name
from ui.sections.profiles.screen import Number, Screen, number_names
from ui.words.literal import literal

CHART = "profile_heads"
MOST_ROWS = 24


def controls(screen: Screen) -> None:
    """The texts, the two numbers, and the search."""
    found = corpora(screen.view.selection.model)
    names = number_names(screen.profile, screen.kind)
    with st.container(horizontal=True, vertical_alignment="bottom", key="profile_controls"):
        own_lines()
        if len(found) > 1:
            st.selectbox(
                **widgets.field("profile_corpus", options=list(found), format_func=corpus_name, width=190)
            )
            others = ["none", *(one for one in found if one not in (OWN, screen.corpus))]
            st.selectbox(
                **widgets.field(
                    "profile_other",
                    options=others,
                    format_func=lambda one: "Nothing" if one == "none" else corpus_name(one),
                    width=190,
                )
            )
        there = screen.view.selection.but(profile_x=screen.x.name, profile_y=screen.y.name)
        for field in ("profile_y", "profile_x")[: 1 if screen.is_compared else 2]:
            st.selectbox(
                **widgets.field(field, there, options=list(names), format_func=names.__getitem__, width=250)
            )
        st.text_input(**widgets.field("profile_search", width=190))


def points(screen: Screen) -> None:
    """A point for each head."""
    chart(
        draw_two_numbers(
            screen.x.means,
            screen.y.means,
            heads=screen.heads,
            titles=(screen.x.title, screen.y.title),
            ends=screen.y.ends,
            picked=screen.head,
            shown=screen.kept,
            theme=screen.view.theme,
        ),
        key=CHART,
        alt=f"{screen.y.title} of every head by {screen.x.title}; {screen.head.words} is marked",
        on_pick=_pick,
        name="Heads; select one",
    )


def ranking(screen: Screen) -> None:
    """The heads with the largest number."""
    st.markdown(f"**{literal(screen.ranked.title)}**")
    if not screen.kept:
        st.caption("No head is called so. Clear the search to see all heads.")
        return
    shown = screen.kept[:MOST_ROWS]
    means = {head: float(screen.ranked.means[screen.heads.index(head)]) for head in shown}
    largest = max((abs(one) for one in means.values()), default=0.0) or 1.0
    ranked_list(
        [
            Row(
                text=head.title,
                amount=with_interval(screen.ranked, screen.heads.index(head)),
                length=means[head] / largest,
                picked=head == screen.head,
            )
            for head in shown
        ],
        name=f"Heads, ranked by {screen.ranked.title}; select one",
        on_pick=lambda row: _pick([shown[row].layer, shown[row].head]),
        theme=screen.view.theme,
        key="profile_ranking",
        scrolls=True,
    )
    said = f"The first {len(shown)} of {len(screen.kept)} heads." if len(screen.kept) > len(shown) else ""
    if screen.is_compared and (apart := n_apart(screen.ranked)) is not None:
        said = f"{apart} of {len(screen.heads)} heads differ by more than their intervals. {said}"
    if said:
        st.caption(said)


def n_apart(difference: Number) -> int | None:
    """How many heads have a difference whose interval is without 0; None where it has no interval."""
    if difference.ends is None:
        return None
    low, high = difference.ends
    return int(((low > 0) | (high < 0)).sum())


def with_interval(number: Number, at: int) -> str:
    """A number of a head with its interval."""
    mean = cell_text(float(number.means[at]))
    if number.ends is None or not np.isfinite(number.ends[0][at]):
        return mean
    low, high = (cell_text(float(one[at])) for one in number.ends)
    return f"{mean} ({low} to {high})"


def headline(screen: Screen) -> str:
    """What the selected head is called, its number, and where it stands."""
    names = names_of(screen.profile, screen.head, screen.kind)
    called = f"{screen.head.title}: {', '.join(names)}" if names else f"{screen.head.title} has no name"
    at = screen.at
    if not np.isfinite(screen.y.means[at]):
        return f"{called}. {screen.y.title} is not defined for it"
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
    said = f"Means over {profile.n_text:,} texts with {profile.n_token:,} tokens; {interval}. "
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
        said += f" {profile.n_failed:,} texts could not be read."
    return said


def none(view: View) -> None:
    """What is said where the model has no profile; nothing while one is being made."""
    own_lines()
    if corpora(view.selection.model):
        return
    st.markdown(
        f"There is no profile of {literal(view.selection.model)}. A profile measures every head over many texts; make one with"
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
    """A row for each head with all its numbers."""
    table = screen.profile.table
    names = [
        name
        for name in table.column_names
        if name not in ("distances", "positions", "relations", "token_pairs", "part_pairs")
    ]
    return names, [[row[name] for name in names] for row in table.select(names).to_pylist()]


def python_lines(screen: Screen) -> str:
    """Python that reads a profile and draws the points at the numbers that are shown."""
    names = number_names(screen.profile, screen.kind)
    x, y = (one.name for one in (screen.x, screen.y))
    return f"""from pathlib import Path

from attnviz.corpus.profile import read_profile
from attnviz.figures.profile import draw_two_numbers

profile = read_profile(Path("profiles/mine"))  # the folder that attnviz corpus profile wrote
across, up = {_column(x, screen)}, {_column(y, screen)}
heads = profile.heads({screen.kind!r})
figure = draw_two_numbers(across, up, heads=heads, titles=({names[x]!r}, {names[y]!r}))
figure.show()
"""


def _column(name: str, screen: Screen) -> str:
    for direction in DIRECTIONS:
        if name.endswith(f" {direction}"):
            relation = name.removesuffix(f" {direction}")
            return f"profile.accuracies({relation!r}, {direction!r}, {screen.kind!r})[0]"
    return f"profile.numbers({name!r}, {screen.kind!r})"
