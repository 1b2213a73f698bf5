"""Downloads that continue while a visitor looks at something else."""

import threading
from dataclasses import dataclass, field

import streamlit as st
from cachetools import TTLCache, cached

from attnviz.errors import AttnvizError
from attnviz.figures.numbers import counted
from attnviz.model.catalogue import Offer
from attnviz.model.download import download_model, download_size
from ui import limits
from ui.runtime import events
from ui.shell import waiting
from ui.streamlit_fixes.redrawn_block import redrawn_block
from ui.words.literal import literal


@dataclass(slots=True)
class _Download:
    """One download, shared by all visitors who wait for it."""

    name: str
    done: int = 0
    total: int = 0
    error: Exception | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        events.download_begun(self.name)
        progress = events.Progress("download_progress", model=self.name)

        def is_at(done: int, total: int) -> None:
            self.done, self.total = done, total
            progress.is_at(done / max(1, total))

        try:
            download_model(self.name, on_progress=is_at)
        except Exception as error:  # noqa: BLE001  (nothing above a thread catches it; the panel shows it)
            self.error = error
        events.download_ended(self.name, progress.seconds, self.done, self.error)


_downloads: dict[str, _Download] = {}
"""Downloads under way or failed, by model; one per model for the whole server."""


@cached(TTLCache(256, ttl=60), key=lambda name, offer: name)
def _size(name: str, offer: Offer) -> int | str:
    try:
        return download_size(offer)
    except AttnvizError as error:
        return str(error)


def effort(offer: Offer) -> str:
    """Size and time of a download, "441 MB, about 1 minute at 50 Mbit/s"; empty if the size is unknown."""
    if not is_allowed():  # then the Hub is not asked
        return ""
    size = _size(offer.name, offer)
    return "" if isinstance(size, str) else f"{size / 1e6:,.0f} MB, {_minutes(size)} at 50 Mbit/s"


def panel(offer: Offer) -> None:
    """Size and Download button of a model that is not on disk, its progress, or what went wrong."""
    with st.container(border=True, key="download"):
        running = _downloads.get(offer.name)
        if running is not None and running.thread.is_alive():
            redrawn_block(lambda: _progress(offer), waiting.PULSE)
            return
        st.markdown(
            f"**{literal(offer.name)}** ({literal(offer.description)}) is not on this machine yet."
            if offer.description
            else f"**{literal(offer.name)}** is not on this machine yet."
        )
        if running is not None and running.error is not None:
            st.error(literal(str(running.error)), icon=":material/cloud_off:")
        if not is_allowed():
            st.caption(
                "Only the operator of this server can download it: `attnviz download` on the server, or ATTNVIZ_DOWNLOADS."
            )
            return
        size = _size(offer.name, offer)
        if isinstance(size, str):
            st.caption(f"Its size is not known: {literal(size)}")
        else:
            st.caption(
                f"{size / 1e6:,.0f} MB from the Hugging Face Hub, {_minutes(size)} at 50 Mbit/s. The weights stay on this "
                "machine; your sentences never leave it."
            )
        st.button(
            "Download" if isinstance(size, str) else f"Download {size / 1e6:,.0f} MB",
            icon=":material/download:",
            key="start_download",
            on_click=_start,
            args=(offer.name,),
            help="Fetches the weights from the Hugging Face Hub once. After that the model needs no network.",
        )


def _minutes(size: int) -> str:
    """How long a download of so many bytes takes at 50 Mbit/s, in whole minutes."""
    minutes = max(1, round(size / (50e6 / 8) / 60))
    return f"about {counted(minutes, 'minute')}"


def is_allowed() -> bool:
    """Whether this visitor may start a download; visitors on the server's own machine come through no proxy."""
    if limits.DOWNLOADS != "local":
        return limits.DOWNLOADS == "yes"
    through_proxy = any(name in st.context.headers for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"))
    return _address() in (None, "127.0.0.1", "::1") and not through_proxy


def _address() -> str | None:
    """IP address of the visitor's browser; Streamlit gives None for this machine."""
    return st.context.ip_address


def _start(name: str) -> None:
    if not is_allowed():  # there is no button, but a message can be forged
        return
    running = _downloads.get(name)
    if running is None or not running.thread.is_alive():
        _downloads[name] = _Download(name)


def _progress(offer: Offer) -> None:
    running = _downloads[offer.name]
    if not running.thread.is_alive():
        waiting.whole_page()
    if running.total:
        st.progress(
            min(1.0, running.done / running.total),
            text=f"{literal(offer.name)}: {running.done / 1e6:,.1f} of {running.total / 1e6:,.1f} MB",
        )
    else:
        st.progress(0.0, text=f"{literal(offer.name)}: asking the Hub …")
