"""The two sentences of the page, and the jobs that patch states of one into the other."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import streamlit as st

from attnviz.effects.outcome import Outcome
from attnviz.effects.patching import OF_HEADS, PatchEffects, PatchGrid, PathEnd, differing, is_shifted
from attnviz.figures.numbers import counted
from attnviz.model.trace import Trace
from attnviz.records import Tokens
from ui.choice import state, widgets
from ui.choice.exchanged import exchanged
from ui.choice.presets import DOOR_IT
from ui.rooms.cause import outcome
from ui.rooms.cause.own_run import MeasuredRun
from ui.rooms.compare.patching import jobs
from ui.rooms.compare.patching.choices import PatchingSettings
from ui.runtime import cache
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job
from ui.runtime.patches import Patches, Read
from ui.shell.view import View

SHARES = 8
"""Number of calls that the rows are divided into, so that parts of the map can be shown early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen(MeasuredRun):
    """Two sentences with the same number of tokens, and what is patched from the second into the first."""

    donor: Trace
    differing: tuple[int, ...]
    """Positions at which the queries' tokens differ."""
    differing_in_encoder: tuple[int, ...]
    """Positions at which the encoder's tokens differ, if the queries are a decoder's."""

    @property
    def tokens(self) -> tuple[Tokens, Tokens]:
        """The tokens at whose positions states are patched, of both texts."""
        kind = self.view.kind
        if self.view.selection.of(PatchingSettings).carried in ("key", "value"):
            return self.view.trace.key_tokens(kind), self.donor.key_tokens(kind)
        return self.view.trace.query_tokens(kind), self.donor.query_tokens(kind)

    @property
    def patches(self) -> Patches:
        """Which states are patched."""
        return patches_of(self.view)

    @property
    def _rows(self) -> tuple[int, ...]:
        """Layers, or heads of a layer."""
        end = self.patches.end
        n_row = self._grid.n_rows if end is None or end.head is None else end.head.layer
        return tuple(range(n_row))

    @property
    def _grid(self) -> PatchGrid:
        patches = self.patches
        return PatchGrid(
            self.view.trace,
            self.donor,
            carried=patches.carried,
            kind=patches.kind,
            layer=patches.layer,
            position=patches.position,
        )

    @property
    def n_cells(self) -> int:
        """Cells that are patched."""
        return len(self._grid.cells(self._rows))

    @property
    def n_tokens(self) -> int:
        """Tokens of all runs."""
        n_run = self.n_cells * (1 if self.patches.end is None else 2)
        return n_run * len(self.view.trace.tokens)

    @property
    def is_shifted(self) -> bool:
        """Whether words of one sentence are at other positions in the other sentence."""
        return is_shifted(*self.tokens)

    def patching_job(self) -> Job:
        """The job that patches every state."""

        def calls() -> list[Call]:
            shares = max(1, min(SHARES, len(self._rows)))
            rows = [self._rows[first::shares] for first in range(shares)]
            return [(jobs.patch, self._texts, {"rows": some, **TELLS_PROGRESS}) for some in rows]

        return self.job("patching", (self.donor.tokens.text, self.patches), calls)

    def gradient_job(self) -> Job:
        """The job that estimates the effect of every state by the gradient of the outcome."""
        return self.job(
            "attribution_patching",
            (self.donor.tokens.text, self.patches),
            lambda: [(jobs.attribute_patches, self._texts, {})],
        )

    @property
    def _texts(self) -> tuple[Any, ...]:
        """The first arguments of a call."""
        first, second = (read(trace) for trace in (self.view.trace, self.donor))
        return self.model, first, second, str(self.outcome), self.patches


def read(trace: Trace) -> Read:
    """The tokens that the model reads."""
    return trace.tokens, trace.target_tokens


def text_of_donor(view: View) -> str:
    """The sentence whose states are patched in; empty where none is typed and no word of the sentence above is exchanged."""
    return view.selection.of(PatchingSettings).text or exchanged(view.selection.text)


def patches_of(view: View) -> Patches:
    """Which states are patched."""
    chosen, kind = view.selection.of(PatchingSettings), view.kind
    if chosen.carried not in OF_HEADS:
        return Patches(kind=kind, carried=chosen.carried)
    if chosen.at == "each":
        return Patches(kind=kind, carried=chosen.carried, layer=view.selection.layer)
    position = view.query if chosen.at == "selected" else None
    end = None
    if chosen.carried == "heads" and chosen.path != "any":
        end = PathEnd()
        if chosen.path != "outcome":
            end = PathEnd(head=view.selection.place, role=chosen.path)
    return Patches(kind=kind, carried=chosen.carried, position=position, end=end)


def controls(view: View, chosen: Outcome) -> None:
    """The controls for sentence B, for what is patched and where, and for what is measured."""
    title = f"Sentence B (must also have {counted(len(view.trace.tokens), 'token')})"
    st.text_input(
        **widgets.field("patch_text", view.selection.but(patch_text=text_of_donor(view)), label=title)
    )
    with st.container(horizontal=True, vertical_alignment="bottom", key="patching_controls"):
        carried_controls(view)
    with st.container(horizontal=True, vertical_alignment="bottom", key="outcome_controls"):
        outcome.controls(view, chosen)


def without_donor(view: View) -> None:
    """What to do where there is no sentence B, and the bundled pair in one click."""
    n_token = counted(len(view.trace.tokens), "token")
    st.markdown(
        f"There is no sentence B yet: attnviz knows no word of this sentence to exchange for another. Type one of {n_token}, or "
        "take the bundled pair."
    )
    st.button(
        "Use the bundled pair",
        key="bundled_pair",
        on_click=state.choose_preset,
        args=(DOOR_IT,),
        help=f"Shows “{DOOR_IT.text}”, and patches in the same sentence with a window.",
    )


def carried_controls(view: View) -> None:
    """The controls for what is patched, and where."""
    chosen = view.selection.of(PatchingSettings)
    st.selectbox(**widgets.field("patch_carried"), width=220)
    if chosen.carried in OF_HEADS:
        st.segmented_control(**widgets.field("patch_at", required=True))
    if chosen.carried == "heads" and chosen.at != "each" and len(view.trace.kinds) == 1:
        st.selectbox(**widgets.field("patch_path"), width=260)


def screen_of(view: View, chosen: Outcome) -> Screen:
    """The two sentences.

    Raises:
        ShapeError: the numbers of tokens differ; the message says where.
    """
    donor = cache.trace(replace(view.selection.source, text=text_of_donor(view), masked=()))
    differing_tokens, in_encoder = differing(view.trace.tokens, donor.tokens), tuple[int, ...]()
    if view.kind != "encoder" and view.trace.target_tokens is not None and donor.target_tokens is not None:
        differing_tokens, in_encoder = (
            differing(view.trace.target_tokens, donor.target_tokens),
            differing_tokens,
        )
    return Screen(
        view=view, outcome=chosen, donor=donor, differing=differing_tokens, differing_in_encoder=in_encoder
    )


def joined(work: Job) -> PatchEffects | None:
    """The results of a job's calls so far, joined; None before the first has returned."""
    parts: list[PatchEffects] = [result for result in work.results if result is not None]
    return reduce(PatchEffects.joined, parts) if parts else None
