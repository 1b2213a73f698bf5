"""Names of a model's heads, on every page that shows heads.

The names for the model that is shown depend on the model, not on the text: they come from its profile of many
texts if there is one, and otherwise from probes with random tokens, which a worker process computes once, after the
first page with a grid of heads has drawn it; until then heads have no names.
"""

from typing import Any

import streamlit as st

from attnviz.corpus.naming import HeadName, is_done_here
from attnviz.corpus.profile import probes_of
from attnviz.heads.probes import HeadProbes
from attnviz.model.catalogue import offer
from attnviz.records import Kind
from ui.runtime import cache, probes, profiles
from ui.runtime.jobs import TELLS_PROGRESS, Job, job
from ui.runtime.remembered import NUMBERS
from ui.shell.view import View
from ui.shell.waiting import REFUSALS, is_there, whole_page
from ui.words.head_names import HeadNames, head_words, names_of_probes, names_of_profile
from ui.words.literal import literal


def known_names(view: View) -> HeadNames | None:
    """Names of the heads on screen; None until they are known, for cross-attention, and for a bundle of unknown weights."""
    if (named := profiles.naming_profile(cache.weights(view.selection.source))) is not None:
        listed, profile = named
        if view.kind in profile.kinds:
            names = profiles.names(profile, view.kind)
            corpus = f"“{listed.name}”"
            return (
                names_of_profile(
                    names, "the bundled sentences", "many texts", profile.n_text, is_bundled=True
                )
                if listed.is_bundled
                else names_of_profile(names, corpus, corpus, profile.n_text, is_bundled=False)
            )
    probed = known_probes(view)
    return None if probed is None else names_of_probes(probed)


def of_selected(view: View, names: HeadNames | None, attends: str = "", *, knows_text: bool) -> str:
    """The selected head's `head_words`, without names for what it does not do on the text.

    Args:
        attends, knows_text: as for `head_words`.
    """

    def here(name: HeadName) -> bool:
        if not name.relation or names is None or view.trace.is_long(view.kind):
            return True
        pattern = view.trace.pattern(*view.selection.place, view.kind)
        return is_done_here(name, pattern, in_english=names.in_english)

    return head_words(attends, names, view.selection.place, knows_text=knows_text, is_done_here=here)


def known_probes(view: View) -> HeadProbes | None:
    """The probes of the model on screen, from its profile if it has one; None until computed, and for cross-attention."""
    if (probes := profiles.naming_profile(cache.weights(view.selection.source))) is not None:
        of_profile = probes_of(probes[1], view.kind)
        if of_profile is not None:
            return of_profile
    if view.selection.bundle:
        return None
    of_kinds: dict[Kind, HeadProbes] | None = NUMBERS.found(_key(view))
    return None if of_kinds is None else of_kinds.get(view.kind)


def find_probes(screen: Any) -> bool:
    """Has the probes computed, shows the progress, and redraws the page with them; returns whether they are known.

    The last block of a part that names heads; called with its screen.
    """
    view: View = screen.view
    if known_probes(view) is not None:
        return True
    if view.selection.bundle or view.kind == "cross" or NUMBERS.found(_key(view)) is not None:
        return False
    work = _job(view)
    if isinstance(work.error, REFUSALS):
        st.caption(literal(str(work.error)))
    elif is_there(work, None, "Naming the heads: reading repeated random tokens", key="names_act"):
        NUMBERS.keep(_key(view), work.results[0])
        whole_page()  # it has drawn its heads without names
    return False


def _key(view: View) -> tuple[Any, ...]:
    return __name__, offer(view.selection.model).name


def _job(view: View) -> Job:
    name = offer(view.selection.model).name
    return job("probes", name, lambda: [(probes.probe, (name,), TELLS_PROGRESS)])
