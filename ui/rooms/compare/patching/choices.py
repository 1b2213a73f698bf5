"""The sentence whose states are patched in, and which states."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from attnviz.effects.patching import Carried
from ui.choice.exchanged import exchanged
from ui.choice.fields import Text, Word
from ui.choice.selection import choices

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
