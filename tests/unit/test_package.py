"""What the wheel asks for: ranges that hold what is run, for every import, on every Python that make takes.

Each check is itself checked: it has to fail on a wrong copy of what it guards.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.findings import assert_none

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-corpus.txt").read_text()
WIDGET = Path("attnviz", "viewer", "widget.py")
OF_UMAP = {Path("attnviz", "maps", name) for name in ("layouts.py", "tsne_compiled.py")}
# spaCy labels texts that bring no labels, for whoever has installed it.
ASKED_FOR_WHERE_USED = {"spacy"}
OF_THE_HOUSE = {"attnviz", "ui", "pages", "app", "attention"}
TESTED_MINORS = range(11, 15)
"""Minor versions of Python 3 for which every package of the lock has wheels."""


def ranges(*names: str) -> dict[str, SpecifierSet]:
    """Package to versions, of what the wheel needs always and of these extras."""
    lines = [
        *PROJECT["dependencies"],
        *(line for name in names for line in PROJECT["optional-dependencies"][name]),
    ]
    return {canonicalize_name(Requirement(line).name): Requirement(line).specifier for line in lines}


def pins(text: str) -> dict[str, str]:
    """Package to version, as a requirements file has them."""
    return {
        canonicalize_name(name): version
        for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    }


def outside(pinned: dict[str, str], asked: dict[str, SpecifierSet]) -> Iterator[str]:
    """Packages in use that are not required or out of range, and required ones not in use."""
    for name, version in pinned.items():
        if name not in asked:
            yield f"the wheel does not ask for {name}"
        elif version not in asked[name]:
            yield f"{name} {version} is not in {asked[name]}"
    yield from (f"{name} is asked for and not run" for name in asked.keys() - pinned.keys())


def closed(asked: dict[str, SpecifierSet]) -> Iterator[str]:
    """Ranges that take one version alone, or that have no end."""
    for name, versions in asked.items():
        signs = {part.operator for part in versions}
        if "==" in signs or not {">=", "<"} <= signs:
            yield f"{name}{versions} is no range"


def distributions(trees: Iterable[ast.Module]) -> set[str]:
    """The packages that modules import, those aside that are only for type checkers."""
    packages = packages_distributions()
    modules = set()
    for tree in trees:
        for_types = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if id(node) in for_types:
                continue
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(str(node.module).partition(".")[0])
    modules -= {*sys.stdlib_module_names, *OF_THE_HOUSE, *ASKED_FOR_WHERE_USED}
    return {canonicalize_name(packages.get(module, [module])[0]) for module in modules}


def trees(*patterns: str) -> Iterator[ast.Module]:
    for pattern in patterns:
        for path in ROOT.glob(pattern):
            yield ast.parse(path.read_text(encoding="utf-8"))


WHERE_THERE = {"pandas", "peft"}
"""What the library imports only where it is: pandas for `Result.frame`, peft where a model has its adapters."""


def test_what_is_run_lies_in_the_ranges():
    assert_none(outside(pins(PINS), ranges("app", "corpus", "umap")))


def test_every_range_is_one():
    assert_none(closed(ranges("app")))
    assert_none(closed(ranges("corpus", "notebook", "umap")))


def test_every_import_is_asked_for():
    own = [path.relative_to(ROOT) for path in ROOT.glob("attnviz/**/*.py")]
    core = [ROOT / path for path in own if "corpus" not in path.parts and path not in {WIDGET, *OF_UMAP}]
    parts = {
        "the library": (map(ast.parse, (path.read_text(encoding="utf-8") for path in core)), ()),
        "its UMAP": (trees(*map(str, OF_UMAP)), ("umap",)),
        "its widget": (trees(str(WIDGET)), ("notebook",)),
        "its corpus": (trees("attnviz/corpus/*.py"), ("corpus",)),
        "the app": (trees("ui/**/*.py", "pages/*.py", "app.py", "attention.py"), ("app",)),
    }
    assert_none(
        f"{part} imports {package}, which the wheel does not ask for"
        for part, (sources, extras) in parts.items()
        for package in sorted(distributions(sources) - ranges(*extras).keys() - WHERE_THERE)
    )


def test_nothing_is_asked_for_that_is_not_imported():
    imported = distributions(trees("attnviz/**/*.py", "ui/**/*.py", "pages/*.py", "app.py"))
    assert sorted(ranges("app", "corpus", "notebook", "umap").keys() - imported) == []


def test_all_is_every_extra():
    extras = PROJECT["optional-dependencies"]
    (line,) = extras["all"]
    assert Requirement(line).name == PROJECT["name"]
    assert Requirement(line).extras == extras.keys() - {"all"}


def test_make_takes_the_same_pythons():
    versions = SpecifierSet(PROJECT["requires-python"])
    told = re.findall(r"Python :: 3\.(\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert [int(minor) for minor in told] == list(TESTED_MINORS)
    assert [minor for minor in range(8, 30) if f"3.{minor}.0" in versions] == list(TESTED_MINORS)
    makefile = (ROOT / "Makefile").read_text()
    (cases,) = re.findall(r" in (3\.\d+(?:\|3\.\d+)*)\) chosen=", makefile, re.MULTILINE)
    assert cases == "|".join(f"3.{minor}" for minor in TESTED_MINORS)
    (tried,) = re.findall(r"^PYTHON \?= (.*)$", makefile, re.MULTILINE)
    assert tried.split() == ["python3", *(f"python3.{minor}" for minor in reversed(TESTED_MINORS))]


def test_checks_can_fail():
    asked = {"a": SpecifierSet(">=1,<2"), "b": SpecifierSet("==1.0"), "c": SpecifierSet(">=1")}
    assert list(outside(pins("A==2.0\nd==1\nb==1.0  # why\n"), asked)) == [
        "a 2.0 is not in <2,>=1",
        "the wheel does not ask for d",
        "c is asked for and not run",
    ]
    assert list(closed(asked)) == ["b==1.0 is no range", "c>=1 is no range"]
    code = "import json, numpy.linalg\nfrom PIL import Image\ndef late():\n    import yaml\nif TYPE_CHECKING:\n    import torch"
    assert distributions([ast.parse(code)]) == {"numpy", "pillow", "pyyaml"}
