"""The tokens of the text with the arcs of the selected query, and the weights of all heads for previews on hover."""

from hashlib import sha256

from attnviz.records import Axis, resting_places
from ui.choice import state
from ui.components.stage_weights import stage_weights
from ui.components.token_arcs import token_arcs
from ui.runtime import cache, head_cache
from ui.shell.view import View
from ui.stage.screen import Screen, masked_link, tokens


def text_name(view: View) -> str:
    """Names the text, model and kind of attention that the parts of the stage belong to."""
    return sha256(repr((view.selection.source, view.kind)).encode()).hexdigest()[:16]


def band(screen: Screen) -> None:
    """Tokens with arcs; for a text that is too long, chips."""
    view = screen.view
    if not view.is_staged:
        tokens(screen)
        return
    kind = view.kind
    token_arcs(
        view.query_tokens,
        view.key_tokens if kind == "cross" else None,
        screen.weights,
        text=text_name(view),
        place=view.selection.place,
        query=screen.query,
        matrix=screen.pattern,
        is_previewed=view.selection.show == "weights"
        and view.selection.unit == "tokens"
        and not view.is_renormalised,
        mask_label=cache.mask_label(view.selection.source) if kind == "encoder" else None,
        on_pick=lambda position: state.change(query=position, key=None),
        on_mask=state.mask,
        theme=view.theme,
    )
    masked_link(screen)


def weights_of_all(view: View) -> None:
    """The weights of all heads, with which the browser draws previews on hover without the server."""
    if not view.is_staged:
        return
    stage_weights(
        text_name(view),
        head_cache.staged(view.selection.source, view.kind).cells,
        queries=view.query_tokens.is_special,
        keys=resting_places(Axis.of(view.key_tokens), view.kind),
        theme=view.theme,
    )
