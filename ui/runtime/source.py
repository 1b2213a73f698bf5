"""What a trace is made from, as plain values that a cache can compare."""

from dataclasses import dataclass

from attnviz.records import Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a trace is made from."""

    model: str
    text: str
    second: str = ""
    source_language: str = ""
    """Empty for the tokenizer's default, like the next."""
    target_language: str = ""
    template: Template = "plain"
    """What is added around the text."""
    cut: bool = False
    masked: tuple[int, ...] = ()
    """Positions of tokens replaced by the mask token."""
    layers: int = 0
    """How many layers of a long text are shown while the others are being computed; 0 for all."""
    bundle: str = ""
    """SHA-256 of the opened bundle that replaces the model; empty for none."""
