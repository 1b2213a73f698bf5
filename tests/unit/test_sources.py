"""Works that a page cites can be looked up: each has its year and its arXiv number, DOI, or address of its journal."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.findings import assert_none

ROOT = Path(__file__).parents[2]
FILES = [
    ROOT / "app.py",
    ROOT / "attention.py",
    *sorted((ROOT / "pages").glob("*.py")),
    *sorted((ROOT / "ui").rglob("*.py")),
]
CITATION = re.compile(r"(?:et al\.|and [A-Z]\w+) \d{4}(?=(?P<rest>.{0,40}))")
IDENTIFIER = re.compile(r"^, (?:arXiv:\d{4}\.\d{4,5}|doi:10\.|jmlr\.org|transformer-circuits\.pub/\d{4}/\w)")


def shown_texts(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of everything that a module can put on screen, the parts of one sentence joined."""
    if isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(part.value for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from shown_texts(child)


def citations(source: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Line and match of every work that a module's texts cite."""
    for line, text in shown_texts(ast.parse(source)):
        for citation in CITATION.finditer(text):
            yield line, citation


def without_identifier(source: str) -> list[str]:
    """ "line: citation" of every work that nobody could look up."""
    return [
        f"{line}: {citation.string[max(citation.start() - 20, 0) : citation.end('rest')]!r} has no arXiv number, DOI or journal"
        for line, citation in citations(source)
        if not IDENTIFIER.match(citation["rest"])
    ]


def test_every_work_that_a_page_cites_has_its_identifier():
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
    assert_none(
        f"{file}:{finding}" for file, source in sources.items() for finding in without_identifier(source)
    )
    assert sum(1 for source in sources.values() for _ in citations(source)) > 20  # the check reads them


def test_check_can_fail():
    wrong = {
        "a name alone": '"Clark et al. 2019 count them."',
        "another number": '"Abnar and Zuidema 2020, section 3"',
        "after a value": 'f"{share} as in Vig and Belinkov 2019; more"',
        "in parts": '("Kobayashi et al. " "2020, EMNLP")',
        "a title": '"Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”"',
        "a journal alone": '"Elhage et al. 2021, transformer-circuits.pub"',
        "an arXiv number too short": '"Vaswani et al. 2017, arXiv:1706.037"',
    }
    right = {
        "arXiv": '"Vaswani et al. 2017, arXiv:1706.03762"',
        "DOI": '"Okabe and Ito 2008, doi:10.1000/1"',
        "journal": 'f"{n} as in van der Maaten and Hinton 2008, jmlr.org/papers/v9"',
        "journal of a year": '"Elhage et al. 2021, transformer-circuits.pub/2021/framework; more"',
        "no citation": '"query and Key 12"',
    }
    assert_none(f"not noticed: {case}" for case, source in wrong.items() if not without_identifier(source))
    assert_none(f"refused: {case}" for case, source in right.items() if without_identifier(source))
