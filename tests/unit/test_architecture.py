"""The house: who may import whom, what an import costs, and that public names and errors are documented.

Each check is itself checked: on a wrong copy of what it guards it has to fail.
"""

import ast
import importlib
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import attnviz
from attnviz import errors

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# From the ground up. A part imports from itself and from the floors beneath, never from its neighbours or from above,
# not even for type checkers.
FLOORS = (
    ("attnviz.errors", "attnviz.maths"),
    ("attnviz.records",),
    ("attnviz.model",),
    ("attnviz.heads", "attnviz.maps", "attnviz.effects", "attnviz.cost"),
    ("attnviz.figures",),
    ("attnviz.bundle",),
    ("attnviz.cli",),
    ("ui.session", "ui.limits"),
    ("ui.words", "ui.components", "ui.streamlit_fixes"),
    ("ui.work",),
    ("ui.choice",),
    ("ui.page",),
    ("ui.export",),
    ("ui.sections",),
    ("pages", "attention", "app"),
)
# Part -> libraries that it does without; for type checkers alone they do not count.
WITHOUT = {
    "attnviz": ("streamlit",),
    "attnviz.errors": ("numpy", "torch", "transformers", "plotly"),
    "attnviz.records": ("torch", "transformers", "plotly"),
    "attnviz.maths": ("transformers", "plotly"),
    "attnviz.maths.attention": ("numpy",),
    "attnviz.model": ("plotly", "sklearn"),
    "attnviz.heads": ("torch", "transformers", "plotly"),
    "attnviz.maps": ("transformers", "plotly"),
    "attnviz.effects": ("transformers", "plotly"),
    "attnviz.cost": ("transformers", "plotly"),
    "attnviz.figures": ("torch", "transformers", "sklearn", "scipy"),
    "attnviz.bundle": ("torch", "transformers", "pickle"),
    "ui": ("torch", "transformers"),
    "pages": ("torch", "transformers", "pages"),
    "attention": ("torch", "transformers"),
    "app": ("torch", "transformers", "attnviz"),
}


def modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """Name and syntax tree of every module of the house."""
    for path in sorted(
        [
            root / "app.py",
            root / "attention.py",
            *(path for name in ("attnviz", "ui", "pages") for path in (root / name).rglob("*.py")),
        ]
    ):
        if path.exists():
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.AST, *, types: bool = True) -> set[str]:
    """Full names of what a module imports; "from a import b" counts as a and as a.b.

    Args:
        types: whether imports for type checkers alone count.
    """
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def place(name: str) -> tuple[int, str] | None:
    """Floor and part of a module; None for what is not of the house, and for the public names in `attnviz` itself."""
    return next(
        ((floor, part) for floor, parts in enumerate(FLOORS) for part in parts if within(name, part)), None
    )


def wrong_imports(root: Path) -> list[str]:
    """ "module imports what": every import against the direction of the house, and of a library it does without."""
    found = []
    for name, tree in modules(root):
        here = place(name)
        for imported in sorted(imports(tree)):
            there = place(imported)
            if here and there and here[1] != there[1] and there[0] >= here[0]:
                found.append(f"{name} imports {imported}")
        without = [library for part, given in WITHOUT.items() if within(name, part) for library in given]
        found += [
            f"{name} imports {imported}"
            for imported in sorted(imports(tree, types=False))
            if any(within(imported, library) for library in without)
        ]
    return found


def circles(root: Path) -> list[tuple[str, ...]]:
    """Modules that import each other, directly or through others, for types or inside functions included."""
    trees = dict(modules(root))
    graph = {
        name: {one for one in imports(tree) if one in trees and one != name} for name, tree in trees.items()
    }
    found: list[tuple[str, ...]] = []
    while graph:
        free = [name for name, needed in graph.items() if not needed & graph.keys()]
        if not free:  # of what is left, every module imports another one that is left
            wanted = set().union(*graph.values())
            if not (unwanted := graph.keys() - wanted):
                found.append(tuple(sorted(graph)))
                break
            free = list(unwanted)
        for name in free:
            del graph[name]
    return found


class TestDirection:
    def test_of_imports(self):
        assert wrong_imports(ROOT) == []

    def test_has_no_circle(self):
        assert circles(ROOT) == []

    def test_is_that_of_every_module(self):
        """A new folder needs a floor; only the public names stand on none."""
        without = [name for name, _ in modules(ROOT) if place(name) is None]
        assert without == ["attnviz", "ui"]

    def test_is_checked_on_the_parts_there_are(self):
        names = {name for name, _ in modules(ROOT)}
        for part in {*WITHOUT, *(part for parts in FLOORS for part in parts)}:
            assert any(within(name, part) for name in names), part

    @pytest.mark.parametrize(
        ("module", "line", "found"),
        [
            ("attnviz/model/trace.py", "import streamlit as st", "streamlit"),
            ("attnviz/model/loading.py", "from ui.work.cache import load", "ui.work.cache"),
            ("attnviz/figures/heatmap.py", "import torch", "torch"),
            ("attnviz/figures/heatmap.py", "def draw():\n    from torch import nn", "torch.nn"),
            (
                "attnviz/figures/page.py",
                "from attnviz.bundle.writing import Bundle",
                "attnviz.bundle.writing",
            ),
            ("attnviz/records/tokens.py", "from attnviz import figures", "attnviz.figures"),
            ("attnviz/records/tokens.py", "from attnviz.model.trace import Trace", "attnviz.model.trace"),
            (
                "attnviz/records/tokens.py",
                "if TYPE_CHECKING:\n    from attnviz.model.trace import Trace",
                "attnviz.model.trace",
            ),
            ("attnviz/model/verification.py", "from attnviz.figures import draw_errors", "attnviz.figures"),
            ("attnviz/heads/flow.py", "from attnviz.maps.spaces import SPACES", "attnviz.maps.spaces"),
            ("attnviz/maths/attention.py", "from transformers import AutoModel", "transformers"),
            ("attnviz/maths/attention.py", "from attnviz.records import Kind", "attnviz.records"),
            ("ui/work/cache.py", "import app", "app"),
            ("ui/work/cache.py", "from ui.choice import state", "ui.choice.state"),
            ("ui/page/frame.py", "from ui.sections.pair import pick_key", "ui.sections.pair"),
            ("ui/words/literal.py", "from ui.components import anchor", "ui.components.anchor"),
            ("pages/verification.py", "import torch", "torch"),
            ("attention.py", "from pages import verification", "pages.verification"),
            ("app.py", "import attnviz", "attnviz"),
        ],
    )
    def test_check_can_fail(self, module, line, found, tmp_path):
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).write_text(line, encoding="utf-8")
        name = module.removesuffix(".py").replace("/", ".")
        assert f"{name} imports {found}" in wrong_imports(tmp_path)

    def test_check_for_circles_can_fail(self, tmp_path):
        lines = {
            "one": "from attnviz.model import two",
            "two": "def late():\n    from attnviz.model.three import name",
            "three": "if TYPE_CHECKING:\n    from attnviz.model.one import name",
            "above": "from attnviz.model.one import name",
            "beneath": "",
        }
        (tmp_path / "attnviz" / "model").mkdir(parents=True)
        for name, line in lines.items():
            (tmp_path / "attnviz" / "model" / f"{name}.py").write_text(line, encoding="utf-8")
        assert circles(tmp_path) == [("attnviz.model.one", "attnviz.model.three", "attnviz.model.two")]

    @pytest.mark.parametrize(
        ("module", "line"),
        [
            (
                "attnviz/figures/heatmap.py",
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
            ),
            ("attnviz/figures/heatmap.py", "from attnviz.figures.theme import THEMES"),
            ("attnviz/model/trace.py", "def weights():\n    from attnviz.maths.attention import softmax"),
            ("ui/work/cache.py", "import attnviz\nimport streamlit"),
            ("attention.py", "from attnviz.figures import draw_heatmap"),
        ],
    )
    def test_check_lets_pass_what_is_right(self, module, line, tmp_path):
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).write_text(line, encoding="utf-8")
        assert wrong_imports(tmp_path) == []


HEAVY = ("torch", "transformers", "streamlit")


def loaded_by(statement: str) -> set[str]:
    """Which of the heavy libraries a fresh Python has loaded after a statement."""
    listed = f"json.dumps([name for name in {HEAVY} if name in sys.modules])"
    return set(json.loads(printed(f"import json, sys; {statement}; print({listed})")))


def printed(code: str) -> str:
    """What a fresh Python prints."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=120
    )
    return result.stdout.strip()


def imports_before_ui(root: Path) -> list[str]:
    """The import statements of all screens that stand before their first one of `ui`."""
    found = []
    for name, tree in modules(root):
        if name in ("app", "attention") or within(name, "pages"):
            statements = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
            of_ui = [any(within(imported, "ui") for imported in imports(one)) for one in statements]
            found += [ast.unparse(one) for one in statements[: of_ui.index(True)]]
    return found


class TestImport:
    @pytest.mark.parametrize(
        "statement",
        [
            "import attnviz",
            "import attnviz; dir(attnviz)",
            "import attnviz; attnviz.AttnvizError; attnviz.offers",
            "import attnviz.records, attnviz.model.trace, attnviz.model.tokenization, attnviz.model.catalogue",
            "import attnviz.maps.projection",
            "import attnviz.figures",
            "import attnviz; attnviz.figures",
        ],
    )
    def test_loads_no_heavy_library(self, statement):
        assert loaded_by(statement) == set()

    def test_of_the_core_does_not_load_streamlit(self):
        assert loaded_by("import attnviz; attnviz.load_model; attnviz.verify") == {"torch", "transformers"}

    def test_of_the_mathematics_does_not_load_transformers(self):
        assert loaded_by("import attnviz.maths.attention") == {"torch"}

    def test_of_a_screen_does_not_load_torch_before_ui(self):
        """`ui` says how the threads of torch wait, which OpenMP reads once."""
        assert "torch" not in loaded_by("; ".join(imports_before_ui(ROOT)))

    def test_of_ui_says_how_threads_wait(self, monkeypatch):
        monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
        assert printed("import ui, os; print(os.environ['GOMP_SPINCOUNT'])") == "10000"

    def test_of_streamlit_does_not_collect_garbage_after_every_run(self):
        """A full collection holds up all visitors; the name of the option is Streamlit's and may change."""
        assert (
            printed("from streamlit import config; print(config.get_option('runner.postScriptGC'))")
            == "False"
        )

    @pytest.mark.parametrize("library", HEAVY)
    def test_check_can_fail(self, library):
        assert library in loaded_by(f"import attnviz, {library}")


def is_documented(thing: object) -> bool:
    """Whether a docstring was written; dataclasses generate one, their signature."""
    written = (getattr(thing, "__doc__", None) or "").strip()
    return bool(written) and not written.startswith(f"{getattr(thing, '__name__', '')}(")


def public_parts(name: str) -> Iterator[tuple[str, object]]:
    """A public name, and the methods and properties of a public class."""
    thing = getattr(attnviz, name)
    yield name, thing
    if inspect.isclass(thing):
        for part, value in vars(thing).items():
            if not part.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                yield f"{name}.{part}", value


class TestPublicNames:
    @pytest.mark.parametrize("name", attnviz.__all__)
    def test_are_there_and_documented(self, name):
        undocumented = [part for part, thing in public_parts(name) if not is_documented(thing)]
        assert undocumented == []

    def test_are_listed(self):
        assert set(attnviz.__all__) <= set(dir(attnviz))
        assert len(set(attnviz.__all__)) == len(attnviz.__all__)

    def test_an_unknown_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="No attnviz attribute nothing"):
            attnviz.nothing  # noqa: B018

    def test_check_can_fail(self):
        class Undocumented:
            pass

        Undocumented.__doc__ = "Undocumented(*, ids: int)"
        assert not is_documented(Undocumented)
        assert not is_documented(lambda: None)


def error_classes() -> list[type[errors.AttnvizError]]:
    """All errors below AttnvizError, however deep."""
    found, waiting = [], [errors.AttnvizError]
    while waiting:
        waiting += (below := waiting.pop().__subclasses__())
        found += below
    return [one for one in found if one.__module__.startswith("attnviz")]


def drawn_tree(docstring: str) -> dict[str, str | None]:
    """Names in a drawn tree, and what each says it also is."""
    lines = re.findall(r"[├└]── (\w+)(?: +\(also (\w+)\))?", docstring)
    return {name: also or None for name, also in lines}


class TestErrors:
    def test_the_tree_that_is_drawn_is_the_tree_that_is(self):
        builtin = {
            one.__name__: next(
                (base.__name__ for base in one.__bases__ if base.__module__ == "builtins"), None
            )
            for one in error_classes()
        }
        assert drawn_tree(errors.__doc__) == builtin

    @pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
    def test_each_is_documented_and_public(self, error):
        assert is_documented(error)
        assert error.__doc__ != error.__base__.__doc__
        assert getattr(attnviz, error.__name__) is error
        assert error.__name__ in attnviz.__all__

    def test_check_can_fail(self):
        assert drawn_tree("├── OneError   (also ValueError)  words\n└── OtherError  words") == {
            "OneError": "ValueError",
            "OtherError": None,
        }


@pytest.mark.parametrize("file", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda file: file.stem)
def test_what_the_benchmarks_import_of_ours_is_there(file):
    """No test runs them."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        ours = isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in (
            "attnviz",
            "ui",
            "tests",
        )
        for name in node.names if ours else ():
            module = importlib.import_module(node.module)
            found = hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}")
            assert found, f"{node.module} has no {name.name}"
