"""What takes long tells how far it is where a notebook calls it, without being asked."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_DELAY = 1.0
"""Seconds after which a bar appears: what is done sooner shows none."""


def is_notebook() -> bool:
    """Whether a kernel of Jupyter runs this code."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


@contextmanager
def bar(what: str) -> Iterator[Callable[..., None]]:
    """A bar, of widgets where there are any, and the function that tells it the share that is done, 0 to 1."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    with tqdm(
        total=1.0,
        desc=what,
        delay=_DELAY,
        leave=False,
        bar_format="{l_bar}{bar}| {elapsed}, {remaining} left",
    ) as shown:

        def tell(share: float, *_: Any) -> None:
            shown.update(share - shown.n)

        yield tell
