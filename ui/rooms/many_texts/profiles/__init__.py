"""What does each head do over many texts? All heads by their numbers, and one of them with examples."""

from functools import partial

from attnviz.corpus.columns import DIRECTIONS
from attnviz.records import Kind
from attnviz.records.table import table_csv
from ui.part import Part, Picture, Row, Sheet
from ui.rooms.many_texts.own_corpora import FILE, OWN, OwnFile
from ui.rooms.many_texts.profiles import one_head, overview
from ui.rooms.many_texts.profiles.measured_heads import MOST_TEXTS, Screen, number_names, offered
from ui.rooms.many_texts.profiles.shuffled_texts import (
    KEY,
    N_RANKED,
    found_changes,
    shuffled_texts,
)
from ui.runtime.profiles import Listed
from ui.session import of_session
from ui.words.literal import literal


def as_csv_rows(screen: Screen) -> tuple[list[str], list[list[object]]]:
    """A row for each head with all its numbers, of shuffled rows too once known, and in a comparison the difference with its interval."""
    table, left_out = (
        screen.profile.table,
        ("distances", "positions", "relations", "token_pairs", "part_pairs"),
    )
    names = [name for name in table.column_names if name not in left_out]
    rows = [[row[name] for name in names] for row in table.select(names).to_pylist()]
    if (found := found_changes(screen)) is not None:
        numbers = {
            "row_change": found.heads,
            "row_change_sd": found.spread,
            "row_change_texts": found.n_texts,
        }
        for row in rows:
            head = (row[1], row[2])
            row += [number[head].item() if row[0] == found.kind else None for number in numbers.values()]
        names += numbers
    if not screen.is_compared or screen.other is None:
        return names, rows
    of_kind = {(screen.kind, *head): at for at, head in enumerate(screen.heads)}
    y, compared = screen.y.name, [screen.other.number.means, screen.ranked.means, *(screen.ranked.ends or ())]
    titles = [f"{y}_other", f"{y}_difference", f"{y}_difference_low", f"{y}_difference_high"]
    for row in rows:
        at = of_kind.get((row[0], row[1], row[2]))
        row += [None if at is None else float(number[at]) for number in compared]
    return [*names, *titles[: len(compared)]], rows


def python_lines(screen: Screen) -> str:
    """Python that reads the profile, or makes it from the visitor's own texts, and draws the shown points."""
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
from attnviz.figures.heads import {draws}

profile = {_own_lines(screen) if screen.corpus in (OWN, FILE) else _profile_lines(offered(screen.weights)[screen.corpus])}
{other}{figure}
figure.show()
{_shuffled_lines(screen)}"""


def _shuffled_lines(screen: Screen) -> str:
    """Python that shuffles the same rows, and lists the heads in which they matter most; empty until they are known."""
    if found_changes(screen) is None:
        return ""
    if screen.corpus in (OWN, FILE):
        name, column = _own_file(screen)
        needs = "from attnviz.corpus.texts import Entry, read_entries"
        read = f"[entry.text for entry in read_entries(Path({name!r}){column}) if isinstance(entry, Entry)]"
    else:
        needs, read = "from attnviz.maps.collection import bundled", "bundled().splitlines()"
    return f"""
{needs}
from attnviz.effects.rows_over_texts import mean_shuffled_heads

model = attnviz.load_model({screen.view.selection.model!r})
texts = {read}[:{MOST_TEXTS}]
shuffled = mean_shuffled_heads(model, texts, kind={screen.kind!r})
for head in shuffled.ranked()[:{N_RANKED}]:
    print(head.words, shuffled.heads[head], shuffled.spread[head])
"""


def _profile_lines(listed: Listed) -> str:
    """Python that reads a profile of this server."""
    if listed.is_bundled:
        return f'read_profile(Path(attnviz.corpus.__file__).parent / "bundled" / {listed.name!r})'
    return (
        f"read_profile(Path({f'profiles/{listed.name}'!r}))  # the folder that attnviz corpus profile wrote"
    )


def _own_lines(screen: Screen) -> str:
    """Python that measures the visitor's own texts, from a file beside the script."""
    name, column = _own_file(screen)
    return f"profile_corpus([{name!r}], {screen.view.selection.model!r}, Path('profile'){column})"


def _own_file(screen: Screen) -> tuple[str, str]:
    """The name of the visitor's own file, and its column as a further argument."""
    if screen.corpus == OWN:
        return "sentences.txt", ""
    own = of_session(OwnFile)
    return own.name, "" if own.column is None else f", column={own.column!r}"


def _column(profile: str, name: str, kind: Kind) -> str:
    for direction in DIRECTIONS:
        if name.endswith(f" {direction}"):
            relation = name.removesuffix(f" {direction}")
            return f"{profile}.accuracies({relation!r}, {direction!r}, {kind!r})[0]"
    return f"{profile}.numbers({name!r}, {kind!r})"


PART = Part(
    name="Profiles",
    address="profiles",
    question="What does each head do over many texts?",
    longest=8192,
    terms=("Shuffled row",),
    sheets=(
        Sheet(
            screen=overview.screen_of,
            finding=lambda screen: literal(overview.headline(screen)),
            rows=(
                overview.controls,
                Row(
                    Picture(
                        overview.CHART,
                        "Heads",
                        "a point for each head: means over many texts, of two models by the depth of the layer",
                        overview.points,
                    ),
                    overview.ranking,
                    widths=(3, 2),
                ),
                one_head.places,
                Row(one_head.relations, one_head.pairs),
                one_head.examples,
                Picture(
                    KEY,
                    "Rows shuffled over texts",
                    "cells: mean change while a row of each head is shuffled among its keys, over the first texts",
                    shuffled_texts,
                ),
            ),
            numbers="Numbers of all heads",
            csv=lambda screen: table_csv(*as_csv_rows(screen)),
            python=python_lines,
        ),
    ),
)
