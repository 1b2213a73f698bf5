"""A self-contained HTML page: an interactive matrix and text; plotly.js is included."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from string import Template

from plotly import graph_objects as go
from plotly.io import to_json
from plotly.offline import get_plotlyjs

from attnviz.arguments import typed
from attnviz.figures.heatmap import Shown, draw_pattern
from attnviz.figures.numbers import power_text
from attnviz.figures.ranking import draw_ranking
from attnviz.figures.theme import FONT, FONT_SIZE, THEMES, Colour, ThemeName
from attnviz.records import AttentionPattern, Check, VerificationReport

_CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
"""The page may run only its own scripts; the browser blocks every connection.

Source: W3C, Content Security Policy Level 3, section 6.1.
"""

_BUTTONS = 32  # px, above the matrix

_PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="$theme">
<title>$title</title>
<style>
body { margin: 0 auto; padding: 24px 16px; max-width: 900px; background: $background; color: $text;
  font: ${size}px/1.5 $font; }
h1 { font-size: 20px; line-height: 1.3; margin: 0 0 16px; overflow-wrap: anywhere; unicode-bidi: plaintext; }
.layer-above image { image-rendering: pixelated; }
h2 { font-size: 15px; margin: 24px 0 4px; overflow-wrap: anywhere; unicode-bidi: plaintext; }
dl { display: grid; grid-template-columns: minmax(6em, max-content) 1fr; gap: 4px 16px; margin: 8px 0; }
dt { color: $quiet; }
dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: plaintext; }
svg { display: block; }
#checks { overflow-x: auto; }
table { border-collapse: collapse; font-size: ${small}px; }
th { color: $quiet; font-weight: normal; text-align: left; }
th, td { padding: 2px 16px 2px 0; vertical-align: top; white-space: nowrap; }
td:last-child { white-space: normal; }
</style>
<script>$plotly</script>
</head>
<body>
<h1>$title</h1>
<div id="matrix" role="img" aria-label="Attention matrix; its numbers are in matrix.csv"></div>
$ranked
$more
<h2>Where these numbers come from</h2>
<dl>
$facts
</dl>
<div id="checks">
<table>
<tr><th>Compared</th><th>Recorded</th><th>Largest difference</th><th>Tolerance</th><th>Where</th><th>Measured in</th></tr>
$checks
</table>
</div>
<script>
const modeBarButtons = [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]];
const config = {responsive: true, displaylogo: false, modeBarButtons};
function look(chart) {  // an overview lies over the cells while they are smaller than a pixel
  const {xaxis, images} = chart._fullLayout;
  const isOverview = Math.abs(xaxis.l2p(1) - xaxis.l2p(0)) < 1;
  if (images.length && images[0].visible !== isOverview) {
    Plotly.relayout(chart, {"images[0].visible": isOverview, "annotations[0].visible": isOverview});
  }
}
for (const [place, figure] of Object.entries($figures)) {
  Plotly.newPlot(place, figure.data, figure.layout, {...config, displayModeBar: place === "matrix"})
    .then((chart) => { look(chart); chart.on("plotly_relayout", () => look(chart)); });
}
</script>
</body>
</html>
""")


@typed
def draw_page(
    pattern: AttentionPattern,
    *,
    title: str,
    facts: Sequence[tuple[str, str]],
    report: VerificationReport,
    picked: tuple[int, int],
    show: Shown = "weights",
    colour: Colour = "linear",
    theme: ThemeName = "light",
    more: Mapping[str, go.Figure | str] | None = None,
) -> str:
    """HTML of the matrix, the ranked keys of the selected query if it is a row, facts, and a recorded verdict.

    The page opens from disk with no network; texts are shown literally.

    Args:
        facts: names and texts.
        report: the recorded verdict, whose checks are listed in a table.
        picked: positions of the selected query and key.
        more: other figures by title, of Plotly or as SVG, which are drawn below.
    """
    palette = THEMES[theme]
    matrix = draw_pattern(pattern, show=show, colour=colour, picked=picked, theme=theme)
    buttons = {"bgcolor": "rgba(0,0,0,0)", "color": palette.quiet, "activecolor": palette.text}
    matrix.update_layout(
        dragmode="zoom",
        modebar=buttons,
        margin_t=matrix.layout.margin.t + _BUTTONS,
        height=matrix.layout.height + _BUTTONS,
    )
    figures = {"matrix": matrix}
    ranked = ""
    row = pattern.queries.index(picked[0])
    if row is not None:
        figures["ranking"] = draw_ranking(pattern, picked[0], picked_key=picked[1], theme=theme)
        query = escape(pattern.queries.labels[row])
        ranked = f'<h2>Keys of “<bdi>{query}</bdi>”, strongest first</h2>\n<div id="ranking"></div>'
    others = []
    for number, (name, figure) in enumerate((more or {}).items()):
        drawn = figure if isinstance(figure, str) else f'<div id="more_{number}"></div>'
        others.append(f"<h2>{escape(name)}</h2>\n{drawn}")
        if not isinstance(figure, str):
            figures[f"more_{number}"] = figure
    return _PAGE.substitute(
        policy=_CONTENT_POLICY,
        theme=theme,
        title=escape(title),
        background=palette.background,
        text=palette.text,
        quiet=palette.quiet,
        size=FONT_SIZE + 2,
        small=FONT_SIZE,
        font=FONT,
        plotly=get_plotlyjs(),
        ranked=ranked,
        more="\n".join(others),
        facts="\n".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts),
        checks="\n".join(_rows(report)),
        figures=_as_script(figures),
    )


def figures_json(figures: Mapping[str, go.Figure | str]) -> str:
    """Figures by title: those of Plotly as its JSON, SVGs as text."""
    return json.dumps(
        {
            name: figure if isinstance(figure, str) else json.loads(to_json(figure))
            for name, figure in figures.items()
        },
        ensure_ascii=False,
        sort_keys=True,
    )


def _rows(report: VerificationReport) -> list[str]:
    """A row of the table for each check, at its worst place, and for each check that could not be made."""
    cells = [
        (
            check.name,
            "passed" if check.passed else "FAILED",
            power_text(check.difference),
            power_text(check.tolerance),
            _place(check),
            check.unit,
        )
        for check in report.checks
    ]
    cells += [(name, "not compared", "", "", "", reason) for name, reason in report.not_compared.items()]
    return ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in cells]


def _place(check: Check) -> str:
    """Where the difference is largest relative to its tolerance; empty for a check with a single number."""
    kind, layer, head = check.worst
    n_layer, n_head = check.differences[kind].shape
    if n_layer * n_head == 1 and len(check.differences) == 1:
        return ""
    place = f"L{layer} H{head}" if n_head > 1 else f"L{layer}"
    return place if len(check.differences) == 1 else f"{kind} {place}"


def _as_script(figures: dict[str, go.Figure]) -> str:
    """The figures as a JavaScript object; Plotly's `to_json` escapes every <, so that no token can end the script."""
    return "{" + ", ".join(f'"{place}": {to_json(figure)}' for place, figure in figures.items()) + "}"
