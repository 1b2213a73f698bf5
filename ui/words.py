"""Findings in words."""

import numpy as np

from attnviz.figures.theme import isolated, share_text
from attnviz.records import AttentionPattern, Projection, Tokens


def strongest_key(pattern: AttentionPattern, query: int) -> int:
    """Position of the key that a query gives most weight, special tokens aside unless there are no others."""
    row = int(np.flatnonzero(pattern.query_position == query)[0])
    weights = pattern.weights[row].copy()
    is_special = pattern.key_tokens.is_special[pattern.key_position]
    if not is_special.all():
        weights[is_special] = -1
    return int(pattern.key_position[weights.argmax()])


def finding(pattern: AttentionPattern, query: int, key: int) -> str:
    """What the picked query gives to the picked key, and where most of its attention goes if elsewhere.

    Plain text: a page that shows it as Markdown makes it `literal`.
    """
    row = pattern.weights[int(np.flatnonzero(pattern.query_position == query)[0])]
    weight = row[int(np.flatnonzero(pattern.key_position == key)[0])]
    said = f"{_name(pattern.query_tokens, query)} gives {share_text(float(weight))} of its attention to "
    said += f"{_name(pattern.key_tokens, key)}"
    most = int(pattern.key_position[row.argmax()])
    if most == key or row.max() == 0:
        return f"{said}."
    return f"{said}; most, {share_text(float(row.max()))}, goes to {_name(pattern.key_tokens, most)}."


def _name(tokens: Tokens, position: int) -> str:
    """A token in quotation marks, with its position where the text has it twice."""
    label = tokens.labels[position]
    twice = tokens.labels.count(label) > 1
    return f"“{isolated(label)}”" + (f" (token {position})" if twice else "")


def map_note(projection: Projection) -> str:
    """How the map was made, what had to be changed for it, and how far it can be believed."""
    used = projection.parameters
    note = projection.remark
    if used:
        note = (
            f"t-SNE, {used['metric']} distance, perplexity {used['perplexity']:.3g}, {used['iterations']} "
            f"iterations, seed {used['seed']}. {note}"
        ).rstrip()
    if np.isnan(projection.neighbour_agreement):
        return note
    correlation = f"{projection.order_correlation:+.2f}".replace("-", "−")
    return (
        f"{note} How far to believe it: the nearest key is the one with the largest weight for "
        f"{100 * projection.neighbour_agreement:.0f} % of the queries; near and strong go together with "
        f"{correlation} (−1 always, 0 not at all)."
    )


_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(number: float) -> str:
    """A small number in powers of ten: "9.2 × 10⁻⁷"; "0" and "not a number" as they are."""
    if not np.isfinite(number):
        return "not a number"
    if number == 0:
        return "0"
    digits, exponent = f"{number:.1e}".split("e")
    raised = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
    return raised if digits == "1.0" else f"{digits} × {raised}"
