"""What the heads of a model are called, on every page that shows heads.

One concept: the probes of the model that is shown. They are of the model and not of the text, so they are found once, by a worker
process, after the first page with a grid of heads has drawn it; until then, and for an opened bundle, heads have no names.
"""

from typing import Any

import streamlit as st

from attnviz.heads.probes import HeadProbes
from attnviz.model.catalogue import offer
from attnviz.records import Kind
from ui.page.view import View
from ui.page.waiting import REFUSALS, is_there, whole_page
from ui.words.literal import literal
from ui.work import probes
from ui.work.jobs import TELLS_PROGRESS, Job, job
from ui.work.remembered import NUMBERS


def known_probes(view: View) -> HeadProbes | None:
    """The probes of the model on screen; None until they are found, for a bundle, and for cross-attention."""
    if view.selection.bundle:
        return None
    found: dict[Kind, HeadProbes] | None = NUMBERS.found(_key(view))
    return None if found is None else found.get(view.kind)


def find_probes(view: View) -> bool:
    """Has the probes found, with how far that is, and the page drawn once more with them; whether they are known.

    Pages call it after what they are for.
    """
    if view.selection.bundle or view.kind == "cross":
        return False
    if NUMBERS.found(_key(view)) is not None:
        return True
    work = _job(view)
    if isinstance(work.error, REFUSALS):
        st.caption(literal(str(work.error)))
    elif is_there(work, None, "Naming the heads: reading repeated random tokens", key="names_act"):
        NUMBERS.keep(_key(view), work.results[0])
        whole_page()  # which has drawn its heads without names
    return False


def _key(view: View) -> tuple[Any, ...]:
    return __name__, offer(view.selection.model).name


def _job(view: View) -> Job:
    name = offer(view.selection.model).name
    return job("probes", name, lambda: [(probes.probe, (name,), TELLS_PROGRESS)])
