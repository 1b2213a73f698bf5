"""The sentence below the tokens: the strongest fact about the query comes first, even if its key is not selected.

One concept: the headline of a row of the matrix. `attnviz.heads.facts.headline` computes it.
"""

from attnviz.figures.numbers import share_text
from attnviz.heads.facts import Given, Headline, given, headline
from attnviz.records import AttentionPattern
from ui.words.findings import finding, name, together


def headline_words(pattern: AttentionPattern, query: int, key: int) -> str:
    """Where a query mostly attends, or that it spreads its attention; then the selected key, if that is another.

    For norm-based weights and rollout, and for a query or key that is not shown, the `finding`. Plain text, like `finding`.
    """
    row, column = pattern.queries.index(query), pattern.keys.index(key)
    if pattern.measure != "weights" or row is None or column is None:
        return finding(pattern, query, key)
    facts, selected = headline(pattern, row), given(pattern, row, column)
    named = facts.named or selected.strongest
    sentence = (
        _looks(pattern, query, row, facts) if facts.named else _spreads(pattern, query, facts, selected)
    )
    among = "among the shown keys, " * selected.of_shown
    rest = f"; {name(pattern.keys, key)} gets {share_text(selected.amount)}"
    hidden = (
        f"; {share_text(selected.hidden)} of {'all ' * selected.of_shown}its attention goes to hidden keys"
    )
    is_said = not named or int(pattern.keys.positions[column]) in named
    return f"{among}{sentence}{rest * (not is_said)}{hidden * (selected.hidden > 0)}."


def _looks(pattern: AttentionPattern, query: int, row: int, facts: Headline) -> str:
    """The few keys, each with its weight."""
    weights = dict(zip(pattern.keys.positions.tolist(), pattern.weights[row].tolist(), strict=True))
    each = [f"{name(pattern.keys, key)} ({share_text(weights[key])})" for key in facts.named]
    is_all = len(each) == facts.n_seen and not pattern.hidden_weight[row]
    listed = f"{', '.join(each[:-1])} and {each[-1]}" if len(each) > 1 else each[0]
    return f"{name(pattern.queries, query)} looks {'only' if is_all else 'mostly'} at {listed}"


def _spreads(pattern: AttentionPattern, query: int, facts: Headline, selected: Given) -> str:
    """The strongest key's weight, compared with an equal share."""
    here = name(pattern.queries, query)
    is_part = selected.hides_keys and not selected.of_shown
    if not selected.strongest:
        return f"{here} gives no {'shown ' * is_part}key anything"
    largest = f"{share_text(selected.largest)}{' each' * (len(selected.strongest) > 1)}"
    most = together([name(pattern.keys, key) for key in selected.strongest])
    if facts.n_seen == 1:
        return f"{here} gives {largest} of its attention to {most}"
    keys = f"{facts.n_seen:,} {'shown ' * is_part}keys"
    equal = share_text(facts.equal)
    if len(selected.strongest) == facts.n_seen:
        return f"{here} spreads its attention evenly, {equal} to each of {keys}"
    if is_part:
        return f"of {keys}, {here} gives most, {largest}, to {most}; an equal share is {equal}"
    return f"{here} spreads its attention over {keys}: most, {largest}, goes to {most}; an equal share is {equal}"
