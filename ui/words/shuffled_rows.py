"""Whether a row of weights matters, in words: what its permutations change, and whether the model's own order stands out among them."""

from attnviz.effects.row_shuffle import PREDICTION, ShuffledRow
from attnviz.figures.numbers import counted, number_text, share_text

LEVEL = 0.05
"""p up to which the model's own order is said to stand out."""


def row_words(row: ShuffledRow, *, keeps_special: bool) -> str:
    """What shuffling a row changes, for the token's own state or the next token's distribution.

    Args:
        keeps_special: whether special tokens have kept their weights.
    """
    if row.is_even:
        return "All keys of this row have the same weight, so that shuffling them tells nothing."
    among = "its keys other than special tokens" if keeps_special else "its keys"
    if not row.has_effect:
        return f"Shuffled among {among}, this row changes nothing: the model's output does not depend on where this head looks here."
    if row.outcome.startswith(PREDICTION):
        change = f"moves {share_text(row.change)} of the next token's probability"
    else:
        change = f"turns its token's last hidden state by {number_text(row.change)} (1 − cosine)"
    return f"Shuffled among {among}, this row {change}, the median of {counted(len(row.orders), 'order')}; {p_words(row.p)}."


def p_words(p: float) -> str:
    """Whether the model's own order of the weights is one of many."""
    if p > LEVEL:
        return f"orders by chance take it as far from their mean as the model's own ({p_text(p)})"
    return f"the model's own order takes it farther from their mean than orders by chance ({p_text(p)})"


def p_text(p: float) -> str:
    """A p of a few orders, to two digits."""
    return f"p = {p:.2g}"
