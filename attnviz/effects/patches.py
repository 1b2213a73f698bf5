"""Which states are patched, and where, as one record: for single states and for paths, in two texts or in a pair of prompts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnviz.arguments import typed
from attnviz.effects import patching
from attnviz.effects.outcome import AnyOutcome
from attnviz.effects.patching import Carried, PatchEffects, PathEnd
from attnviz.effects.path_patching import patch_paths
from attnviz.effects.prompts import PromptPair, prepared
from attnviz.records import Kind, Progress

if TYPE_CHECKING:
    from attnviz.model.model import Model
    from attnviz.model.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Patches:
    """Which states are patched, as arguments of `attnviz.effects.patching.patch`; with an end, of `patch_paths`."""

    kind: Kind
    carried: Carried
    layer: int | None = None
    position: int | None = None
    end: PathEnd | None = None

    @property
    def named(self) -> dict[str, Any]:
        """All but the end."""
        return {
            "kind": self.kind,
            "carried": self.carried,
            "layer": self.layer,
            "position": self.position,
        }


@typed
def patch_states(
    model: "Model",
    receiver: "Trace",
    donor: "Trace",
    outcome: AnyOutcome,
    patches: Patches,
    *,
    rows: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> PatchEffects:
    """The receiver's outcome with one state, or one path, at a time patched from the donor's text.

    Args:
        rows: layers or heads, as in `attnviz.effects.patching.patch`; None for all.
    """
    given = model, receiver, donor, outcome
    if patches.end is not None:
        return patch_paths(*given, patches.end, position=patches.position, layers=rows, progress=progress)
    return patching.patch(*given, **patches.named, rows=rows, progress=progress)


def patch_pair(
    model: "Model", pair: PromptPair, patches: Patches, *, progress: Progress | None = None
) -> PatchEffects:
    """The outcome of the clean prompt with one state of the corrupted prompt patched in at a time."""
    return patch_states(model, *prepared(model, pair), patches, progress=progress)
