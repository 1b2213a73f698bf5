"""Which kinds of attention are there? The same queries, keys and values under another mask, and tile by tile."""

from ui.part import Part

PART = Part(
    name="Kinds of attention",
    address="kinds_of_attention",
    question="What if a token could see fewer others?",
    terms=(
        "Mask",
        "Causal mask",
        "Sliding window",
        "Self-attention",
        "Cross-attention",
        "Encoder",
        "Decoder",
        "Streaming softmax",
    ),
    sheets=(),
)
