"""The page of HTML in a bundle: the viewer, with the view of the bundle selected, and below it where the numbers come from."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from plotly import graph_objects as go
from plotly.io import to_json

from attnviz.arguments import typed
from attnviz.viewer.page import stage_page

if TYPE_CHECKING:
    from attnviz.bundle.bundle import Bundle
    from attnviz.records import Axis

OTHER_ENTRIES = ("Rows and columns", "All tokens are shown here; matrix.csv has those of the view.")
"""What the page says of a view that the viewer's options cannot make."""


@typed
def draw_page(
    bundle: "Bundle",
    *,
    title: str,
    facts: Sequence[tuple[str, str]],
    more: Mapping[str, go.Figure | str] | None = None,
) -> str:
    """HTML of the stage with the view selected, other figures, facts, and the recorded verdict.

    The page opens from disk with no network; texts are shown literally.

    Args:
        facts: names and texts.
        more: other figures by title, of Plotly or as SVG, which are drawn below.
    """
    entries = entries_chosen(bundle)
    return stage_page(
        bundle.trace,
        layer=bundle.layer,
        head=bundle.head,
        kind=bundle.kind,
        query=bundle.query,
        key=bundle.key,
        title=title,
        theme=bundle.theme,
        facts=[*facts, OTHER_ENTRIES] if entries is None else facts,
        report=bundle.report,
        more=more,
        choices={"measure": bundle.show, "colour": bundle.colour, **(entries or {})},
    )


def entries_chosen(bundle: "Bundle") -> dict[str, Any] | None:
    """The viewer's options that make these rows and columns, as few as do; None where none do."""
    whole = {unit: bundle.trace.axes(bundle.kind, unit) for unit in ("tokens", "words")}
    sentences = ("all", "A → A", "A → B", "B → A", "B → B")
    hidden = "renormalised" if bundle.renormalised else "hidden"
    for between, without_first, special, unit in product(sentences, (False, True), ("shown", hidden), whole):
        sides = whole[unit]
        if special != "shown":
            sides = sides[0].without_special(), sides[1].without_special()
        if without_first:
            sides = sides[0].without_first(), sides[1].without_first()
        if between != "all":
            of_query, of_key = ("AB".index(side) for side in between.split(" → "))
            sides = sides[0].of_segment(of_query), sides[1].of_segment(of_key)
        if _same(sides[0], bundle.queries) and _same(sides[1], bundle.keys):
            if special == "shown" and bundle.renormalised:
                continue
            return {"unit": unit, "special": special, "withoutFirst": without_first, "sentences": between}
    return None


def _same(made: "Axis", shown: "Axis") -> bool:
    return np.array_equal(made.spans, shown.spans)


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
