"""The error for a file that is not a bundle: what was found in it, and what to do next."""

from attnviz.errors import BundleError

DAMAGED = (
    "This file is not a bundle of attnviz, or it is damaged: {} Export it again, or select another file."
)


def require(holds: bool, what: str) -> None:
    """Refuses the file unless a condition holds.

    Args:
        what: what is wrong with the file otherwise, in a sentence.

    Raises:
        BundleError: the condition does not hold.
    """
    if not holds:
        raise BundleError(DAMAGED.format(what))
