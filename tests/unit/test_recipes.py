"""The code of docs runs as it stands, without a network, and gives what its comments say."""

import ast
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import notebooks
from tests.findings import assert_none

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| .* \| `([^`]+)` \|$", re.MULTILINE)
LONG = {
    "coming-from.md",
    "recipes/ablate.md",
    "recipes/chat-and-ids.md",
    "recipes/many-texts.md",
    "recipes/own-model.md",
    "recipes/two-models.md",
    "recipes/where-in-a-long-text.md",
    "site/examples.md",
}
"""With the bundled language model, with two models, or of many texts."""
PAGES = [
    pytest.param(path, id=name, marks=[pytest.mark.nightly] * (name in LONG))
    for path in [
        *sorted(DOCS.glob("recipes/*.md")),
        DOCS / "index.md",
        DOCS / "coming-from.md",
        DOCS / "site/examples.md",
    ]
    if BLOCK.search(path.read_text(encoding="utf-8"))
    for name in [path.relative_to(DOCS).as_posix()]
]


def same(value: Any, told: Any) -> bool:
    """Whether a value is what a comment says, whose numbers have as many digits as they show."""
    if isinstance(told, tuple):
        return len(value) == len(told) and all(map(same, value, told))
    if isinstance(told, float):
        return round(float(value), len(str(told).partition(".")[2])) == told
    return bool(value == told)


def run(code: str, names: dict[str, Any]) -> list[str]:
    """Runs code in a namespace; the values that differ from the literals in the comments behind them."""
    wrong = []
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        source = ast.get_source_segment(code, statement)
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "docs", "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), "docs", "eval"), names)
        comment = lines[statement.end_lineno - 1].encode()[statement.end_col_offset :].decode().strip()
        try:
            told = ast.literal_eval(comment.removeprefix("# "))
        except (SyntaxError, ValueError):
            continue  # a remark
        if not same(value, told):
            wrong.append(f"{source} is {value!r}, not {told!r}")
    return wrong


@pytest.mark.parametrize("path", PAGES)
def test_the_code_of_a_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, names = path.read_text(encoding="utf-8"), {}
    wrong = [finding for code in BLOCK.findall(text) for finding in run(code, names)]
    if path.name == "coming-from.md":
        rows = ROW.findall(text)
        assert len(rows) > 20
        wrong += [finding for code in rows for finding in run(code.replace("\\|", "|"), names)]
    assert_none(wrong)


def test_checks_can_fail() -> None:
    assert run("a = 2\na + 1  # 3\na  # two\n1.2345, 'x'  # (1.23, 'x')", {}) == []
    assert run("1 + 1  # 3", {}) == ["1 + 1 is 2, not 3"]
    assert run("1.2345  # 1.24", {}) == ["1.2345 is 1.2345, not 1.24"]
    assert run("(1, 2)  # (1,)", {}) == ["(1, 2) is (1, 2), not (1,)"]
    with pytest.raises(NameError):
        run("nothing", {})


@pytest.mark.nightly
@pytest.mark.parametrize("path", sorted(DOCS.glob("notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_gives_what_it_shows(path: Path) -> None:
    """Its texts, that is: numbers of figures and tables may differ in their last digits elsewhere."""
    names: dict[str, Any] = {}
    cells = [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    assert path.stat().st_size <= notebooks.LARGEST
    wrong = []
    for cell in cells:
        code = "".join(cell["source"])
        given = list(notebooks.outputs(code, names))
        assert [sorted(output["data"]) for output in given] == [
            sorted(output["data"]) for output in cell["outputs"]
        ], code
        for now, then in zip(given, cell["outputs"], strict=True):
            texts = ["".join(output["data"].get("text/plain", "")) for output in (now, then)]
            if not alike(*texts):
                wrong.append(f"{code!r} gives {texts[0]!r}, not {texts[1]!r}")
    assert_none(wrong)


def alike(now: str, then: str) -> bool:
    """Whether two outputs are the same texts with about the same numbers."""
    split = re.compile(r"(-?\d+\.\d+(?:e-?\d+)?)")
    first, second = split.split(now), split.split(then)
    return first[::2] == second[::2] and all(
        abs(float(a) - float(b)) <= 1e-3 * max(1, abs(float(b)))
        for a, b in zip(first[1::2], second[1::2], strict=True)
    )


@pytest.mark.parametrize("hook", ["api", "offline"])
def test_the_site_is_checked(hook: str) -> None:
    """What `make docs` refuses, without mkdocs: a public name without an example, and a page that loads something."""
    path = DOCS / "site" / f"{hook}.py"
    spec = importlib.util.spec_from_file_location(hook, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hook == "offline":
        page = '<script src="a.js"></script><a href="https://b.org"></a><link rel=stylesheet href=https://c.org/d.css>'
        assert list(module.loaded(page)) == ["https://c.org/d.css"]
        assert list(module.loaded('<img alt="" src="//e.org/f.png">@import url(http://g.org/h.css)')) == [
            "//e.org/f.png",
            "http://g.org/h.css",
        ]
        return
    things, examples = list(module.public()), module.read_examples()
    assert_none(module.lacking(things, examples))
    assert {thing.page for thing in things} == set(module.PAGES)
    del examples["ablate"]
    assert module.lacking(things, examples | {"no_name": ""}) == ["ablate", "no_name"]
    [ablate] = (thing for thing in things if thing.name == "ablate")
    text = module.page_of("effects", [ablate], {})
    assert "heads: Sequence[Head] | None = None,\n    *,\n" in text
    assert "- `CaptureError`, `OutOfMemoryError`: as `attnviz" in text
