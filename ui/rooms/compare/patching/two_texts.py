"""Two sentences, what is patched from the second into the first, and the jobs that do so."""

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Annotated, Any, ClassVar, Literal

import streamlit as st

from attnviz.effects.attribution_patching import attribute_patches
from attnviz.effects.patches import Patches, patch_states
from attnviz.effects.patching import (
    OF_HEADS,
    Carried,
    PatchEffects,
    PatchGrid,
    PathEnd,
    differing,
    is_shifted,
)
from attnviz.figures.numbers import counted
from attnviz.model.trace import Trace
from attnviz.records import Tokens
from ui.choice import state, widgets
from ui.choice.exchanged import exchanged
from ui.choice.fields import Text, Word
from ui.choice.presets import DOOR_IT
from ui.choice.selection import choices
from ui.rooms.cause import outcome
from ui.rooms.cause.own_run import MeasuredRun
from ui.runtime import cache, with_model
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job
from ui.runtime.with_model import Measuring, TextRef
from ui.shell.view import View

SHARES = 8
"""Number of calls that the rows are divided into, so that parts of the map can be shown early."""
PatchedAt = Literal["all", "selected", "each"]
"""The tokens at which the components of heads are patched."""
PatchedPath = Literal["any", "outcome", "query", "key", "value"]
"""The path of a patched head output."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class PatchingSettings:
    """The sentence whose states are patched in, and which states."""

    PREFIX: ClassVar = "patch_"

    text: Annotated[
        str,
        Text(
            title="Sentence B",
            help="Copies the hidden states of this sentence into the run of the sentence above; both need the same "
            "number of tokens.",
        ),
    ] = ""
    """Empty for the sentence with one word exchanged."""
    carried: Annotated[
        Carried,
        Word(
            names={
                "before": "Residual stream before",
                "layer": "Residual stream after",
                "attention": "Attention output",
                "mlp": "MLP output",
                "heads": "Head outputs",
                "query": "Queries",
                "key": "Keys",
                "value": "Values",
                "pattern": "Attention patterns",
            },
            title="Swapped in",
            help="Swaps in this part of the run of sentence B: a hidden state of each layer and token, or a part of each head.",
        ),
    ] = "layer"
    at: Annotated[
        PatchedAt,
        Word(
            names={
                "all": "All tokens",
                "selected": "Selected token",
                "each": "Each token, one layer",
            },
            title="Where",
            help="Swaps it in for every head at all tokens at once, for every head at the selected token, or for the heads of the "
            "selected layer at each token in turn.",
        ),
    ] = "all"
    """For components of heads."""
    path: Annotated[
        PatchedPath,
        Word(
            names={
                "any": "Any",
                "outcome": "Directly to the outcome",
                "query": "To the selected head’s queries",
                "key": "To its keys",
                "value": "To its values",
            },
            title="Path",
            help="Lets a head's output from the run of sentence B go everywhere, or along one path only; all other heads keep theirs.",
        ),
    ] = "any"
    """For head outputs."""

    def renewed(self, before: str, after: str) -> dict[str, str]:
        """Sentence B for another sentence, where it was made from the previous one."""
        return {"patch_text": ""} if self.text == exchanged(before) else {}


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
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
        return PatchGrid(self.view.trace, self.donor, **self.patches.named)

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

    @cached_property
    def shares(self) -> PatchEffects:
        """The effect of every state, once `patching_job` has finished."""
        shares = joined(self.patching_job())
        assert shares is not None
        return shares

    def patching_job(self) -> Job:
        """The job that patches every state."""

        def calls() -> list[Call]:
            n_part = max(1, min(SHARES, len(self._rows)))
            given = patch_states, *self._given, self.patches
            return [
                (with_model.call, given, {"rows": self._rows[first::n_part], **TELLS_PROGRESS})
                for first in range(n_part)
            ]

        return self.job("patching", (self.donor.tokens.text, self.patches), calls)

    def gradient_job(self) -> Job:
        """The job that estimates the effect of every state by the gradient of the outcome."""
        return self.job(
            "attribution_patching",
            (self.donor.tokens.text, self.patches),
            lambda: [(with_model.call, (attribute_patches, *self._given), self.patches.named)],
        )

    @property
    def estimate(self) -> PatchEffects | None:
        """The gradient's estimate, once known; paths have none."""
        if self.patches.end is not None:
            return None
        estimated: PatchEffects | None = self.gradient_job().results[0]
        return estimated

    @property
    def _given(self) -> tuple[Any, ...]:
        """The model, both texts (a whole trace would carry W_O of every layer along) and the outcome, for a call."""
        texts = (TextRef(trace.tokens, trace.target_tokens) for trace in (self.view.trace, self.donor))
        return self.model, *texts, Measuring(self.outcome)


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


def controls(view: View) -> None:
    """The controls for sentence B, for what is patched and where, and for what is measured."""
    title = f"Sentence B ({counted(len(view.trace.tokens), 'token')} too)"
    st.text_input(
        **widgets.field("patch_text", view.selection.but(patch_text=text_of_donor(view)), label=title),
        width=200,
    )
    carried_controls(view)
    outcome.controls(view, outcome.outcome_of(view))


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
    st.selectbox(**widgets.field("patch_carried"), width=200)
    if chosen.carried in OF_HEADS:
        st.segmented_control(**widgets.field("patch_at", required=True))
    if chosen.carried == "heads" and chosen.at != "each" and len(view.trace.kinds) == 1:
        st.selectbox(**widgets.field("patch_path"), width=260)


def two_texts(view: View) -> Screen:
    """The two sentences.

    Raises:
        ShapeError: the numbers of tokens differ; the message says where.
    """
    donor = cache.trace(replace(view.selection.source, text=text_of_donor(view), masked=()))
    differing_tokens, in_encoder = differing(view.trace.tokens, donor.tokens), tuple[int, ...]()
    targets = view.trace.target_tokens, donor.target_tokens
    if view.kind != "encoder" and targets[0] is not None and targets[1] is not None:
        differing_tokens, in_encoder = differing(targets[0], targets[1]), differing_tokens
    return Screen(
        view=view,
        outcome=outcome.outcome_of(view),
        donor=donor,
        differing=differing_tokens,
        differing_in_encoder=in_encoder,
    )


def joined(work: Job) -> PatchEffects | None:
    """The results of a job's calls so far, joined; None before the first has returned."""
    parts: list[PatchEffects] = [result for result in work.results if result is not None]
    return reduce(PatchEffects.joined, parts) if parts else None
