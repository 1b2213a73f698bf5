"""How long a text the model reads."""

from ui.runtime import cache
from ui.shell.view import View


def limit_of(view: View) -> int | None:
    """Tokens that the model reads at most; None where it names no limit, or is not here."""
    return None if view.selection.bundle else cache.model(view.selection.model).max_tokens
