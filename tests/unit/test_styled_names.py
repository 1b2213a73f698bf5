"""Every style is for something that is there: what it names is drawn under this name by some page, component or figure."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STYLES = sorted((ROOT / "ui").rglob("*.css"))
SCRIPTS = sorted((ROOT / "ui").rglob("*.js"))
CODE = [*sorted((ROOT / "ui").rglob("*.py")), *sorted((ROOT / "pages").glob("*.py")), ROOT / "attention.py"]
OTHERS = {"katex", "katex-display", "layer-above"}
"""Classes of formulas and of Plotly's figures."""
_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
_KEY = re.compile(r'class[*^]="st-key-([\w-]+)"')


def told(code: str) -> Iterator[str]:
    """Each text of a module, as a pattern: what is filled in may be anything."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.JoinedStr):
            parts = [
                re.escape(part.value) if isinstance(part, ast.Constant) else r"[\w-]+" for part in node.values
            ]
            if sum(len(part.value) for part in node.values if isinstance(part, ast.Constant)) >= 4:
                yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)


@pytest.fixture(scope="module")
def keys() -> re.Pattern[str]:
    """What the key of an element or a container can be."""
    texts = {pattern for file in CODE for pattern in told(file.read_text()) if len(pattern) < 80}
    return re.compile("|".join(sorted(texts)))


@pytest.fixture(scope="module")
def words() -> set[str]:
    """Every word of the code and the scripts."""
    return {word for file in (*CODE, *SCRIPTS) for word in re.findall(r"[A-Za-z_][\w-]*", file.read_text())}


@pytest.mark.parametrize("file", STYLES, ids=lambda file: file.relative_to(ROOT / "ui").as_posix())
def test_what_a_style_names_is_there(file, keys, words):
    style = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
    selectors = re.sub(r"\{[^{}]*\}", "{}", style)  # without declarations, whose numbers have points
    begun = set(_KEY.findall(selectors))
    asked = set(_CLASS.findall(selectors))
    of_keys = {name.removeprefix("st-key-") for name in asked if name.startswith("st-key-")}
    of_classes = {name for name in asked if not name.startswith("st")} - OTHERS
    assert {key for key in of_keys if not keys.fullmatch(key)} == set()
    assert {key for key in begun if not any(word.startswith(key) for word in words)} == set()
    assert of_classes - words == set()
