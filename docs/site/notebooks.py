"""Pages of the notebooks, with what they printed and drew when they were executed (`make notebooks`).

A hook of mkdocs. Figures are drawn by the plotly.js of the package plotly, which is copied into the site; nothing is executed.
"""

import json
from collections.abc import Iterator
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "notebooks"
PLOTLY = "assets/plotly.min.js"
FIGURE = "application/vnd.plotly.v1+json"
DRAW = (
    '<div class="output figure" id="{name}"></div>\n'
    '<script>Plotly.newPlot("{name}", ...(({{data, layout}}) => [data, {{...layout, autosize: true}}, {{responsive: true}}])({figure}))</script>'
)
_outputs: dict[str, list[str]] = {}
"""HTML of the outputs of a page, by its path; Markdown would read what is in them."""


def markdown(notebook: dict[str, Any], outputs: list[str]) -> Iterator[str]:
    """The cells as Markdown; outputs are added to a list, and have a place each."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            continue
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            outputs.append(html(output, f"figure-{len(outputs)}"))
            yield f'<div data-output="{len(outputs) - 1}"></div>'


def html(output: dict[str, Any], name: str) -> str:
    """An output as HTML."""
    if output["output_type"] == "stream":
        return f'<pre class="output">{escape("".join(output["text"]))}</pre>'
    data = output["data"]
    if FIGURE in data:
        return DRAW.format(name=name, figure=json.dumps(data[FIGURE]).replace("</", "<\\/"))
    if "text/html" in data:
        return f'<div class="output">{"".join(data["text/html"])}</div>'
    return f'<pre class="output">{escape("".join(data["text/plain"]))}</pre>'


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each notebook."""
    from mkdocs.structure.files import File

    for path in sorted(FOLDER.glob("*.ipynb")):
        name, outputs = f"notebooks/{path.stem}.md", []
        parts = list(markdown(json.loads(path.read_text(encoding="utf-8")), outputs))
        parts.append(f"[This page as a notebook]({path.name})")
        _outputs[name] = outputs
        files.append(File.generated(config, name, content="\n\n".join(parts) + "\n"))
    spec = find_spec("plotly")
    assert spec is not None and spec.origin is not None  # attnviz needs it
    script = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    files.append(File.generated(config, PLOTLY, abs_src_path=str(script)))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Puts the outputs into their places."""
    outputs = _outputs.get(page.file.src_uri, [])
    for number, output in enumerate(outputs):
        html = html.replace(f'<div data-output="{number}"></div>', output)
    if any("Plotly.newPlot" in output for output in outputs):
        depth = page.file.dest_uri.count("/")
        html = f'<script src="{"../" * depth}{PLOTLY}"></script>\n{html}'
    return html
