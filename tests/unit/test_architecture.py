"""The house: who may import whom, what an import costs, and that public names and errors are documented.

Each check is itself checked: on a wrong copy of what it guards it has to fail.
"""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import attnviz
from attnviz import errors

ROOT = Path(__file__).parents[2]

# Module (shell pattern) -> imports that it must not have, itself or in a function. Each line is a
# decision of the design; the rest is free. Imports for type checkers alone do not count.
FORBIDDEN = {
    "attnviz*": ("streamlit", "ui", "app", "pages"),
    "ui*": ("app", "pages", "torch", "transformers"),
    "pages*": ("app", "pages", "torch", "transformers"),
    "app": ("pages", "torch", "transformers"),
    "attnviz.figures*": ("torch", "transformers", "sklearn", "scipy"),
    "attnviz.maths*": ("transformers", "plotly"),
    "attnviz.maths.attention": ("attnviz", "transformers", "numpy", "plotly"),
    "attnviz.errors": ("attnviz", "numpy", "torch", "transformers", "plotly"),
    "attnviz.records": ("torch", "transformers", "plotly"),
    "attnviz.streaming": ("transformers", "plotly"),
    "attnviz.positions": ("torch", "transformers", "plotly"),
    "attnviz.scaling": ("torch", "transformers", "plotly"),
    "attnviz.interventions": ("torch", "transformers", "plotly"),
    "attnviz.cost": ("torch", "transformers", "plotly"),
    "attnviz.measurement": ("transformers", "plotly", "attnviz.models"),
    "attnviz.history": ("transformers", "plotly", "attnviz.models"),
    "attnviz.trace": ("transformers", "plotly"),
    "attnviz.tokenization": ("torch", "transformers", "plotly"),
    "attnviz.catalogue": ("torch", "transformers", "plotly"),
    "attnviz.families": ("torch", "transformers", "plotly"),
    "attnviz.projection": ("torch", "transformers", "plotly"),
    "attnviz.spaces": ("torch", "transformers", "plotly", "sklearn", "scipy"),
    "attnviz.layouts": ("torch", "transformers", "plotly"),
    "attnviz.attention_map": ("torch", "transformers", "plotly", "sklearn"),
    "attnviz.faithfulness": ("torch", "transformers", "plotly"),
    "attnviz.map_ranking": ("torch", "transformers", "plotly"),
    "attnviz.score": ("torch", "transformers", "plotly"),
    "attnviz.collection": ("transformers", "plotly", "attnviz.models"),
    "attnviz.comparison": ("torch", "transformers", "plotly"),
    "attnviz.heads": ("torch", "transformers", "plotly"),
    "attnviz.flow": ("torch", "transformers", "plotly"),
    "attnviz.attribution": ("torch", "transformers", "plotly"),
    "attnviz.bundle*": ("torch", "transformers", "plotly", "pickle"),
    "attnviz.table": ("torch", "transformers", "plotly"),
    "attnviz.capture": ("plotly", "attnviz.models", "attnviz.verification"),
    "attnviz.anatomy": ("plotly", "attnviz.models", "attnviz.verification"),
    "attnviz.predictions": ("plotly", "attnviz.models", "attnviz.verification"),
    "attnviz.checkpoint": ("plotly", "attnviz.models", "attnviz.trace", "attnviz.verification"),
    "attnviz.verification": ("plotly", "attnviz.models"),
}
# Module -> the only modules of attnviz that it may import.
ALLOWED_OF_ATTNVIZ = {
    "attnviz.errors": (),
    "attnviz.maths*": ("attnviz.maths",),
    "attnviz.maths.attention": (),
    "attnviz.records": ("attnviz.errors",),
    "attnviz.comparison": ("attnviz.records", "attnviz.errors", "attnviz.table"),
    "attnviz.figures*": (
        *("attnviz.records", "attnviz.errors", "attnviz.comparison", "attnviz.score", "attnviz.figures"),
    ),
    "attnviz.catalogue": ("attnviz.errors",),
    "attnviz.families": ("attnviz.errors",),
    "attnviz.tokenization": ("attnviz.records", "attnviz.errors"),
    "attnviz.streaming": ("attnviz.maths", "attnviz.records"),
    "attnviz.positions": (),
    "attnviz.scaling": ("attnviz.records",),
    "attnviz.interventions": ("attnviz.records", "attnviz.errors"),
    "attnviz.trace": (
        *("attnviz.records", "attnviz.errors", "attnviz.maths", "attnviz.attribution"),
        "attnviz.interventions",
    ),
    "attnviz.attribution": (),
    "attnviz.spaces": ("attnviz.errors",),
    "attnviz.layouts": (),
    "attnviz.attention_map": (),
    "attnviz.faithfulness": ("attnviz.records",),
    "attnviz.projection": (
        *("attnviz.records", "attnviz.errors", "attnviz.spaces", "attnviz.layouts", "attnviz.attention_map"),
        "attnviz.faithfulness",
    ),
    "attnviz.map_ranking": (
        *("attnviz.records", "attnviz.spaces", "attnviz.layouts", "attnviz.projection", "attnviz.table"),
    ),
    "attnviz.score": ("attnviz.records", "attnviz.table"),
    "attnviz.heads": ("attnviz.records", "attnviz.errors"),
    "attnviz.flow": ("attnviz.records", "attnviz.table"),
    "attnviz.table": ("attnviz.records",),
    "attnviz.bundle": (
        *("attnviz.records", "attnviz.errors", "attnviz.trace", "attnviz.table", "attnviz.figures"),
    ),
    "attnviz.bundle_reading": (
        *("attnviz.records", "attnviz.errors", "attnviz.trace", "attnviz.bundle", "attnviz.figures"),
        "attnviz.tokenization",  # its limit of characters
        *("attnviz.tolerances", "attnviz.maths.rounding"),  # the checks there are, and what roundings explain
    ),
}
MAY_IMPORT_FIGURES = ("attnviz", "attnviz.bundle*", "attnviz.figures*", "app", "pages*", "ui*")


def modules(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """Name and syntax tree of every module of the house."""
    for path in sorted(
        [
            root / "app.py",
            *(path for name in ("attnviz", "ui", "pages") for path in (root / name).rglob("*.py")),
        ]
    ):
        if path.exists():
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.AST) -> set[str]:
    """Full names of what a module imports when it runs; "from a import b" counts as a and as a.b."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
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


def forbidden_imports(root: Path) -> list[str]:
    """ "module imports what": every import against the direction of the house."""
    found = []
    for name, tree in modules(root):
        for imported in sorted(imports(tree)):
            is_forbidden = any(
                within(imported, package)
                for pattern, packages in FORBIDDEN.items()
                if fnmatchcase(name, pattern)
                for package in packages
            )
            is_not_allowed = within(imported, "attnviz") and any(
                imported != "attnviz" and not any(within(imported, one) for one in allowed)
                for pattern, allowed in ALLOWED_OF_ATTNVIZ.items()
                if fnmatchcase(name, pattern)
            )
            is_upward = within(imported, "attnviz.figures") and not any(
                fnmatchcase(name, pattern) for pattern in MAY_IMPORT_FIGURES
            )
            if is_forbidden or is_not_allowed or is_upward:
                found.append(f"{name} imports {imported}")
    return found


class TestDirection:
    def test_of_imports(self):
        assert forbidden_imports(ROOT) == []

    def test_is_checked_on_the_modules_there_are(self):
        names = {name for name, _ in modules(ROOT)}
        for pattern in {*FORBIDDEN, *ALLOWED_OF_ATTNVIZ} - {"app", "pages*", "ui*"}:
            assert any(fnmatchcase(name, pattern) for name in names), pattern

    @pytest.mark.parametrize(
        ("module", "line", "found"),
        [
            ("attnviz/trace.py", "import streamlit as st", "streamlit"),
            ("attnviz/models.py", "from ui.cache import load", "ui.cache"),
            ("attnviz/figures/heatmap.py", "import torch", "torch"),
            ("attnviz/figures/heatmap.py", "from attnviz.trace import Trace", "attnviz.trace"),
            ("attnviz/figures/heatmap.py", "def draw():\n    from torch import nn", "torch.nn"),
            ("attnviz/records.py", "from attnviz import figures", "attnviz.figures"),
            ("attnviz/records.py", "from attnviz.trace import Trace", "attnviz.trace"),
            ("attnviz/verification.py", "from attnviz.figures import draw_errors", "attnviz.figures"),
            ("attnviz/maths/attention.py", "from transformers import AutoModel", "transformers"),
            ("attnviz/maths/attention.py", "from attnviz.records import Kind", "attnviz.records"),
            ("attnviz/tokenization.py", "import torch.nn", "torch.nn"),
            ("ui/cache.py", "import app", "app"),
            ("pages/verification.py", "import torch", "torch"),
            ("app.py", "from pages import verification", "pages.verification"),
        ],
    )
    def test_check_can_fail(self, module, line, found, tmp_path):
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).write_text(line, encoding="utf-8")
        name = module.removesuffix(".py").replace("/", ".")
        assert f"{name} imports {found}" in forbidden_imports(tmp_path)

    @pytest.mark.parametrize(
        ("module", "line"),
        [
            (
                "attnviz/figures/heatmap.py",
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
            ),
            ("attnviz/figures/heatmap.py", "from attnviz.figures.theme import THEMES"),
            ("attnviz/trace.py", "def weights():\n    from attnviz.maths.attention import softmax"),
            ("ui/cache.py", "import attnviz\nimport streamlit"),
            ("app.py", "from attnviz.figures import draw_heatmap"),
        ],
    )
    def test_check_lets_pass_what_is_right(self, module, line, tmp_path):
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).write_text(line, encoding="utf-8")
        assert forbidden_imports(tmp_path) == []


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
        if name == "app" or name.startswith("pages."):
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
            "import attnviz.records, attnviz.trace, attnviz.tokenization, attnviz.catalogue",
            "import attnviz.projection",
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

    def test_of_a_page_spares_the_garbage_collector_what_stays(self):
        counted = printed("import gc, ui.frame; print(gc.get_freeze_count(), len(gc.get_objects()))")
        spared, looked_through = map(int, counted.split())
        assert spared > 10 * looked_through

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
    """Whether somebody wrote a docstring; dataclasses make up one of their own, their signature."""
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

    def test_are_what_type_checkers_see(self):
        """The names loaded lazily and those under TYPE_CHECKING are two lists of the same."""
        tree = ast.parse((ROOT / "attnviz" / "__init__.py").read_text(encoding="utf-8"))
        block = next(node for node in tree.body if isinstance(node, ast.If))
        seen = {
            alias.name: statement.module
            for statement in block.body
            if isinstance(statement, ast.ImportFrom)
            for alias in statement.names
        }
        assert set(seen) == set(attnviz.__all__)
        for name, module in seen.items():
            assert getattr(importlib.import_module(module), name) is getattr(attnviz, name)

    def test_an_unknown_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="module 'attnviz' has no attribute 'nothing'"):
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
