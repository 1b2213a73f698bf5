"""Where to search for similar tokens, and by which vectors."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from attnviz.corpus.contexts import Vectors
from ui.choice.fields import Text, Word
from ui.choice.selection import choices


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class FindTokensSettings:
    """The texts that are searched for tokens similar to the selected one, and the vectors compared."""

    PREFIX: ClassVar = "found_"

    corpus: Annotated[
        str,
        Text(title="Texts", help="Looks for tokens in these texts."),
    ] = ""
    """Name of the index's folder; empty for the bundled sentences."""
    vectors: Annotated[
        Vectors,
        Word(
            names={"hidden": "Hidden state", "query": "Query", "key": "Key"},
            title="Compare by",
            help="Finds the tokens with the most similar hidden state after the layer, or query or key of the head.",
        ),
    ] = "hidden"
