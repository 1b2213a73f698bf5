"""Which states of another text are carried over, and into what: what a job is asked, and Export writes."""

from dataclasses import dataclass

from attnviz.effects.patching import Carried, PathEnd
from attnviz.records import Kind, Tokens

Read = tuple[Tokens, Tokens | None]
"""What a model reads, and what its decoder reads where it has an encoder too. A trace would bring W_O of every layer along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patches:
    """Which states are carried over, as arguments of `attnviz.effects.patching.patch`.

    Where there is an end, as those of `attnviz.effects.path_patching.patch_paths`.
    """

    kind: Kind
    carried: Carried
    layer: int | None = None
    position: int | None = None
    end: PathEnd | None = None
