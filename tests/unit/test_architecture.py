"""The house: who may import whom, what an import costs, and that public names and errors are documented.

Each check is itself checked: it has to fail on a wrong copy of what it guards.
"""

import ast
import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import streamlit

import attnviz
from attnviz import errors
from tests.findings import assert_none

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# From the ground up. A part imports from itself and from the floors beneath, never from its neighbours or from above,
# not even for type checkers.
FLOORS = (
    ("attnviz.errors", "attnviz.maths", "attnviz.terminal"),
    ("attnviz.arguments", "attnviz.starting"),
    ("attnviz.records",),
    ("attnviz.model",),
    ("attnviz.heads", "attnviz.maps", "attnviz.effects", "attnviz.cost"),
    ("attnviz.lessons",),
    ("attnviz.corpus",),
    ("attnviz.figures",),
    ("attnviz.viewer",),
    ("attnviz.bundle",),
    ("attnviz.cli",),
    ("attnviz.__main__",),
    ("ui.session", "ui.limits"),
    ("ui.words", "ui.components", "ui.streamlit_fixes"),
    ("ui.runtime",),
    ("ui.choice",),
    ("ui.part",),
    ("ui.shell",),
    ("ui.rooms",),
    ("ui.renderer", "ui.written"),
    ("pages", "attention", "app"),
)
# What worker processes import.
WORKERS = (
    "ui.runtime.with_model",
    "ui.runtime.probes",
    "ui.runtime.own_texts",
    "ui.runtime.all_heads",
    "ui.runtime.worker",
)
# Part -> libraries that it does without; for type checkers alone they do not count.
WITHOUT = {
    "attnviz": ("streamlit",),
    "attnviz.errors": ("numpy", "torch", "transformers", "plotly"),
    "attnviz.arguments": ("numpy", "torch", "transformers", "plotly"),
    "attnviz.records": ("torch", "transformers", "plotly"),
    "attnviz.maths": ("transformers", "plotly"),
    "attnviz.maths.attention": ("numpy",),
    "attnviz.model": ("plotly", "sklearn"),
    "attnviz.heads": ("torch", "transformers", "plotly"),
    "attnviz.maps": ("transformers", "plotly"),
    "attnviz.effects": ("transformers", "plotly"),
    "attnviz.cost": ("transformers", "plotly"),
    "attnviz.lessons": ("transformers", "plotly"),
    "attnviz.corpus": ("transformers", "plotly"),
    "attnviz.figures": ("torch", "transformers", "sklearn", "scipy"),
    "attnviz.bundle": ("torch", "transformers", "pickle"),
    "ui": ("torch", "transformers"),
    **dict.fromkeys(WORKERS, ("streamlit",)),
    "pages": ("torch", "transformers", "pages"),
    "attention": ("torch", "transformers"),
    "app": ("torch", "transformers", "attnviz"),
}

# What Streamlit documents for those who write pages; everything else of it may change with any version.
PUBLIC_STREAMLIT = (
    "streamlit.column_config",
    "streamlit.components",
    "streamlit.testing",
    "streamlit.typing",
)
INSIDE_STREAMLIT = {
    "ui/streamlit_fixes/log_lines.py",
    "ui/streamlit_fixes/no_address_lookup.py",
    "ui/streamlit_fixes/runs_in_turn.py",
    "ui/streamlit_fixes/sent_values.py",
    "ui/streamlit_fixes/sessions.py",
}
"""The files that reach into it all the same; docs/decisions/inside-streamlit.md says what for."""


class Module(NamedTuple):
    name: str
    file: str
    tree: ast.Module


def modules(root: Path) -> Iterator[Module]:
    """Every module of the house."""
    for path in sorted(
        [
            root / "app.py",
            root / "attention.py",
            *(path for name in ("attnviz", "ui", "pages") for path in (root / name).rglob("*.py")),
        ]
    ):
        if path.exists():
            file = path.relative_to(root)
            name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
            yield Module(name, file.as_posix(), parsed(path.read_text(encoding="utf-8")))


@cache
def parsed(text: str) -> ast.Module:
    """The tree of a module, which nothing changes."""
    return ast.parse(text)


def imports(tree: ast.AST, *, types: bool = True) -> dict[str, int]:
    """Full names of what a module imports, and their lines; "from a import b" counts as a and as a.b.

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
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            lines.setdefault(name, node.lineno)
    return lines


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def place(name: str) -> tuple[int, str] | None:
    """Floor and part of a module; None for what is not of the house, and for the public names in `attnviz` itself."""
    return next(
        ((floor, part) for floor, parts in enumerate(FLOORS) for part in parts if within(name, part)), None
    )


def wrong_imports(root: Path) -> list[str]:
    """ "file:line imports what": every import against the direction of the house, and of a library it does without."""
    wrong = []
    for name, file, tree in modules(root):
        here = place(name)
        without = [
            library for part, libraries in WITHOUT.items() if within(name, part) for library in libraries
        ]
        upwards = {
            imported: line
            for imported, line in imports(tree).items()
            if here and (there := place(imported)) and here[1] != there[1] and there[0] >= here[0]
        }
        unwanted = {
            imported: line
            for imported, line in imports(tree, types=False).items()
            if any(within(imported, library) for library in without)
        }
        wrong += [
            f"{file}:{line} imports {imported}" for imported, line in sorted((upwards | unwanted).items())
        ]
    return wrong


def inside_streamlit(root: Path) -> dict[str, list[str]]:
    """By file, what it uses of Streamlit that is not public: "line streamlit.runtime"."""
    modules_of_streamlit = {
        f"streamlit.{module.name}"
        for module in pkgutil.iter_modules(streamlit.__path__)
        if inspect.ismodule(getattr(streamlit, module.name, None)) or not hasattr(streamlit, module.name)
    }
    used: dict[str, list[str]] = {}
    for _, file, tree in modules(root):
        names = {name: line for name, line in imports(tree).items() if name.startswith("streamlit.")}
        for node in ast.walk(tree):  # st.runtime.exists(), st._main
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("st", "streamlit")
            ):
                names.setdefault(f"streamlit.{node.attr}", node.lineno)
        private = [
            f"{line} {name}"
            for name, line in names.items()
            if not any(within(name, public) for public in PUBLIC_STREAMLIT)
            and (
                re.match(r"streamlit\._[^_]", name)
                or any(within(name, module) for module in modules_of_streamlit)
                or name.count(".") > 1
            )
        ]
        if private:
            used[file] = private
    return used


def circles(root: Path) -> list[tuple[str, ...]]:
    """Modules that import each other, directly or through others, for types or inside functions included."""
    trees = {name: tree for name, _, tree in modules(root)}
    graph = {
        name: {imported for imported in imports(tree) if imported in trees and imported != name}
        for name, tree in trees.items()
    }
    closed: list[tuple[str, ...]] = []
    while graph:
        free = [name for name, needed in graph.items() if not needed & graph.keys()]
        if not free:  # of what is left, every module imports another one that is left
            wanted = set().union(*graph.values())
            if not (unwanted := graph.keys() - wanted):
                closed.append(tuple(sorted(graph)))
                break
            free = list(unwanted)
        for name in free:
            del graph[name]
    return closed


def house(root: Path, file: str, source: str) -> list[str]:
    """What the check says of a house of one module."""
    (root / file).parent.mkdir(parents=True)
    (root / file).write_text(source, encoding="utf-8")
    return wrong_imports(root)


class TestDirection:
    def test_of_imports(self):
        assert_none(wrong_imports(ROOT))

    def test_has_no_circle(self):
        assert_none(" and ".join(names) + " import each other" for names in circles(ROOT))

    def test_is_that_of_every_module(self):
        """A new folder needs a floor; only the public names stand on none."""
        assert [file for name, file, _ in modules(ROOT) if place(name) is None] == [
            "attnviz/__init__.py",
            "ui/__init__.py",
        ]

    def test_is_checked_on_the_parts_there_are(self):
        names = {module.name for module in modules(ROOT)}
        parts = {*WITHOUT, *(part for floor in FLOORS for part in floor)}
        assert_none(
            f"there is no {part}" for part in sorted(parts) if not any(within(name, part) for name in names)
        )

    def test_check_can_fail(self, tmp_path):
        cases = [
            ("attnviz/model/trace.py", "import streamlit as st", "streamlit"),
            ("attnviz/model/loading.py", "from ui.runtime.cache import load", "ui.runtime.cache"),
            ("attnviz/figures/heatmap.py", "import torch", "torch"),
            ("attnviz/figures/heatmap.py", "def draw():\n    from torch import nn", "torch.nn"),
            (
                "attnviz/figures/heatmap.py",
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
            ("ui/runtime/cache.py", "import app", "app"),
            ("ui/runtime/cache.py", "from ui.choice import state", "ui.choice.state"),
            ("ui/shell/frame.py", "from ui.rooms.explore.pair import pick_key", "ui.rooms.explore.pair"),
            ("ui/words/literal.py", "from ui.components import anchor", "ui.components.anchor"),
            ("pages/verification.py", "import torch", "torch"),
            ("attention.py", "from pages import verification", "pages.verification"),
            ("app.py", "import attnviz", "attnviz"),
        ]
        reports = [house(tmp_path / str(row), file, source) for row, (file, source, _) in enumerate(cases)]
        assert_none(
            f"{imported} in {file} is not noticed: {source!r}"
            for (file, source, imported), report in zip(cases, reports, strict=True)
            if f"{file}:{source.count(chr(10)) + 1} imports {imported}" not in report
        )

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

    def test_check_lets_pass_what_is_right(self, tmp_path):
        cases = [
            (
                "attnviz/figures/heatmap.py",
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
            ),
            ("attnviz/figures/heatmap.py", "from attnviz.figures.theme import THEMES"),
            ("attnviz/model/trace.py", "def weights():\n    from attnviz.maths.attention import softmax"),
            ("ui/runtime/cache.py", "import attnviz\nimport streamlit"),
            ("attention.py", "from attnviz.figures import draw_heatmap"),
        ]
        reports = [house(tmp_path / str(row), file, source) for row, (file, source) in enumerate(cases)]
        assert_none(wrong for report in reports for wrong in report)


class TestInsideStreamlit:
    def test_is_reached_into_by_five_files(self):
        used = inside_streamlit(ROOT)
        assert_none(
            f"{file}:{use} is not public; ui/streamlit_fixes has what the house needs of it"
            for file in sorted(used.keys() - INSIDE_STREAMLIT)
            for use in used[file]
        )
        assert_none(
            f"{file} uses nothing private any more" for file in sorted(INSIDE_STREAMLIT - used.keys())
        )
        assert len(INSIDE_STREAMLIT) <= 5

    def test_check_can_fail(self, tmp_path):
        cases = [
            ("from streamlit import runtime", "1 streamlit.runtime"),
            ("import streamlit as st\nst.runtime.exists()", "2 streamlit.runtime"),
            ("import streamlit as st\nst._main.write('a')", "2 streamlit._main"),
            ("import streamlit.config", "1 streamlit.config"),
            ("from streamlit.delta_generator import DeltaGenerator", "1 streamlit.delta_generator"),
            (
                "def late():\n    from streamlit.proto.BackMsg_pb2 import BackMsg",
                "2 streamlit.proto.BackMsg_pb2",
            ),
            ("from streamlit.navigation.page import Page", "1 streamlit.navigation.page"),
        ]
        for row, (source, use) in enumerate(cases):
            house(tmp_path / str(row), "ui/shell/frame.py", source)
            assert use in inside_streamlit(tmp_path / str(row)).get("ui/shell/frame.py", []), source

    def test_check_lets_pass_what_is_public(self, tmp_path):
        source = (
            "import streamlit as st\nfrom streamlit.typing import UploadedFile\n"
            "from streamlit.components.v2 import component\nst.navigation([])\nst.dataframe(st.column_config)\n"
            "st.context.headers\nst.typing.UploadedFile\nst.__version__\n"
        )
        house(tmp_path, "ui/shell/frame.py", source)
        assert inside_streamlit(tmp_path) == {}


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
    earlier = []
    for name, _, tree in modules(root):
        if name in ("app", "attention") or within(name, "pages"):
            statements = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
            of_ui = [any(within(imported, "ui") for imported in imports(node)) for node in statements]
            earlier += [ast.unparse(node) for node in statements[: of_ui.index(True)]]
    return earlier


class TestImport:
    def test_loads_no_heavy_library(self):
        statements = (
            "import attnviz",
            "import attnviz; dir(attnviz)",
            "import attnviz; attnviz.AttnvizError; attnviz.offers",
            "import attnviz.records, attnviz.model.trace, attnviz.model.tokenization, attnviz.model.catalogue",
            "import attnviz.maps.projection",
            "import attnviz.figures",
            "import attnviz; attnviz.figures",
        )
        assert_none(
            f"{statement!r} loads {library}"
            for statement in statements
            for library in sorted(loaded_by(statement))
        )

    @pytest.mark.nightly
    def test_of_the_core_does_not_load_streamlit(self):
        assert loaded_by("import attnviz; attnviz.load_model; attnviz.verify") == {"torch", "transformers"}

    @pytest.mark.nightly
    def test_of_the_mathematics_does_not_load_transformers(self):
        assert loaded_by("import attnviz.maths.attention") == {"torch"}

    @pytest.mark.nightly
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

    @pytest.mark.nightly
    def test_check_can_fail(self):
        assert_none(
            f"{library} is not noticed"
            for library in HEAVY
            if library not in loaded_by(f"import attnviz, {library}")
        )


def is_documented(thing: object) -> bool:
    """Whether a docstring was written; dataclasses generate one, their signature."""
    written = (getattr(thing, "__doc__", None) or "").strip()
    return bool(written) and not written.startswith(f"{getattr(thing, '__name__', '')}(")


def public_parts(package: ModuleType, name: str) -> Iterator[tuple[str, object]]:
    """A public name, and the methods and properties of a public class."""
    thing = getattr(package, name)
    yield name, thing
    if inspect.isclass(thing):
        for part, value in vars(thing).items():
            if not part.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                yield f"{name}.{part}", value


def file_of(thing: object) -> str:
    """The file of a module, or of the module that defines a class or function."""
    module = thing if inspect.ismodule(thing) else sys.modules[thing.__module__]
    return Path(module.__file__).relative_to(ROOT).as_posix()


def undocumented(package: ModuleType, names: Iterable[str]) -> Iterator[str]:
    """ "file: what is missing" of every public name that is not there or has no docstring, and of its parts."""
    for name in names:
        try:
            parts = list(public_parts(package, name))
        except (ImportError, AttributeError) as error:
            yield f"{package.__name__}: {name} is not there: {error}"
            continue
        file = file_of(parts[0][1])
        yield from (f"{file}: {part} has no docstring" for part, thing in parts if not is_documented(thing))


class TestPublicNames:
    @pytest.mark.parametrize(
        "stub", sorted(ROOT.glob("attnviz/*/__init__.pyi")), ids=lambda stub: stub.parent.name
    )
    def test_all_modules_of_a_folder_can_be_reached_with_their_types(self, stub):
        listed = set(re.findall(r"^from \. import (\w+) as \1$", stub.read_text(), re.MULTILINE))
        there = {path.stem for path in stub.parent.glob("*.py")} - {"__init__"}
        assert listed in (there, set())  # that of heads lists functions

    def test_are_there_and_documented(self):
        assert_none(undocumented(attnviz, attnviz.__all__))

    def test_an_unknown_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="No attnviz attribute nothing"):
            attnviz.nothing  # noqa: B018

    def test_check_can_fail(self):
        package = ModuleType("package")

        class Undocumented:
            @property
            def shape(self):
                pass

            def draw(self):
                pass

            def _private(self):
                pass

        Undocumented.__doc__ = "Undocumented(*, ids: int)"  # as dataclasses generate it
        package.__dict__.update(Undocumented=Undocumented, compute=lambda: None, documented=undocumented)
        names = ("Undocumented", "compute", "documented", "missing")
        assert list(undocumented(package, names)) == [
            "tests/unit/test_architecture.py: Undocumented has no docstring",
            "tests/unit/test_architecture.py: Undocumented.shape has no docstring",
            "tests/unit/test_architecture.py: Undocumented.draw has no docstring",
            "tests/unit/test_architecture.py: compute has no docstring",
            "package: missing is not there: module 'package' has no attribute 'missing'",
        ]


def error_classes() -> list[type[errors.AttnvizError]]:
    """All errors below AttnvizError, however deep."""
    below, waiting = [], [errors.AttnvizError]
    while waiting:
        waiting += (direct := waiting.pop().__subclasses__())
        below += direct
    return [error for error in below if error.__module__.startswith("attnviz")]


def wrong_errors(classes: Iterable[type[Exception]]) -> Iterator[str]:
    """ "module: what is wrong" of errors without words of their own, or that are no public name."""
    for error in classes:
        of = f"{error.__module__}: {error.__name__}"
        if not is_documented(error):
            yield f"{of} has no docstring"
        elif error.__doc__ == error.__base__.__doc__:
            yield f"{of} has the docstring of {error.__base__.__name__}"
        if error.__name__ not in attnviz.__all__ or getattr(attnviz, error.__name__) is not error:
            yield f"{of} is no public name of attnviz"


def drawn_tree(docstring: str) -> dict[str, str | None]:
    """Names in a drawn tree, and what each says it also is."""
    lines = re.findall(r"[├└]── (\w+)(?: +\(also (\w+)\))?", docstring)
    return {name: also or None for name, also in lines}


class TestErrors:
    def test_the_tree_that_is_drawn_is_the_tree_that_is(self):
        builtin = {
            error.__name__: next(
                (base.__name__ for base in error.__bases__ if base.__module__ == "builtins"), None
            )
            for error in error_classes()
        }
        assert drawn_tree(errors.__doc__) == builtin

    def test_each_is_documented_and_public(self):
        assert_none(wrong_errors(error_classes()))

    def test_checks_can_fail(self):
        assert drawn_tree("├── OneError   (also ValueError)  words\n└── OtherError  words") == {
            "OneError": "ValueError",
            "OtherError": None,
        }

        class SilentError(errors.ShapeError):
            pass

        class CopiedError(errors.ShapeError):
            __doc__ = errors.ShapeError.__doc__

        SilentError.__module__ = CopiedError.__module__ = "other"  # error_classes() leaves them out
        assert list(wrong_errors([SilentError, CopiedError, errors.ShapeError])) == [
            "other: SilentError has no docstring",
            "other: SilentError is no public name of attnviz",
            "other: CopiedError has the docstring of ShapeError",
            "other: CopiedError is no public name of attnviz",
        ]


def not_there(source: str) -> Iterator[str]:
    """ "line: what is missing" of every name of ours that a script imports and would not get."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        if node.module.partition(".")[0] not in ("attnviz", "ui", "tests"):
            continue
        try:
            module = importlib.import_module(node.module)
        except ImportError as error:
            yield f"{node.lineno}: {error}"
            continue
        for alias in node.names:
            if not hasattr(module, alias.name) and not importlib.util.find_spec(
                f"{node.module}.{alias.name}"
            ):
                yield f"{node.lineno}: {node.module} has no {alias.name}"


class TestBenchmarks:
    """No test runs them."""

    def test_what_they_import_of_ours_is_there(self):
        assert_none(
            f"{path.relative_to(ROOT)}:{finding}"
            for path in sorted((ROOT / "benchmarks").glob("*.py"))
            for finding in not_there(path.read_text(encoding="utf-8"))
        )

    def test_check_can_fail(self):
        source = """
from attnviz import load_model, nothing
from attnviz.maths import attention
from attnviz.no_such_part import name
from numpy import nothing
"""
        assert list(not_there(source)) == [
            "2: attnviz has no nothing",
            "4: No module named 'attnviz.no_such_part'",
        ]
