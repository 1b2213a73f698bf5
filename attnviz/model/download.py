"""Downloading weights from the Hub.

Imports neither torch nor transformers.

huggingface_hub 2.4.0 deletes a partial file when a download is interrupted. So the files are fetched
here, with that library's session and headers, into its cache (``blobs/<etag>``); partial files are
kept, and a later call asks only for the rest. ``snapshot_download`` then finds every file there, and
creates the snapshot.

Source: the cache of huggingface_hub, https://huggingface.co/docs/huggingface_hub/guides/manage-cache;
range requests, RFC 9110, section 14.
"""

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import filelock
import httpx2
from huggingface_hub import HfApi, constants, get_session, hf_hub_url, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    WeakFileLock,
    build_hf_headers,
    filter_repo_objects,
    hf_raise_for_status,
)
from tqdm import tqdm  # type: ignore[import-untyped]

from attnviz.arguments import typed
from attnviz.errors import AttnvizError, DownloadError, ModelNotAvailableError, without_folders
from attnviz.model.catalogue import (
    CONFIG_FILE,
    PICKLE_FILES,
    SAFETENSORS_FILES,
    SMALL_FILES,
    Offer,
    locate,
    resolve,
)
from attnviz.model.folder import foreign

SIZE_TIMEOUT = 3.0  # seconds that the app may wait for a size
TIMEOUT = 10.0  # seconds without a byte before a connection counts as lost
LOCK_TIMEOUT = 3.0  # seconds to wait for another download of the same file
REPORT_INTERVAL = 0.1  # seconds between two reports of progress

_HUB_FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, json.JSONDecodeError, OSError)


@typed
def download_model(name: str, *, on_progress: Callable[[int, int], None] | None = None) -> Path:
    """The folder of a model on this disk, downloaded from the Hub first when it is not there yet.

    Args:
        name: a name on offer or any Hub id, as for `attnviz.load_model`.
        on_progress: called with (bytes so far, bytes in total) at the start, at most every
            `REPORT_INTERVAL` seconds, and at the end. Bytes from an earlier call are included. Not called
            when the model is on this disk already. An exception that it raises ends the download.

    Raises:
        ModelNotAvailableError: no such model, not open to this user, or a repository without weights.
        DownloadError: the Hub cannot be reached or refuses, the connection is lost, or the disk is full.
            What has arrived is kept, and the next call resumes from there.
    """
    offer = resolve(name)
    location = locate(offer)
    if location is not None:
        return location.folder
    progress = _Progress(on_progress)
    try:
        files, patterns = _list_files(offer, timeout=TIMEOUT)
        _fetch_all(files, offer, progress)
        snapshot_download(
            _repository(offer),
            revision=offer.revision,
            allow_patterns=patterns,
            endpoint=_endpoint(),
            tqdm_class=_NoBar,
        )
    except _HUB_FAILURES as error:
        raise _explained(error, offer, progress) from None
    location = locate(offer)
    if location is None:
        raise DownloadError(f"The repository of {offer.name} changed during the download. Download it again.")
    progress.finish()
    return location.folder


def download_size(offer: Offer) -> int:
    """Bytes that a download of this model takes; 0 for a model that is not downloaded.

    The Hub is asked where the offer has no size, with a timeout of `SIZE_TIMEOUT` seconds.

    Raises:
        ModelNotAvailableError, DownloadError: as `download_model`.
    """
    if offer.repository is None:
        return 0
    if offer.download_bytes is not None:
        return offer.download_bytes
    try:
        files, _ = _list_files(offer, timeout=SIZE_TIMEOUT)
    except _HUB_FAILURES as error:
        raise _explained(error, offer, _Progress(None)) from None
    return sum(file.size for file in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class _HubFile:
    url: str
    size: int
    etag: str
    """The file's name among the blobs of the cache: the sha256 of a large file, git's id of a small file."""
    sha256: str | None


class _Progress:
    """Bytes so far, reported at intervals."""

    def __init__(self, report: Callable[[int, int], None] | None) -> None:
        self.done = 0
        self.total = 0
        self._report = report
        self._next = 0.0

    def add(self, n_byte: int) -> None:
        self.done += n_byte
        if self._report is not None and time.monotonic() >= self._next and self.done < self.total:
            self._next = time.monotonic() + REPORT_INTERVAL
            self._report(self.done, self.total)

    def finish(self) -> None:
        if self._report is not None:
            self._report(self.total, self.total)


class _NoBar(tqdm):  # type: ignore[misc]
    """No progress bar: huggingface_hub's own would count the files a second time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "disable": True})


def _list_files(offer: Offer, *, timeout: float) -> tuple[list[_HubFile], list[str]]:
    """Files of a repository that belong to its checkpoint, and the patterns that match them."""
    repository = _repository(offer)
    info = HfApi(endpoint=_endpoint()).model_info(
        repository, revision=offer.revision, files_metadata=True, timeout=timeout
    )
    siblings = info.siblings or []
    names = [sibling.rfilename for sibling in siblings]
    if held := foreign(names):
        raise ModelNotAvailableError(f"{repository} {held}")
    if CONFIG_FILE not in names:
        raise ModelNotAvailableError(
            f"{repository} has no {CONFIG_FILE}, so it is not a transformers model. Select another model."
        )
    for weights in (SAFETENSORS_FILES, PICKLE_FILES):
        if any(filter_repo_objects(names, allow_patterns=[*weights])):
            patterns = [*SMALL_FILES, *weights]
            break
    else:
        raise ModelNotAvailableError(
            f"{repository} has no weights that attnviz reads, neither {SAFETENSORS_FILES[0]} nor "
            f"{PICKLE_FILES[0]}. Select another model, or convert it with transformers' save_pretrained."
        )
    picked = filter_repo_objects(siblings, allow_patterns=patterns, key=lambda file: file.rfilename)
    files = [
        _HubFile(
            url=hf_hub_url(repository, file.rfilename, revision=info.sha, endpoint=_endpoint()),
            size=file.size or 0,
            etag=file.lfs.sha256 if file.lfs else file.blob_id or "",
            sha256=file.lfs.sha256 if file.lfs else None,
        )
        for file in picked
    ]
    return files, patterns


def _fetch_all(files: list[_HubFile], offer: Offer, progress: _Progress) -> None:
    cache = Path(constants.HF_HUB_CACHE)
    folder = repo_folder_name(repo_id=_repository(offer), repo_type="model")
    blobs = cache / folder / "blobs"
    locks = cache / ".locks" / folder  # huggingface_hub's own, so that two clients never write one file
    blobs.mkdir(parents=True, exist_ok=True)
    locks.mkdir(parents=True, exist_ok=True)
    progress.total = sum(file.size for file in files)
    progress.add(sum(_n_kept(file, blobs) for file in files))
    missing, free = progress.total - progress.done, shutil.disk_usage(blobs).free
    if missing > free:
        raise DownloadError(
            f"{offer.name} needs another {_mb(missing)}, and the disk of the Hub's cache has {_mb(free)} left. "
            "Free some space, or set HF_HOME to a folder on another disk."
        )
    for file in files:
        with WeakFileLock(locks / f"{file.etag}.lock", timeout=LOCK_TIMEOUT):
            if not (blobs / file.etag).exists():
                _fetch(file, blobs, progress)


def _fetch(file: _HubFile, blobs: Path, progress: _Progress) -> None:
    """Fetch one file, from where an earlier call stopped; retries a lost connection as long as bytes arrive."""
    partial = _partial(file, blobs)
    with partial.open("ab") as target:
        while (before := target.tell()) < file.size:
            lost: Exception = httpx2.RemoteProtocolError("the file ended early")
            try:
                _stream(file, target, progress)
            except httpx2.TransportError as error:
                lost = error
            if target.tell() <= before:
                raise lost
    if not _is_whole(file, partial):
        partial.unlink()
        raise DownloadError(
            f"{file.url.rsplit('/', 1)[-1]} arrived with other content than the Hub announced, and was deleted. "
            "Download the model again."
        )
    partial.rename(blobs / file.etag)


def _stream(file: _HubFile, target: BinaryIO, progress: _Progress) -> None:
    """Append the missing bytes of a file to the target, until the end or until the connection is lost."""
    headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if start := target.tell():
        headers["Range"] = f"bytes={start}-"
    with get_session().stream("GET", file.url, headers=headers, timeout=TIMEOUT) as response:
        hf_raise_for_status(response)
        if start and response.status_code != httpx2.codes.PARTIAL_CONTENT:  # the whole file is coming
            target.seek(0)
            target.truncate()
            progress.add(-start)
        for chunk in response.iter_bytes():
            target.write(chunk)
            progress.add(len(chunk))


def _is_whole(file: _HubFile, path: Path) -> bool:
    if path.stat().st_size != file.size:
        return False
    if file.sha256 is None:
        return True
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256


def _partial(file: _HubFile, blobs: Path) -> Path:
    return blobs / f"{file.etag}.attnviz-partial"


def _n_kept(file: _HubFile, blobs: Path) -> int:
    """Bytes of a file that are on this disk."""
    if (blobs / file.etag).exists():
        return file.size
    partial = _partial(file, blobs)
    return partial.stat().st_size if partial.exists() else 0


def _repository(offer: Offer) -> str:
    if offer.repository is None:
        raise ModelNotAvailableError(f"{offer.name} is not on the Hub. Select another model.")
    return offer.repository


def _endpoint() -> str:
    """Address of the Hub: HF_ENDPOINT as it is now, not as it was when huggingface_hub was imported."""
    return os.environ.get("HF_ENDPOINT", constants.ENDPOINT).rstrip("/")


def _explained(error: Exception, offer: Offer, progress: _Progress) -> AttnvizError:
    """The attnviz error for a client's error: what it means in one sentence, and what to do."""
    hub = _endpoint()
    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # snapshot_download falls back to the disk when the Hub fails
    match error:
        case GatedRepoError():
            return ModelNotAvailableError(
                f"{offer.repository} is open only to users whom its owner admits. Ask for access on "
                f"{hub}/{offer.repository}, log in with `hf auth login`, and download it again."
            )
        case RepositoryNotFoundError() | HfHubHTTPError(response=httpx2.Response(status_code=401)):
            return ModelNotAvailableError(
                f"{hub} has no model called {offer.repository}, or shows it only to logged-in users. "
                "Check the name, or log in with `hf auth login`."
            )
        case RevisionNotFoundError():
            return ModelNotAvailableError(
                f"{hub} has {offer.repository}, but not its commit {offer.revision}. Select another model."
            )
        case HfHubHTTPError():
            reason = f"{hub} answered with status {error.response.status_code}"
            remedy = "Try again later"
        case OfflineModeIsEnabled():
            reason = "HF_HUB_OFFLINE is set, which forbids any connection"
            remedy = "Unset it and start attnviz again"
        case json.JSONDecodeError():
            reason = f"{hub} did not answer like the Hub; perhaps a network's log-in page answered"
            remedy = "Open that address in a browser, then try again"
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            reason = f"{hub} is not a web address"
            remedy = "Correct HF_ENDPOINT, or unset it"
        case filelock.Timeout():
            reason = "another download of it is running"
            remedy = "Wait until it has finished"
        case httpx2.HTTPError() if progress.done:
            reason = f"the connection to {hub} was lost"
            remedy = "Check the connection and download it again"
        case httpx2.HTTPError():
            reason = f"{hub} cannot be reached ({_reason(error)})"
            remedy = "Check the connection, then try again"
        case OSError(errno=errno.ENOSPC):
            reason = "the disk is full"
            remedy = "Free some space, or set HF_HOME to a folder on another disk, then download it again"
        case _:
            reason = f"it cannot be written to the Hub's cache ({_reason(error)})"
            remedy = "Set HF_HOME to a folder that can be written"
    kept = (
        f" {_mb(progress.done)} of {_mb(progress.total)} have arrived and are kept." if progress.done else ""
    )
    return DownloadError(f"{offer.name} was not downloaded: {reason}.{kept} {remedy}.")


def _reason(error: Exception) -> str:
    message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return without_folders(message) or type(error).__name__


def _mb(n_byte: int) -> str:
    return f"{n_byte / 1e6:,.1f} MB"
