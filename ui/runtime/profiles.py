"""The profiles of many texts on this server: those of the bundled models, and those in the operator's folders.

A name is a folder's name, never a path; a profile belongs to a model by the SHA-256 of its weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import attnviz.corpus
from attnviz.corpus.naming import HeadName, names_of
from attnviz.corpus.profile import HEADS, Profile, read_about, read_profile
from attnviz.errors import CorpusError
from attnviz.records import Head, Kind
from ui.limits import folders_with

BUNDLED = Path(attnviz.corpus.__file__).parent / "bundled"
"""A folder for each bundled model, named after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A folder with a profile."""

    name: str
    """The folder's name; of two folders with the same name only the first is listed."""
    folder: Path
    written: int
    """Time of the last change; a newer one has the profile read again."""
    about: Mapping[str, Any]
    """As `Profile.about`; empty where it cannot be read."""
    problem: str = ""
    """Why it cannot be read, a sentence."""

    @property
    def is_bundled(self) -> bool:
        """Whether it is a profile of the bundled sentences."""
        return self.folder.parent == BUNDLED

    @property
    def model(self) -> str:
        """The name of its model."""
        return str(self.about.get("model", ""))

    def is_of(self, weights: Mapping[str, str]) -> bool:
        """Whether it belongs to the model with these weights, by their SHA-256."""
        return bool(weights) and self.about.get("weights") == dict(weights)

    def read(self) -> Profile:
        """The profile, read again only when its files change.

        Raises:
            CorpusError: as `read_profile`, with the folder's name in place of its path.
        """
        return _read(self.folder, self.written)


def listed() -> dict[str, Listed]:
    """Every folder with a profile, by name: those of the bundled models, and those of ``ATTNVIZ_PROFILES``."""
    folders = sorted(path.parent for path in BUNDLED.glob(f"*/{HEADS}")) + folders_with(HEADS)
    by_name: dict[str, Listed] = {}
    for folder in folders:
        try:
            written = (folder / HEADS).stat().st_mtime_ns
        except OSError:  # just deleted
            continue
        by_name.setdefault(folder.name, _listed(folder, written))
    return by_name


def of_model(weights: Mapping[str, str]) -> list[Listed]:
    """The profiles of the model with these weights, the one of the bundled sentences first."""
    return sorted(
        (profile for profile in listed().values() if profile.is_of(weights)),
        key=lambda profile: not profile.is_bundled,
    )


def naming_profile(weights: Mapping[str, str]) -> tuple[Listed, Profile] | None:
    """The profile that names a model's heads: the first readable one of `of_model`; None where there is none."""
    for profile in of_model(weights):
        try:
            return profile, profile.read()
        except CorpusError:  # reported where the profile itself is shown
            continue
    return None


@lru_cache(maxsize=8)
def names(profile: Profile, kind: Kind) -> dict[Head, tuple[HeadName, ...]]:
    """What each head is called, as `attnviz.corpus.naming.names_of`."""
    return names_of(profile, kind)


@lru_cache(maxsize=256)
def _listed(folder: Path, written: int) -> Listed:
    try:
        return Listed(name=folder.name, folder=folder, written=written, about=read_about(folder))
    except CorpusError as error:
        return Listed(
            name=folder.name, folder=folder, written=written, about={}, problem=_without_path(error, folder)
        )


@lru_cache(maxsize=8)
def _read(folder: Path, _written: int) -> Profile:
    try:
        return read_profile(folder)
    except CorpusError as error:
        raise CorpusError(_without_path(error, folder)) from error


def _without_path(error: CorpusError, folder: Path) -> str:
    """The error's message, with the folder's name in place of its path, which visitors must not see."""
    return str(error).replace(str(folder), folder.name)
