"""What all figures have in common, whatever they show."""

from collections.abc import Iterator
from typing import Any

Part = dict[str, Any]


def has_the_common_look(traces: list[Part], layout: Part) -> None:
    """Legends, scales, axes and helper lines are where those of every figure are."""
    if layout["showlegend"]:
        legend = layout["legend"]
        assert (legend["orientation"], legend["x"], legend["yanchor"]) == ("h", 0, "bottom"), legend
        assert 1 <= legend["y"] <= 1.02, legend  # in one line above the figure, from its left edge
    if "title" in layout:
        assert layout["title"]["x"] == 0 and layout["title"]["y"] < 1, layout["title"]
    for bar in _colour_bars(traces, layout):
        if bar.get("orientation") == "h":
            assert (bar["y"], bar["yanchor"]) == (0, "top"), bar  # below the figure
        assert bar["outlinewidth"] == 0 and bar["thickness"] <= 10, bar
    for name, axis in _axes(layout):
        assert axis.get("tickangle", 0) in (0, -30, -60), (
            name,
            axis,
        )  # labels that are turned rise to the right
        assert axis.get("zeroline", False) == ("zerolinecolor" in axis), (name, axis)
        assert axis.get("showgrid", "gridcolor" in axis) == ("gridcolor" in axis), (name, axis)
        assert axis.get("ticks", "") == "" and min(axis.get("domain", [0])) >= 0, (name, axis)
    for axis in (layout["scene"][f"{letter}axis"] for letter in "xyz" if "scene" in layout):
        hidden = ("showticklabels", "showspikes", "showbackground", "zeroline")  # its numbers mean nothing
        assert not any(axis[part] for part in hidden) and axis["title"] == {"text": ""}, axis
    for shape in layout.get("shapes", []):
        for side in "xy":
            if _is_of_the_whole(shape, side) and f"{side}sizemode" not in shape:
                assert (shape[f"{side}0"], shape[f"{side}1"]) == (0, 1), shape  # from edge to edge
    for note in layout.get("annotations", []):
        assert all(0 <= note[side] <= 1 for side in "xy" if _is_of_the_whole(note, side)), note
        assert note["x"] == 0 or not (_is_of_the_whole(note, "x") and note["xanchor"] == "left"), note


def _is_of_the_whole(part: Part, side: str) -> bool:
    """Whether the place of a shape or text is a share of the figure or of a panel."""
    return part.get(f"{side}ref", "").endswith(("paper", "domain"))


def _axes(layout: Part) -> Iterator[tuple[str, Part]]:
    for name, part in layout.items():
        if name.startswith(("xaxis", "yaxis")):
            yield name, part


def _colour_bars(traces: list[Part], layout: Part) -> Iterator[Part]:
    for part in (*traces, *(trace.get("marker", {}) for trace in traces), layout.get("coloraxis", {})):
        if "colorbar" in part:
            yield part["colorbar"]
