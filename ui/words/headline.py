"""The sentence below the tokens: the strongest fact about the query comes first, even if its key is not selected.

`attnviz.heads.facts.headline` computes it.
"""

import numpy as np

from attnviz.figures.numbers import share_text
from attnviz.heads.facts import Given, Headline, given, headline
from attnviz.records import AttentionPattern
from ui.words.findings import finding, is_itself, key_name, name, named_again, together


def headline_words(pattern: AttentionPattern, query: int, key: int) -> str:
    """Where a query mostly attends, or that it spreads its attention; then the selected key, if that is another.

    For what is no weight, and for a query or key that is not shown, the `finding`. Plain text, like `finding`.
    """
    row, column = pattern.queries.index(query), pattern.keys.index(key)
    if pattern.measure != "weights" or row is None or column is None:
        return finding(pattern, query, key)
    facts, selected = headline(pattern, row, share_text), given(pattern, row, column, share_text)
    named = facts.named or selected.strongest
    sentence = (
        _looks(pattern, query, row, facts) if facts.named else _spreads(pattern, query, facts, selected)
    )
    among = "among the shown keys, " * selected.of_shown
    amount = share_text(selected.amount)
    rest = f"; {name(pattern.keys, key)} gets {amount}"
    if is_itself(pattern, query, key):
        rest = (
            f" and at itself ({amount})"
            if _comes_next(pattern, row, column, facts)
            else f"; it gives itself {amount}"
        )
    hidden = (
        f"; {share_text(selected.hidden)} of {'all ' * selected.of_shown}its attention goes to hidden keys"
    )
    is_said = not named or int(pattern.keys.positions[column]) in named
    return f"{among}{sentence}{rest * (not is_said)}{hidden * (selected.hidden > 0)}."


def _comes_next(pattern: AttentionPattern, row: int, column: int, facts: Headline) -> bool:
    """Whether no shown key that is not named has more than this one, after keys that are."""
    others = ~np.isin(pattern.keys.positions, facts.named)
    return bool(facts.named) and bool(
        pattern.weights[row, column] >= pattern.weights[row, others].max(initial=0.0)
    )


def _looks(pattern: AttentionPattern, query: int, row: int, facts: Headline) -> str:
    """The few keys, each with its weight."""
    weights = dict(zip(pattern.keys.positions.tolist(), pattern.weights[row].tolist(), strict=True))
    each = [f"{key_name(pattern, query, key)} ({share_text(weights[key])})" for key in facts.named]
    is_all = len(each) == facts.n_seen and not pattern.hidden_weight[row]
    listed = f"{', '.join(each[:-1])} and {each[-1]}" if len(each) > 1 else each[0]
    return f"{name(pattern.queries, query)} looks {'only' if is_all else 'mostly'} at {listed}"


def _spreads(pattern: AttentionPattern, query: int, facts: Headline, selected: Given) -> str:
    """The strongest key's weight, compared with an equal share."""
    here = name(pattern.queries, query)
    is_part = selected.hides_keys and not selected.of_shown
    if not selected.strongest:
        return f"{here} gives no {'shown ' * is_part}key anything"
    several = len(selected.strongest) > 1
    shares = f"the largest share{'s' * several}, {share_text(selected.largest)}{' each' * several},"
    if facts.n_seen == 1:
        only = key_name(pattern, query, selected.strongest[0])
        return f"{here} gives {share_text(selected.largest)} of its attention to {only}"
    keys = f"{facts.n_seen:,} {'shown ' * is_part}keys"
    equal = share_text(facts.equal)
    if len(selected.strongest) == facts.n_seen:
        return f"{here} gives each of {keys} {share_text(selected.largest)} of its attention"
    most = together([named_again(pattern, query, key) for key in selected.strongest])
    if is_part:
        return f"of {keys}, {here} gives {shares} to {most}; an equal share is {equal}"
    go = "go" if several else "goes"
    return f"{here} spreads its attention over {keys}; {shares} {go} to {most}; an equal share is {equal}"
