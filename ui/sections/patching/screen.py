"""The two sentences of the page, and the job that carries states from one to the other."""

from dataclasses import dataclass, replace
from functools import reduce

import streamlit as st

from attnviz.effects.outcome import Outcome
from attnviz.effects.patching import PatchEffects, differing, is_shifted
from attnviz.model.trace import Trace
from attnviz.records import Tokens
from ui.choice import widgets
from ui.choice.exchanged import exchanged
from ui.page.view import View
from ui.sections import outcome
from ui.sections.own_run import MeasuredRun
from ui.work import cache, experiments
from ui.work.jobs import TELLS_PROGRESS, Call, Job

SHARES = 2
"""Calls that the rows are shared out among, so that as many processes work on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(MeasuredRun):
    """Two sentences of the same number of tokens, and what is carried from the second into the first."""

    donor: Trace
    differing: tuple[int, ...]
    """Positions, of the queries' tokens, at which the two differ."""
    differing_in_encoder: tuple[int, ...]
    """Positions at which the encoder's tokens differ, where the queries are a decoder's."""

    @property
    def tokens(self) -> tuple[Tokens, Tokens]:
        """The tokens at whose positions states are carried, of both texts."""
        kind = self.view.kind
        return self.view.trace.query_tokens(kind), self.donor.query_tokens(kind)

    @property
    def n_rows(self) -> int:
        """Layers, or heads of a layer."""
        trace, kind = self.view.trace, self.view.kind
        is_heads = self.view.selection.patching.carried == "heads"
        return trace.n_heads(self.view.selection.layer, kind) if is_heads else trace.n_layers(kind)

    @property
    def is_shifted(self) -> bool:
        """Whether words of one sentence stand elsewhere in the other."""
        return is_shifted(*self.tokens)

    def patching_job(self) -> Job:
        """The job that carries every state."""
        view, carried = self.view, self.view.selection.patching.carried
        layer = view.selection.layer if carried == "heads" else 0
        name, trace, chosen = self.given

        def calls() -> list[Call]:
            named = {"carried": carried, "kind": view.kind, "layer": layer, **TELLS_PROGRESS}
            return [
                (
                    experiments.patch,
                    (name, trace, self.donor, chosen),
                    named | {"rows": tuple(range(first, self.n_rows, SHARES))},
                )
                for first in range(min(SHARES, self.n_rows))
            ]

        return self.job("patching", (self.donor.tokens.text, view.kind, carried, layer), calls)


def text_of_donor(view: View) -> str:
    """The sentence whose states are carried over."""
    return view.selection.patching.text or exchanged(view.selection.text)


def controls(view: View, chosen: Outcome) -> None:
    """The other sentence, what is carried over, and what is measured."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="patching_controls"):
        title = f"Other sentence (must also have {len(view.trace.tokens)} tokens)"
        st.text_input(
            **widgets.field("patch_text", view.selection.but(patch_text=text_of_donor(view)), label=title)
        )
        st.segmented_control(**widgets.field("patch_carried", required=True))
    with st.container(horizontal=True, vertical_alignment="bottom", key="outcome_controls"):
        outcome.controls(view, chosen)


def look(view: View, chosen: Outcome) -> Screen:
    """The two sentences.

    Raises:
        ShapeError: the numbers of tokens differ; the message says where.
    """
    donor = cache.trace(replace(view.selection.source, text=text_of_donor(view), masked=()))
    found, in_encoder = differing(view.trace.tokens, donor.tokens), tuple[int, ...]()
    if view.kind != "encoder" and view.trace.target_tokens is not None and donor.target_tokens is not None:
        found, in_encoder = differing(view.trace.target_tokens, donor.target_tokens), found
    return Screen(view=view, outcome=chosen, donor=donor, differing=found, differing_in_encoder=in_encoder)


def joined(work: Job) -> PatchEffects:
    """What the calls of a finished job have found, as one."""
    parts: list[PatchEffects] = work.results
    return reduce(PatchEffects.joined, parts)
