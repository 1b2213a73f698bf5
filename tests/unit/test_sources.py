"""Whoever is named on a page is named so that they can be found."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    ROOT / "app.py",
    ROOT / "attention.py",
    *sorted((ROOT / "pages").glob("*.py")),
    *sorted((ROOT / "ui").rglob("*.py")),
]
NAMED = re.compile(r"(?:et al\.|and [A-Z]\w+) (?:\d{4})(.{0,24})")
FOUND = re.compile(r"^, (?:arXiv:\d{4}\.\d{4,5}|doi:10\.|jmlr\.org)")


def shown(node):
    """The texts that a module can put on screen, the parts of one sentence joined."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(part.value for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from shown(child)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_work_that_is_named_has_its_year_and_number(path):
    for text in shown(ast.parse(path.read_text(encoding="utf-8"))):
        for rest in NAMED.findall(text):
            assert FOUND.match(rest), text
