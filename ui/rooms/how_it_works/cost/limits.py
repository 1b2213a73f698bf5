"""The model's limit on the length of a text."""

from ui.runtime import cache
from ui.shell.view import View


def limit_of(view: View) -> int | None:
    """Most tokens that the model reads; None if it names no limit, or is not here."""
    return None if view.selection.bundle else cache.model(view.selection.model).max_tokens
