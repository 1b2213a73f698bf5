"""A term's meaning, in a card at its link, for pointer, keyboard and touch."""

from ui.components import register

_mount = register("term_cards")


def term_cards() -> None:
    """Listens on the whole page; every page calls it once."""
    _mount(key="term_cards")
