"""The link from a t-SNE map to the page of every method, which may be more reliable for the same head."""

from ui.shell.navigation import link_to


def other_maps() -> None:
    """The link below a map."""
    link_to(
        "Other maps",
        label="Other maps",
        help="Each map has a reliability of its own: where this one says little, another may say more.",
    )
