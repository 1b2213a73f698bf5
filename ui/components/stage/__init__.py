"""The viewer on a page of the app: the selection that the server knows goes in, and where a visitor has settled comes out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attnviz.figures.theme import ThemeName
from attnviz.viewer import SCRIPTS
from ui.components import register
from ui.components.sent import sent, takes_position
from ui.session import of_session

_mount = register("stage", *SCRIPTS)
SLOTS = ("model", "links", "map")
"""What the page shows within the stage: the containers whose keys are ``slot_`` and one of these."""


@dataclass(slots=True)
class Settled:
    """How often this visitor's browser has told where it has settled."""

    n: int = 0


def stage(
    text: str,
    selection: Mapping[str, object],
    said: Mapping[str, str],
    *,
    n_token: int,
    is_linked: bool,
    on_settle: Callable[[bool, dict[str, Any]], None],
    on_mask: Callable[[int], None] | None,
    theme: ThemeName,
) -> None:
    """Shows a selection of the text whose document `ui.components.stage_data` sends.

    Args:
        text: the document's name.
        selection: the fields of a link that the viewer changes by itself.
        said: the headline and the notes of this selection.
        n_token: number of tokens that may be masked.
        is_linked: whether the address leads back to what is selected.
        on_settle: called with whether the visitor has settled on this text, and the selection's fields; anybody can forge what comes.
        on_mask: called with the position of a token to be masked or restored; None where there is no mask.
    """

    def take() -> None:
        match sent("viewer", "settled"):
            case {"n": int(n), "text": str(of), "selection": dict(fields)}:
                of_session(Settled).n = n
                on_settle(of == text, {name: value for name, value in fields.items() if name in selection})

    _mount(
        key="viewer",
        data={
            "text": text,
            "n": of_session(Settled).n,
            "selection": selection,
            "said": said,
            "slots": SLOTS,
            "masks": on_mask is not None,
            "linked": is_linked,
            "theme": theme,
        },
        on_settled_change=take,
        on_mask_change=takes_position("viewer", "mask", n_token, on_mask or (lambda position: None)),
    )
