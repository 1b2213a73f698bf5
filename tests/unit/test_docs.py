"""What docs/, README and the changelog say of the code is there: every file, every name, and every line that is quoted."""

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from attnviz import cli
from ui.choice import parameters
from ui.choice.selection import FIELDS
from ui.page.navigation import PAGES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUOTE = re.compile(r"^`(?P<line>[^`]+)` in `(?P<file>[^`]+)`$", re.MULTILINE)
FOLDERS = "attnviz", "ui", "pages", "tests", "benchmarks", "deploy", "locked", "docs"
FILE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w/.-]*|app\.py|attention\.py)`")
NAME = re.compile(r"\battnviz(?:\.[A-Za-z_]\w*)+")
DOCS = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))),
]


def misquoted(text: str) -> list[str]:
    """Lines that are quoted and do not stand in the file that is named."""
    return [
        one["line"]
        for one in QUOTE.finditer(text)
        if one["line"] not in (ROOT / one["file"]).read_text(encoding="utf-8")
    ]


def unquoted(text: str) -> list[str]:
    """Steps without a line of code."""
    steps = re.split(r"^## (?=\d)", text, flags=re.MULTILINE)[1:]
    return [one.partition("\n")[0] for one in steps if not QUOTE.search(one)]


def missing(text: str) -> list[str]:
    """Files and folders that are named and are not there."""
    return [name for name in FILE.findall(text) if not (ROOT / name).exists()]


def unknown(text: str) -> list[str]:
    """Dotted names of attnviz that are neither a module nor something in one."""
    return [name for name in NAME.findall(text) if not is_known(name)]


def is_known(name: str) -> bool:
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_every_line_of_code_in_the_maths_is_there():
    text = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
    assert unquoted(text) == ["16. Checked"]  # which says how all others are
    assert len(QUOTE.findall(text)) == 19  # some steps have two
    assert [line for line in text.splitlines() if "` in `" in line and not QUOTE.fullmatch(line)] == []
    assert misquoted(text) == []


@pytest.mark.parametrize("name", DOCS)
def test_every_file_that_is_named_is_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert missing(text) == []


@pytest.mark.parametrize("name", DOCS)
def test_every_name_of_attnviz_is_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert unknown(text) == []


def test_a_journey_passes_ten_files_at_most():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    journeys = re.findall(r"^1\. .*?(?=^\D)", text, flags=re.MULTILINE | re.DOTALL)
    lengths = [len(re.findall(r"^\d+\. `", one, flags=re.MULTILINE)) for one in journeys]
    assert len(lengths) == 2 and 5 < max(lengths) <= 10


def rows_of_pages(readme: str) -> list[str]:
    """The pages that README's table names, in its order."""
    table = readme.split("| page | what it answers |")[1].split("\n\n")[0]
    return re.findall(r"^\| ([^|]+?) \|", table, flags=re.MULTILINE)


def test_readme_the_menu_and_the_files_are_the_same_pages():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sorted(rows_of_pages(readme)) == sorted(page.name for page in PAGES)
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "pages").glob("*.py")}
    assert {page.file for page in PAGES} == files | {"attention.py"}


def test_readme_has_every_command():
    commands = {line.split()[1] for line in README.splitlines() if re.match(r"attnviz \w+ ", line)}
    (parsers,) = cli._parser()._subparsers._group_actions
    assert commands == set(parsers.choices)


def test_readme_has_every_variable():
    code = [
        path.read_text(encoding="utf-8")
        for folder in ("attnviz", "ui", "deploy")
        for path in (ROOT / folder).rglob("*.py")
    ]
    read = set(re.findall(r"\bATTNVIZ_[A-Z_]+", "".join(code)))
    assert read <= set(re.findall(r"^\| `(ATTNVIZ_\w+)` \|", README, flags=re.MULTILINE))


def test_the_table_of_links_has_every_choice():
    """Where it fails: `make links`."""
    assert parameters.PAGE.read_text(encoding="utf-8").split(parameters.START)[1].split("\n")[1:-1] == list(
        parameters.table()
    )


def test_every_choice_says_what_it_does():
    assert [name for name, declared in FIELDS.items() if not declared.help] == []


def test_checks_can_fail():
    assert misquoted("`no such line` in `attnviz/errors.py`") == ["no such line"]
    assert unquoted("# All\n## 1. One\n`a` in `b`\n## 2. Two\nwords") == ["2. Two"]
    assert missing("`attnviz/nothing.py` and `attnviz/errors.py`") == ["attnviz/nothing.py"]
    for folder in FOLDERS:
        assert (ROOT / folder).is_dir()
        assert missing(f"`{folder}/no-thing.py`") == [f"{folder}/no-thing.py"]
    assert unknown("attnviz.errors, attnviz.Trace.no_method and `attnviz.nothing`") == [
        "attnviz.Trace.no_method",
        "attnviz.nothing",
    ]
    assert rows_of_pages("| page | what it answers |\n|---|---|\n| One | Why? |\n\n| no | row |") == ["One"]


def test_readme_asks_each_page_s_question_as_the_page_does():
    rows = {
        row.split(" | ")[0][2:]: row.split(" | ")[1] for row in README.splitlines() if row.startswith("| ")
    }
    assert {one.name: rows[one.name][: len(one.question)] for one in PAGES} == {
        one.name: one.question for one in PAGES
    }
