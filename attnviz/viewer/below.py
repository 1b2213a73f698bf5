"""What stands below the viewer in a page: other figures, facts, and a recorded verdict, all as HTML."""

from collections.abc import Mapping, Sequence
from html import escape

from plotly import graph_objects as go
from plotly.io import to_json
from plotly.offline import get_plotlyjs

from attnviz.figures.numbers import power_text
from attnviz.records import Check, VerificationReport

_COLUMNS = ("Compared", "Recorded", "Largest difference", "Tolerance", "Where", "Measured in")

_DRAW = """\
function look(chart) {  // an overview lies over the cells while they are smaller than a pixel
  const {xaxis, images} = chart._fullLayout;
  if (!images.length) return;
  const isOverview = Math.abs(xaxis.l2p(1) - xaxis.l2p(0)) < 1;
  if (images[0].visible !== isOverview) {
    Plotly.relayout(chart, {"images[0].visible": isOverview, "annotations[0].visible": isOverview});
  }
}
for (const [place, figure] of Object.entries(FIGURES)) {
  Plotly.newPlot(place, figure.data, figure.layout, {responsive: true, displayModeBar: false})
    .then((chart) => { look(chart); chart.on("plotly_relayout", () => look(chart)); });
}"""


def figures_html(figures: Mapping[str, go.Figure | str]) -> str:
    """Figures by title, of Plotly or as SVG; plotly.js comes with them where one is of Plotly."""
    parts, of_plotly = [], []
    for number, (name, figure) in enumerate(figures.items()):
        parts.append(f"<h2>{escape(name)}</h2>")
        if isinstance(figure, str):
            parts.append(figure)
            continue
        parts.append(f'<div id="more_{number}"></div>')
        of_plotly.append(
            f'"more_{number}": {to_json(figure)}'
        )  # every < escaped, so that no token can end the script
    if of_plotly:
        drawn = _DRAW.replace("FIGURES", "{" + ", ".join(of_plotly) + "}")
        parts += [f"<script>{get_plotlyjs()}</script>", f"<script>\n{drawn}\n</script>"]
    return "\n".join(parts)


def facts_html(facts: Sequence[tuple[str, str]], report: VerificationReport | None) -> str:
    """Names and texts as a list, and the checks of the report as a table."""
    if not facts and report is None:
        return ""
    parts = ["<h2>Where these numbers come from</h2>", "<dl>"]
    parts += [f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts]
    parts.append("</dl>")
    if report is not None:
        head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in verdict_rows(report))
        parts += ['<div class="checks">', "<table>", f"<tr>{head}</tr>", *(f"<tr>{row}</tr>" for row in rows)]
        parts += ["</table>", "</div>"]
    return "\n".join(parts)


def verdict_rows(report: VerificationReport) -> list[tuple[str, ...]]:
    """A row of the table for each check, at its worst place, and for each check that could not be made."""
    rows: list[tuple[str, ...]] = [
        (
            check.name,
            "passed" if check.passed else "FAILED",
            power_text(check.difference),
            power_text(check.tolerance),
            worst_place(check),
            check.unit,
        )
        for check in report.checks
    ]
    return rows + [(name, "not compared", "", "", "", reason) for name, reason in report.not_compared.items()]


def worst_place(check: Check) -> str:
    """Where the difference is largest relative to its tolerance; empty for a check with a single number."""
    kind, layer, head = check.worst
    n_layer, n_head = check.differences[kind].shape
    if n_layer * n_head == 1 and len(check.differences) == 1:
        return ""
    place = f"L{layer} H{head}" if n_head > 1 else f"L{layer}"
    return place if len(check.differences) == 1 else f"{kind} {place}"
