"""Opening a bundle: its trace and verdict take the place of a computed one, for this session alone."""

from dataclasses import replace
from hashlib import sha256

import streamlit as st

from attnviz.bundle import LARGEST_BUNDLE, Bundle
from attnviz.bundle_reading import read_bundle
from attnviz.catalogue import offers
from attnviz.errors import BundleError
from ui import cache, state
from ui.selection import Selection, from_params
from ui.text import literal

_MB = 1_000_000


def uploader() -> None:
    """The popover that takes a file, and what was wrong with the last one."""
    with st.popover("Open a bundle", icon=":material/folder_open:", width="stretch", key="open_bundle"):
        st.file_uploader(
            "A bundle",
            type="zip",
            max_upload_size=LARGEST_BUNDLE // _MB,
            key=f"bundle_{st.session_state.setdefault('bundle_uploads', 0)}",
            on_change=_open,
            help="A zip from “Take it with you” or `attnviz export`; its numbers are shown as they were recorded.",
        )
        if problem := st.session_state.get("bundle_problem"):
            st.error(literal(problem), icon=":material/error:")


def _open() -> None:
    file = st.session_state[f"bundle_{st.session_state.bundle_uploads}"]
    state.hold()
    st.session_state.bundle_problem = ""
    if file is None:
        return
    data = file.getvalue()
    try:
        bundle = read_bundle(data)
    except BundleError as error:
        st.session_state.bundle_problem = str(error)
        return
    st.session_state.bundle_uploads += 1  # the next uploader is empty, and the file's bytes can go
    digest = sha256(data).hexdigest()
    cache.keep_opened(digest, bundle)
    state.show(*_selection(bundle, digest))


def _selection(bundle: Bundle, digest: str) -> tuple[Selection, list[str]]:
    """What a bundle shows, with a notice for every choice in it that there is not."""
    tokens, target, name = bundle.trace.tokens, bundle.trace.target_tokens, bundle.trace.provenance.model
    settings = {name: value for name, value in bundle.settings.items() if name not in ("model", "bundle")}
    settings |= {
        "text": tokens.text,
        "second": (target.text if target else tokens.text_pair) or "",
        "cut": "1" if any(tokens.n_cut) else "0",
        "masked": ",".join(map(str, tokens.masked)),
        "kind": bundle.kind,
        "show": bundle.show,
        "colour": bundle.colour,
        **{part: str(getattr(bundle, part)) for part in ("layer", "head", "query", "key")},
    }
    selection, notices = from_params(settings)
    is_offered = name in [one.name for one in offers()]
    return replace(selection, model=name if is_offered else state.chosen().model, bundle=digest), notices


def banner(bundle: Bundle) -> None:
    """Says that a bundle is shown, and how to leave it."""
    source = bundle.trace.provenance
    with st.container(horizontal=True, vertical_alignment="center", key="bundle_banner"):
        st.caption(
            f":material/folder_zip: Shown as recorded in a bundle: {literal(source.model)}, revision "
            f"{literal(source.revision)}. Another sentence, model or mask leaves it.",
            width="content",
        )
        st.button(
            "Leave the bundle",
            key="leave_bundle",
            on_click=state.change,
            kwargs={"bundle": ""},
            help="Computes the same sentence with the model chosen in the sidebar.",
        )
