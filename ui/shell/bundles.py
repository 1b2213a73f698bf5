"""Opening a bundle: its trace replaces the computed one, for this session alone.

The bundle's own verdict is only what the file says. A verdict on the bundle is computed here on request: its text is run
again.
"""

from dataclasses import dataclass
from hashlib import sha256

import streamlit as st

from attnviz.bundle.bundle import Bundle
from attnviz.bundle.changes import changes_in_words
from attnviz.bundle.comparison import check_unchanged, check_weights
from attnviz.bundle.reading import read_bundle
from attnviz.errors import BundleError, VerificationError
from attnviz.model.catalogue import locate, offers
from attnviz.model.interventions import ReplacedWeights
from attnviz.records import VerificationReport
from ui.choice import state
from ui.choice.selection import Selection, from_params
from ui.limits import UPLOAD_MB
from ui.runtime import cache, events, uploads
from ui.runtime.uploads import keep, opened
from ui.session import of_session
from ui.words.literal import literal


@dataclass(slots=True)
class Uploads:
    """The visitor's bundles: how many were uploaded and opened, the last one's problem, and which is compared."""

    n_brought: int = 0
    n_opened: int = 0
    problem: str = ""
    compared: str = ""
    """SHA-256 of the bundle whose text is run again."""


def _uploader_key() -> str:
    """A new key after each file, so that the next uploader is empty."""
    return f"bundle_{of_session(Uploads).n_brought}"


def n_opened() -> int:
    """How many bundles the visitor has opened."""
    return of_session(Uploads).n_opened


def uploader() -> None:
    """The field that takes a file, and what was wrong with the last one."""
    st.file_uploader(
        "Open a bundle",
        type="zip",
        max_upload_size=UPLOAD_MB,
        key=_uploader_key(),
        on_change=_open,
        help="A zip from “Export” or `attnviz export`; its numbers are shown as they were recorded.",
    )
    if problem := of_session(Uploads).problem:
        st.error(literal(problem), icon=":material/error:")


def _open() -> None:
    # A message that arrives before the page is redrawn with the next uploader reports a changed file, since its bytes are
    # gone; the new key does not exist yet, and the problem with the file still has to be shown.
    here, file = of_session(Uploads), st.session_state.get(_uploader_key())
    state.hold()
    if file is None:
        return
    here.n_brought += 1
    here.problem = ""
    data = file.getvalue()
    uploads.forget(file)
    try:
        bundle = read_bundle(data, most_bytes=UPLOAD_MB * 1_000_000)
    except BundleError as error:
        here.problem = str(error)
        events.refused(type(error).__name__, megabytes=len(data) // 1_000_000)
        return
    here.n_opened += 1
    digest = sha256(data).hexdigest()
    keep(digest, bundle)
    state.show(*_selection(bundle, digest))


def _selection(bundle: Bundle, digest: str) -> tuple[Selection, list[str]]:
    """A bundle's selection, with a notice for every recorded choice that does not exist."""
    tokens, target, name = bundle.trace.tokens, bundle.trace.target_tokens, bundle.trace.provenance.model
    settings = {name: value for name, value in bundle.settings.items() if name not in ("model", "bundle")}
    settings |= {
        "text": tokens.text,
        "second": (target.text if target else tokens.text_pair) or "",
        "source_language": tokens.language or "",
        "target_language": (target and target.language) or "",
        "template": tokens.template,
        "cut": "1" if any(tokens.n_cut) else "0",
        "masked": ",".join(map(str, tokens.masked)),
        "kind": bundle.kind,
        "show": bundle.show,
        "colour": bundle.colour,
        **{part: str(getattr(bundle, part)) for part in ("layer", "head", "query", "key")},
    }
    selection, notices = from_params(settings)
    is_offered = name in [offer.name for offer in offers()]
    return selection.but(model=name if is_offered else state.chosen().model, bundle=digest), notices


def banner(bundle: Bundle) -> None:
    """Says that a bundle is shown and what is known of it, with buttons to compare and to close it."""
    source = bundle.trace.provenance
    changed = bundle.trace.interventions
    sentence = f"The run was changed: {literal(changes_in_words(changed))}. " if changed else ""
    is_replaced = any(isinstance(change, ReplacedWeights) for change in changed)
    calls = [call for of_kind in bundle.trace.layers.values() for call in of_kind]
    has_bias = any(call.bias is not None for call in calls)
    has_cap = any(call.softcap is not None for call in calls)
    with st.container(horizontal=True, vertical_alignment="center", key="bundle_banner"):
        st.caption(
            f":material/folder_zip: From a bundle, as recorded: {literal(source.model)}, revision {literal(source.revision)}. {sentence}",
            width="content",
            help=f"The attention weights{' that were not replaced' * is_replaced} follow from the queries, keys, mask"
            f"{', bias' * has_bias}{', softcap' * has_cap} and scale in this file. Another sentence, model or mask token closes it.",
        )
        _compare_button(state.chosen().bundle)
        st.button(
            "Close the bundle",
            key="leave_bundle",
            on_click=state.change,
            kwargs={"bundle": ""},
            help="Computes the same sentence with the model selected above.",
        )


def _compare_button(digest: str) -> None:
    """The button that runs an opened bundle's text again, or why that cannot be done; nothing once it was run."""
    if reason := obstacle(digest):
        st.caption(literal(reason), width="content")
        return
    if not was_asked(digest):
        st.button(
            "Run and compare",
            icon=":material/fact_check:",
            key="compare_bundle",
            on_click=_ask,
            help="Runs the text on the same weights here and compares the bundle's tokens, vectors, weights and outputs, in "
            "every layer and head, with the model's.",
        )


def _ask() -> None:
    state.hold()
    of_session(Uploads).compared = state.chosen().bundle


def was_asked(digest: str) -> bool:
    """Whether this session asked to compare the bundle with this digest."""
    return bool(digest) and of_session(Uploads).compared == digest


UNKNOWN_WEIGHTS = (
    "The bundle does not say which weights it was made with, so it cannot be compared with the model."
)
NO_WEIGHTS = "These weights are not on this machine, so the bundle cannot be compared with the model."


def obstacle(digest: str) -> str:
    """Why an opened bundle cannot be compared with a model here, in a sentence; empty if nothing is known to prevent it.

    The model here, whose SHA-256 takes a second per 500 MB, is loaded only once the comparison is requested.
    """
    bundle = opened(digest)
    if bundle is None:
        return "The bundle is not open here."
    try:
        check_unchanged(bundle)
    except VerificationError as error:
        return str(error)
    name = bundle.trace.provenance.model
    if not bundle.weights_sha256:
        return UNKNOWN_WEIGHTS
    if not any(offer.name == name and locate(offer) is not None for offer in offers()):
        return NO_WEIGHTS
    if was_asked(digest):
        try:
            check_weights(bundle, cache.model(name))
        except VerificationError as error:
            return str(error)
    return ""


def compared(selection: Selection) -> VerificationReport | None:
    """The verdict on the shown bundle, computed here; None if no bundle is shown, or it was not or cannot be compared.

    Raises:
        AttnvizError: the model here cannot be loaded, or the bundle's numbers cannot be compared with the model's.
    """
    if not was_asked(selection.bundle) or obstacle(selection.bundle):
        return None
    with st.spinner("Running the text again …"):
        return cache.compared_report(selection.source)
