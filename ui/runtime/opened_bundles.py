"""The bundle that a session has opened, which takes the place of a computed trace for that session alone."""

from dataclasses import dataclass

from attnviz.bundle.bundle import Bundle
from attnviz.errors import BundleError
from ui.runtime import memory
from ui.runtime.brought import Brought
from ui.session import of_session


@dataclass(slots=True, eq=False)
class OpenedBundle(Brought):
    """A bundle with the SHA-256 of its file."""

    digest: str = ""
    bundle: Bundle | None = None

    def forget(self) -> None:
        """Drops the bundle."""
        Brought.forget(self)
        self.digest, self.bundle = "", None


def keep(digest: str, bundle: Bundle) -> None:
    """Keeps an opened bundle for this session, replacing the last one: a bundle may hold 160 MB."""
    here = of_session(OpenedBundle)
    here.digest, here.bundle = digest, bundle
    here.counts(memory.n_bytes(bundle))


def opened(digest: str) -> Bundle | None:
    """The bundle of this digest, if this session has opened it; a link does not reach another session's."""
    here = of_session(OpenedBundle)
    return here.bundle if digest and here.digest == digest else None


def recorded(digest: str) -> Bundle:
    """The bundle with this digest; the frame shows only open bundles."""
    bundle = opened(digest)
    if bundle is None:
        raise BundleError("This bundle is not open here. Open it again, or leave it.")
    return bundle
