"""Where do queries and keys lie? One head's vectors as points, linked with its matrix, and how reliable they are."""

from ui.part import Part

PART = Part(
    name="Other maps",
    address="query_key_map",
    question="Where do the queries and keys of a head lie?",
    asks=("sentence", "head", "rows"),
    terms=(
        "Query",
        "Key",
        "Attention map",
        "t-SNE",
        "Perplexity",
        "UMAP",
        "PCA",
        "Classical MDS",
        "Lifted vectors",
        "Rank correlation",
        "Permutation test",
        "Trustworthiness",
        "KL divergence",
    ),
    sheets=(),
)
