"""The table of docs/links.md: every parameter of a link, from the declarations of the selection.

``python -m ui.choice.parameters`` writes it; a test compares it with the declarations.
"""

from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path

from ui.choice.fields import written
from ui.choice.selection import FIELDS, PLACES

PAGE = Path(__file__).parents[2] / "docs" / "links.md"
START = "<!-- make links -->"


def table() -> Iterator[str]:
    """The table, line by line."""
    yield "| parameter | holds | default | what it does |"
    yield "|---|---|---|---|"
    for name, declared in FIELDS.items():
        usual = "" if PLACES[name].usual is MISSING else written(PLACES[name].usual)
        cells = [f"`{name}`", declared.words, f"`{usual}`" if usual else "", declared.help]
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def main() -> None:
    """Writes the table below its mark."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.split(START)[0] + "\n".join([START, *table(), ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
