"""Texts that are too long for an address, which names them by what they hash to: a reload finds them again."""

from hashlib import sha256

from ui.runtime.remembered import Store

MEGABYTES = 50
Texts = tuple[str, str]
"""A text and its second one, which may be empty."""
_TEXTS = Store(MEGABYTES)


def keep(texts: Texts) -> str:
    """Keeps the texts, the least recently seen go first; returns the name by which `found` finds them."""
    name = sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    _TEXTS.keep(name, texts)
    return name


def found(name: str) -> Texts | None:
    """The texts of this name; None where they are no longer kept."""
    texts: Texts | None = _TEXTS.found(name)
    return texts
