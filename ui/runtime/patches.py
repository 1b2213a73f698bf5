"""Which states are patched from another text, and where: for a job, and for the Python that Export writes."""

from dataclasses import dataclass

from attnviz.effects.patching import Carried, PathEnd
from attnviz.records import Kind, Tokens

Read = tuple[Tokens, Tokens | None]
"""A model's tokens, and the decoder's where there is an encoder. A whole trace would carry W_O of every layer along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patches:
    """Which states are patched, as arguments of `attnviz.effects.patching.patch`.

    With an end, as arguments of `attnviz.effects.path_patching.patch_paths`.
    """

    kind: Kind
    carried: Carried
    layer: int | None = None
    position: int | None = None
    end: PathEnd | None = None
