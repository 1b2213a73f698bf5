"""Experiments run the model again with something changed, which an opened bundle cannot."""

from attnviz.errors import SelectionError
from ui.page.view import View


def check_can_run(view: View, asked: str) -> None:
    """Raises SelectionError where an opened bundle is shown.

    Args:
        asked: what was asked for, as the beginning of a sentence.
    """
    if view.selection.bundle:
        raise SelectionError(
            f"{asked}; an opened bundle holds the numbers of one run, and cannot be run again with changes. Close the bundle to "
            "run its sentence."
        )
