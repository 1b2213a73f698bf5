"""Beside the stage: all heads as small pictures, and the keys of the selected query."""

from attnviz.records import Head, by_layer
from ui.choice import state
from ui.components.head_rail import head_rail
from ui.page.head_names import known_probes
from ui.stage.screen import Screen
from ui.words.head_names import with_names


def heads(screen: Screen) -> None:
    """All heads; pointing at one previews it, a click selects it."""
    view = screen.view
    probes = known_probes(view)
    layers = by_layer(view.trace.heads(view.kind))
    head_rail(
        [[with_names(one.title, probes, Head(*one)) for one in of_layer] for of_layer in layers],
        picked=view.selection.place,
        clips=view.selection.clip,
        on_pick=lambda layer, head: state.change(layer=layer, head=head),
        theme=view.theme,
    )
