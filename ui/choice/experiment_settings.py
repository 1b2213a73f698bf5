"""What the pages of experiments let people choose: what is measured, changed, carried over or written.

Names in a link are the names of the fields, after the record's ``PREFIX`` where it has one.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from attnviz.effects.ablation import Ablation
from attnviz.effects.patching import Carried
from ui.choice.fields import Branch, Branches, Number, Text, Word

Prompts = Literal["sentence", "set"]
"""What experiments are made on."""
PatchedAt = Literal["all", "selected", "each"]
"""Where what heads are made of is carried over."""
PatchedPath = Literal["any", "outcome", "query", "key", "value"]
"""Where a head's output goes from where it is carried."""

MOST_WRITTEN = 50
"""Tokens that a page lets a model write."""
MOST_BRANCHES = 6
"""Branches of a text that are kept, beside the text as the model writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeSettings:
    """The number of a forward pass that experiments have an effect on, and of which texts."""

    outcome: Annotated[
        str,
        Text(
            title="Outcome",
            help="The number that is measured: answer: with a position, counted from 0 or last, a token, and perhaps another whose "
            "logit is subtracted; rank: with position and token; state: or length: with a position; similarity:another sentence; "
            "or class: with a label.",
        ),
    ] = ""
    """As `attnviz.effects.outcome.outcome_from` reads it; empty for what the model answers itself, and without a language head
    for the similarity with a sentence that differs by one word."""
    prompts: Annotated[
        Prompts,
        Word(
            names={"sentence": "Sentence above", "set": "Set of prompts"},
            title="Prompts",
            help="Measures the outcome of the sentence above, or the difference of two answers' logits for every pair of a table of "
            "prompts, whose mean and standard deviation are shown: the same table in Heads off, Lens and Patching.",
        ),
    ] = "sentence"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectsSettings:
    """How heads are switched off."""

    ablation: Annotated[
        Ablation,
        Word(
            names={"zero": "Zeros", "mean": "Mean"},
            title="Replace head output with",
            help="Replaces a head's output with zeros, or with its mean output at the same position of the reference sentences.",
        ),
    ] = "zero"
    references: Annotated[
        str,
        Text(
            title="Reference sentences, one per line",
            help="Takes the mean output of each head, position by position, over these sentences; over the bundled ones if empty.",
        ),
    ] = ""
    """Empty for the bundled sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchingSettings:
    """The sentence whose states are carried over, and which of them."""

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
    """Of what heads are made of."""
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
    """Of head outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSettings:
    """What a decoder writes after the sentence, and the step that is shown."""

    PREFIX: ClassVar = "write_"

    tokens: Annotated[
        int,
        Number(1, MOST_WRITTEN, title="Tokens", help="Writes at most this many tokens after the sentence."),
    ] = 20
    temperature: Annotated[
        float,
        Number(
            0,
            2,
            step=0.1,
            title="Temperature",
            help="Draws each token with the random seed; a higher temperature makes the probabilities more even, 0 writes the "
            "most likely token.",
        ),
    ] = 0.0
    step: Annotated[
        int, Number(1, MOST_WRITTEN, title="Step", help="Shows what was read when this token was written.")
    ] = 1
    branches: Annotated[
        tuple[Branch, ...],
        Branches(
            most=MOST_BRANCHES, help="Writes further texts, with these tokens in place of the model's own."
        ),
    ] = ()
    branch: Annotated[
        int, Number(0, MOST_BRANCHES, help="Shows this branch; 0 is the text as the model writes it.")
    ] = 0
    beside: Annotated[
        int | None,
        Number(
            0,
            MOST_BRANCHES,
            title="Compare with",
            help="Compares the attention of the selected head with that in another text.",
        ),
    ] = None
    """Number of the branch that is compared with; None for none."""
