"""Executes the notebooks of docs and keeps what they print and draw (`make notebooks`). They are run here, without a kernel."""

import ast
import json
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
FIGURE = "application/vnd.plotly.v1+json"
LARGEST = 400_000
"""Bytes of a notebook."""


def outputs(code: str, names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a cell prints, and the value of its last line."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    if printed.getvalue():
        yield {
            "output_type": "stream",
            "name": "stdout",
            "text": printed.getvalue().splitlines(keepends=True),
        }
    if value is not None:
        yield {"output_type": "execute_result", "data": shown(value), "metadata": {}}


def shown(value: Any) -> dict[str, Any]:
    """One form of a value: a figure as plotly has it, else HTML, such as a widget's page, which needs no kernel, else text."""
    from IPython.core.formatters import DisplayFormatter

    if hasattr(value, "to_plotly_json"):
        return {FIGURE: json.loads(value.to_json())}
    data, _ = DisplayFormatter().format(value)
    form = "text/html" if "text/html" in data else "text/plain"
    return {form: data[form].splitlines(keepends=True)}


def execute(path: Path) -> None:
    """Runs the cells of a notebook one after the other, and writes what they gave into it.

    Raises:
        ValueError: the notebook is too large to be kept.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = (cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    for number, cell in enumerate(cells, 1):
        cell["outputs"] = list(outputs("".join(cell["source"]), names))
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = number
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if len(text.encode()) > LARGEST:
        raise ValueError(f"{path.name} would have {len(text.encode()):,} bytes; {LARGEST:,} are kept.")
    path.write_text(text, encoding="utf-8")
    print(f"{path.name}: {len(text.encode()):,} bytes")


def main() -> None:
    """Executes all, or those whose names are given."""
    os.environ["ATTNVIZ_DEVICE"] = "cpu"
    names = sys.argv[1:] or [path.stem for path in sorted(FOLDER.glob("*.ipynb"))]
    for name in names:
        execute(FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    main()
