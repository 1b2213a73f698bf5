"""The bundle that a session has opened, which takes the place of a computed trace for that session alone."""

import streamlit as st

from attnviz.bundle.writing import Bundle
from attnviz.errors import BundleError


def keep(digest: str, bundle: Bundle) -> None:
    """Keeps an opened bundle for this session, in the place of the last: it may hold 160 MB."""
    st.session_state.opened_bundle = (digest, bundle)


def opened(digest: str) -> Bundle | None:
    """The bundle of this digest, if this session has opened it; a link does not reach another session's."""
    kept, bundle = st.session_state.get("opened_bundle", ("", None))
    return bundle if digest and kept == digest else None


def recorded(digest: str) -> Bundle:
    """The bundle of this digest; the frame shows only those that are open."""
    bundle = opened(digest)
    if bundle is None:
        raise BundleError("This bundle is not open here. Open it again, or leave it.")
    return bundle
