"""The indices on offer: the operator's, by the names of their folders."""

from functools import lru_cache
from pathlib import Path

from attnviz.corpus.token_index import TOKENS, TokenIndex, read_index
from attnviz.errors import CorpusError
from ui.limits import folders_with


def offered(model: str) -> dict[str, Path]:
    """Folders of the indices of a model, by name."""
    folders: dict[str, Path] = {}
    for folder in folders_with(TOKENS):
        try:
            if read(folder).provenance.model == model:
                folders[folder.name] = folder
        except CorpusError:  # reported when the index is selected
            continue
    return folders


def read(folder: Path) -> TokenIndex:
    """The index in a folder, opened again only when its files change.

    Raises:
        CorpusError: as `read_index`.
    """
    try:
        written = (folder / TOKENS).stat().st_mtime_ns
    except OSError:
        written = 0
    return _read(folder, written)


@lru_cache(maxsize=8)
def _read(folder: Path, _written: int) -> TokenIndex:
    return read_index(folder)
