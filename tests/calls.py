"""Calls for the processes of `ui.runtime.jobs`, which can import this module like any other."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

from attnviz.errors import ProjectionError, TextTooLongError
from ui.runtime.stopping import Stopped, end_if_stopped


def double(number: int) -> int:
    return 2 * number


def tell(parts: list[int], path: Path, *, progress: Callable[[float, int], None]) -> str:
    """Tells the parts, then waits for the file."""
    for part in parts:
        progress(0.5, part)
    while not path.exists():
        time.sleep(0.01)
    return "done"


def process_id() -> int:
    return os.getpid()


def loaded_modules() -> list[str]:
    """What the process has loaded."""
    return [*sys.modules]


def settings() -> tuple[str | None, int]:
    """How many threads libraries are to use in the process, and its priority."""
    return os.environ.get("OMP_NUM_THREADS"), os.nice(0)


def refuse(number: int) -> int:
    raise ProjectionError(f"Method {number} was asked for.")


def refuse_long() -> int:
    raise TextTooLongError("Too long.", length=7, limit=5, unit="tokens")


def fail_unless(path: Path) -> str:
    """Fails the first time."""
    if path.exists():
        return "done"
    path.touch()
    raise ValueError("no file")


class _Real(dict[str, Callable[..., Any]]):
    """Functions by their names "module:function", as they were when first asked for: what stands for one may have taken its place."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        self[name] = found = resolve_name(name)
        return found


_REAL = _Real()


@dataclass(frozen=True)
class Failing:
    """Stands for a function that makes something, by its name "module:function"; fails until there is a file."""

    make: str
    path: Path
    error: Exception

    def __post_init__(self) -> None:
        _REAL[self.make]  # before it stands there

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not self.path.exists():
            raise self.error
        return _REAL[self.make](*arguments, **named)


@dataclass(frozen=True)
class Held:
    """Stands for a function by its name "module:function"; all but the first so many calls wait until there is a file "go"."""

    make: str
    folder: Path
    n_free: int = 0

    def __post_init__(self) -> None:
        _REAL[self.make]  # before it stands there

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        while not (self._is_free() or (self.folder / "go").exists()):
            named.get("progress", float)(0.0)  # may stop it
            time.sleep(0.01)
        return _REAL[self.make](*arguments, **named)

    def _is_free(self) -> bool:
        for number in range(self.n_free):
            with suppress(FileExistsError):
                (self.folder / f"free {number}").touch(exist_ok=False)
                return True
        return False

    def let_go(self) -> None:
        """Lets those that wait go on."""
        (self.folder / "go").touch()


def die() -> None:
    os._exit(7)


def unsendable() -> Any:
    return MappingProxyType({})


def chatter() -> str:
    print("a library says something")
    return "done"


def note(path: Path, name: str) -> None:
    """Writes when it was its turn."""
    with path.open("a") as log:
        log.write(f"{name}\n")


def until(path: Path, *, progress: Callable[[float], None]) -> str:
    """Goes on until there is a file, and says so."""
    while not path.exists():
        progress(0.5)
        time.sleep(0.01)
    return "done"


def until_untold(path: Path) -> str:
    """Goes on until there is a file, and says nothing; how often it was begun is the length of another file."""
    with path.with_suffix(".begun").open("a") as begun:
        begun.write(".")
    while not path.exists():
        time.sleep(0.01)
    return "done"


def once_left(path: Path, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Makes another call once nobody waits for this one any more, and says by a file that it waits for that."""
    path.touch()
    with suppress(Stopped):
        while True:
            end_if_stopped()
            time.sleep(0.01)
    return call(*arguments, **named)
