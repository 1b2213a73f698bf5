"""Export of the page: the numbers as a table, and Python that draws the same points."""

from functools import partial

from attnviz.corpus.columns import DIRECTIONS
from attnviz.records import Kind
from ui.rooms.many_texts.profiles.offered import OWN, offered
from ui.rooms.many_texts.profiles.own_file import FILE, OwnFile
from ui.rooms.many_texts.profiles.screen import Screen, number_names
from ui.runtime.profiles import Listed
from ui.session import of_session


def as_csv_rows(screen: Screen) -> tuple[list[str], list[list[object]]]:
    """A row for each head with all its numbers, and in a comparison with another corpus the difference with its interval."""
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
            f"{screen.y.name}_difference_{end}": number
            for end, number in zip(("low", "high"), screen.ranked.ends, strict=True)
        }
    for row in rows:
        at = of_kind.get((row[0], row[1], row[2]))
        row += [None if at is None else float(number[at]) for number in compared.values()]
    return [*names, *compared], rows


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
