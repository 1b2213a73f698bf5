"""The profiles on offer: that of the bundled sentences, and those that the operator lists."""

import os
from functools import lru_cache
from pathlib import Path

import attnviz.corpus
from attnviz.corpus.profile import HEADS, Profile, read_profile
from attnviz.errors import CorpusError
from ui.sections.many_sentences.lines import OwnSentences
from ui.session import of_session

OWN = "own"
"""The visitor's own sentences, which no link holds."""
PROFILES_VARIABLE = "ATTNVIZ_PROFILES"
BUNDLED = Path(attnviz.corpus.__file__).parent / "bundled"
"""A folder for each bundled model, named after it."""


def offered(model: str) -> dict[str, Path]:
    """Folders of the profiles of a model, by name; "" is that of the bundled sentences."""
    found = {"": BUNDLED / model} if (BUNDLED / model / HEADS).exists() else {}
    for listed in filter(None, os.environ.get(PROFILES_VARIABLE, "").split(",")):
        path = Path(listed.strip())
        folders = [path] if (path / HEADS).exists() else sorted(one.parent for one in path.glob(f"*/{HEADS}"))
        for folder in folders:
            try:
                if read(folder).provenance.model == model:
                    found[folder.name] = folder
            except CorpusError:  # said where somebody asks for it
                continue
    return found


def corpora(model: str) -> list[str]:
    """What can be shown for a model: names of `offered`, and `OWN` where the visitor has given sentences."""
    own = [OWN] if of_session(OwnSentences).text else []
    return [*offered(model), *own]


def corpus_name(corpus: str) -> str:
    """What the texts of a profile are called."""
    return {"": "Bundled sentences", OWN: "Your own sentences"}.get(corpus, corpus)


def read(folder: Path) -> Profile:
    """The profile in a folder, read once as long as it is not written anew.

    Raises:
        CorpusError: as `read_profile`.
    """
    try:
        written = (folder / HEADS).stat().st_mtime_ns
    except OSError:
        written = 0
    return _read(folder, written)


@lru_cache(maxsize=8)
def _read(folder: Path, _written: int) -> Profile:
    return read_profile(folder)
