"""What is written from the records: docs/parts.md's table of parts, docs/links.md's table of choices, and the scripts of the pages.

``make written`` does; a test compares all of it with the records.
"""

from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path

from ui.choice.fields import written
from ui.choice.selection import FIELDS, PLACES
from ui.rooms import ROOMS

ROOT = Path(__file__).parents[1]


def parts() -> Iterator[str]:
    """The table of docs/parts.md, line by line."""
    yield "| room | part | what it answers | texts of up to |"
    yield "|---|---|---|---|"
    for room in ROOMS:
        for part in room.parts:
            longest = f"{part.longest:,} tokens" if part.shows_text else ""
            yield f"| {room.name} | {part.name} | {part.question} | {longest} |"


def links() -> Iterator[str]:
    """The table of docs/links.md, line by line."""
    yield "| parameter | holds | default | what it does |"
    yield "|---|---|---|---|"
    for name in sorted(FIELDS):
        declared = FIELDS[name]
        usual = "" if PLACES[name].usual is MISSING else written(PLACES[name].usual)
        cells = [f"`{name}`", declared.words, f"`{usual}`" if usual else "", declared.help]
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def files() -> Iterator[tuple[Path, str]]:
    """Every file that is written, whole or in part, as it is to be."""
    for name, table in (("docs/parts.md", parts), ("docs/links.md", links)):
        path = ROOT / name
        before, rest = path.read_text(encoding="utf-8").split("<!-- make written -->\n")
        after = rest.split("\n\n", 1)[1] if "\n\n" in rest else ""
        yield path, "\n".join([f"{before}<!-- make written -->", *table(), "", after])
    for room in ROOMS:
        for part in room.parts:
            script = (
                f'"""The page “{part.place}”."""\n\nfrom ui.renderer import render\n\nrender("{part.name}")\n'
            )
            yield ROOT / part.file, script


def main() -> None:
    """Writes them, and removes the scripts of parts that are no more."""
    there = dict(files())
    for path, text in there.items():
        path.write_text(text, encoding="utf-8")
    for path in set((ROOT / "pages").glob("*.py")) - set(there):
        path.unlink()


if __name__ == "__main__":
    main()
