"""What a term means, in a card at its link: to the pointer, to the keyboard and to a finger."""

from ui.components import register

_mount = register("term_cards")


def term_cards() -> None:
    """Listens on the whole page; every page calls it once."""
    _mount(key="term_cards")
