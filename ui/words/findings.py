"""Findings in words."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from attnviz.figures.heatmap import MEASURE_NAMES, CellMeasure
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import counted, number_text, percent_text, power_text, share_text
from attnviz.figures.projection import Tint
from attnviz.heads.facts import (
    Extremes,
    Given,
    Rank,
    Received,
    given,
    small_addition,
    strongest_link,
    taken,
)
from attnviz.maps.layouts import METHOD_NAMES
from attnviz.maps.spaces import Space
from attnviz.records import AttentionPattern, Axis, Chance, Head, Measure, Mixing, Projection
from attnviz.viewer import CHOICES
from ui.words.reliability import read, reading_of

if TYPE_CHECKING:
    from attnviz.effects.context_mixing import ContextMixing

SHOWN_NAMES: dict[CellMeasure, str] = CHOICES["measure"]["names"]
"""What cells can hold, as labelled on controls."""
MEASURE_NOTES: dict[Measure | Mixing, str] = {
    "weights": "",
    "norms": "Norm-based weight: ‖w·v·W_O‖, the length of weight times value times W_O (Kobayashi et al. 2020, "
    "arXiv:2004.10102).",
    "rollout": "Rollout is an estimate: it averages the heads of each layer and assumes that half of each layer is its "
    "attention and half the residual connection (Abnar and Zuidema 2020, arXiv:2005.00928).",
    "alti": "ALTI: how close each token's part of the vector after the layer's attention is to the whole, with values, W_O, the residual "
    "connection and norm; all heads together, and rows sum to 1 (Ferrando et al. 2022, arXiv:2203.04212).",
    "value_zeroing": "Value zeroing: how much the query's vector after the layer turns when the key's values in it are 0, in all heads; rows "
    "sum to 1 (Mohebbi et al. 2023, arXiv:2301.12971).",
}
"""The note below a picture of each measure."""
OTHER_LINES: dict[CellMeasure, str] = {
    "weights": "",
    "scores": ", not the scores of the matrix",
    "norms": ", not the norm-based weights of the matrix",
    "rollout": ", not the rollout of the matrix",
    "alti": ", not the ALTI of the matrix",
    "value_zeroing": ", not the value zeroing of the matrix",
}
"""What the lines of a map are not, by what the matrix beside it shows."""
WITHOUT_NORMS = (
    "Norm-based weights are not offered: this family's W_O does not take the heads' outputs as they are, or attnviz "
    "does not find it, so what a head adds to the layer's output is not known."
)
"""Shown if a model has no norm-based weights."""
WITHOUT_ROOM = "Overlapping labels are hidden; hover over a point or tap it to see its label."
"""The note below a map with hidden labels."""
COMPILED = "UMAP is compiled when a process first uses it, which takes 10 to 25 seconds"
"""Why the first UMAP takes long; measured on two cores."""


def strongest_key(pattern: AttentionPattern, query: int) -> int:
    """Position of the key of a query's `strongest_link`; the first key if the query is not shown."""
    row = pattern.queries.index(query)
    if row is None:
        return int(pattern.keys.positions[0])
    return strongest_link(pattern, row).key


def place(pattern: AttentionPattern) -> str:
    """The layer and head of a matrix: "Layer 3, head 1"."""
    if pattern.measure == "rollout":
        return f"Layers 0 to {pattern.layer}, all heads" if pattern.layer else "Layer 0, all heads"
    return f"Layer {pattern.layer}, " + ("all heads" if pattern.head is None else f"head {pattern.head}")


def finding(pattern: AttentionPattern, query: int, key: int) -> str:
    """The weight of the selected query on the selected key, and the query's largest weight if that is another.

    Plain text: a page that shows it as Markdown applies `literal`.
    """
    row, column = pattern.queries.index(query), pattern.keys.index(key)
    if row is None or column is None:
        hidden = pattern.queries if row is None else pattern.keys
        return f"{name(hidden, query if row is None else key)} is not shown."
    return given_words(pattern, query, key, given(pattern, row, column, partial(amount_text, pattern)))


def given_words(pattern: AttentionPattern, query: int, key: int, facts: Given) -> str:
    """The sentence of `finding`: "“it” gives 47.5% of its attention to “door”; the largest share, 48.4%, goes to “[CLS]”."."""
    here, there = name(pattern.queries, query), key_name(pattern, query, key)
    number, largest = (amount_text(pattern, amount) for amount in (facts.amount, facts.largest))
    several = len(facts.strongest) > 1
    each = f"{largest}{' each' * several}"
    strongest = together([named_again(pattern, query, key) for key in facts.strongest])
    among = "among the shown keys, " * facts.of_shown
    of_shown = "of the shown keys, " * (facts.hides_keys and not facts.of_shown)
    shares = f"{of_shown}the largest share{'s' * several}, {each},"
    match pattern.measure:
        case "weights":
            sentence = f"{among}{here} gives {number} of its attention to {there}"
            rest = f"; {shares} {'go' if several else 'goes'} to {strongest}"
            hidden = (
                f"; {share_text(facts.hidden)} of {'all ' * facts.of_shown}its attention goes to hidden keys"
            )
        case "norms":
            sentence = f"the norm-based weight from {here} to {there} is {number}"
            if facts.of_shown:
                own = name(pattern.keys, key)
                sentence = f"{among}{own} has {number} of the norm-based weights of {here}"
            rest = f"; {of_shown}the largest, {each}, {'are' if several else 'is'} to {strongest}"
            hidden = ""
        case "alti" | "value_zeroing":
            by = f"by {MEASURE_NAMES[pattern.measure]}"
            sentence = f"{among}{by}, {number} of what this layer mixes into {here} is from {there}"
            rest = f"; {shares} {'are' if several else 'is'} from {strongest}"
            hidden = f"; {share_text(facts.hidden)} {'of all ' * facts.of_shown}from hidden tokens"
        case "rollout":
            sentence = f"{among}rollout attributes {number} of {here} to {there}"
            rest = f"; {shares} to {strongest}"
            hidden = f"; {share_text(facts.hidden)} {'of all ' * facts.of_shown}to hidden tokens"
    goes_elsewhere = bool(facts.strongest) and not facts.is_strongest
    return f"{sentence}{rest * goes_elsewhere}{hidden * (facts.hidden > 0)}."


def key_name(pattern: AttentionPattern, query: int, key: int) -> str:
    """A key in a sentence whose subject is a query: its `name`, or "itself"."""
    return "itself" if is_itself(pattern, query, key) else name(pattern.keys, key)


def is_itself(pattern: AttentionPattern, query: int, key: int) -> bool:
    """Whether a query and a key are the same token or word; those of cross-attention are of two texts."""
    row, column = pattern.queries.index(query), pattern.keys.index(key)
    if pattern.kind == "cross" or row is None or column is None:
        return False
    return bool((pattern.queries.spans[row] == pattern.keys.spans[column]).all())


def named_again(pattern: AttentionPattern, query: int, key: int) -> str:
    """A key in a sentence with another subject: "“it” itself" where it is the query."""
    return name(pattern.keys, key) + " itself" * is_itself(pattern, query, key)


def identity_words(mixing: "ContextMixing") -> str:
    """Whether a layer's parts, or the layer that ran alone, give the model's own vectors back."""
    within = f"within {power_text(mixing.gap)} of its length" if mixing.gap else "exactly"
    if mixing.method == "alti":
        what = f"The parts of all tokens and the biases {'sum' if mixing.passed else 'do not sum'} to the model's own vector"
    else:
        what = f"With all values, the layer alone {'gives' if mixing.passed else 'does not give'} the model's own vector"
    if not mixing.passed:
        apart = (
            f"up to {power_text(mixing.gap)} of its length away"
            if np.isfinite(mixing.gap)
            else "not a number"
        )
        return f"{what}: it is {apart}, so these numbers are not the model's."
    return f"{what}, {within}."


def special_note(weights: AttentionPattern, norms: AttentionPattern, query: int, key: int) -> str:
    """Says that the special token with the largest weight adds less than the selected key; with a trailing space.

    Empty if `small_addition` finds no such token, or the difference is under half a percent. Plain text, like `finding`.

    Args:
        weights: of the head.
        norms: the norm-based weights of the same head, rows and columns.
    """
    row, column = weights.queries.index(query), weights.keys.index(key)
    added = None if row is None or column is None else small_addition(weights, norms, row, column)
    if added is None or added.share >= 0.995:
        return ""
    return (
        f"A large weight need not mean a large effect: by norm-based weight, {name(weights.keys, added.special)} adds only "
        f"{percent_text(added.share)} as much as {name(weights.keys, added.key)}. "
    )


def key_finding(pattern: AttentionPattern, key: int) -> str:
    """Which query gives the selected key more than any other query does; plain text, like `finding`."""
    column = pattern.keys.index(key)
    if column is None:
        return f"{name(pattern.keys, key)} is not shown."
    written = partial(amount_text, pattern)
    facts, there = taken(pattern, column, written), name(pattern.keys, key)
    shown = "shown " * facts.hides_queries
    if not facts.givers:
        return f"no {shown}query gives {there} anything."
    several = len(facts.givers) > 1
    givers = together([name(pattern.queries, giver) for giver in facts.givers])
    amount, each = written(facts.amount), " each" * several
    if pattern.measure == "norms" and not facts.of_shown:
        weights = f"norm-based weight{'s' * several} to {there}, {amount}{each}, {'are' if several else 'is'} from {givers}"
        return f"of {'the shown' if facts.hides_queries else 'all'} queries, the largest {weights}."
    what = {
        "weights": "",
        "norms": " of its norm-based weights",
        "rollout": " of its rollout",
        "alti": " of its ALTI",
        "value_zeroing": " of its value zeroing",
    }[pattern.measure]
    among = "among the shown keys, " * facts.of_shown
    if len(facts.givers) == len(pattern.queries):
        return (
            f"{among}{givers} give{'s' * (not several)} {there} {amount}{what or ' of its attention'}{each}."
        )
    does = "do" if several else "does"
    return f"{among}no other {shown}query gives {there} as much{what} as {givers} {does} ({amount}{each})."


def received_words(pattern: AttentionPattern, query: int, facts: Received, under: str) -> str:
    """What a query receives: the key with the largest weight, and the one with the largest norm-based weight.

    Args:
        under: the mask, "under the causal mask"; empty for the model's own.
    """
    here = name(pattern.queries, query)
    mask = f"{under[:1].upper()}{under[1:]}, " * bool(under)
    if not facts.heaviest:
        return f"{mask}{'no' if mask else 'No'} arrow reaches {here}: the mask leaves it no key."
    heaviest = together([key_name(pattern, query, key) for key in facts.heaviest])
    several = len(facts.heaviest) > 1
    weights = f"the largest weight{'s' * several}, {share_text(facts.weight)}{' each' * several},"
    weight = f"{mask}{here} gives {weights} to {heaviest}"
    if facts.norm is None or facts.norm_of_heaviest is None or not facts.longest:
        return f"{weight}."
    norm, each = number_text(facts.norm), " each" * (len(facts.longest) > 1)
    largest = f"the largest norm-based weight{'s' * (len(facts.longest) > 1)}"
    if facts.longest == facts.heaviest:
        return f"{weight}, which also {'have' if several else 'has'} {largest}, {norm}{each}."
    longest = together([named_again(pattern, query, key) for key in facts.longest])
    first = facts.heaviest[0]
    against = f", against {number_text(facts.norm_of_heaviest)} to {named_again(pattern, query, first)}" * (
        first not in facts.longest
    )
    return f"{weight}; {largest}, {norm}{each}, {'are' if each else 'is'} to {longest}{against}."


def together(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a and 3 others"."""
    return f"{names[0]} and {len(names) - 1} others" if len(names) > 2 else " and ".join(names)


def amount(pattern: AttentionPattern, row: int, column: int) -> str:
    """A cell's number in words: a share of attention as "47.5%", a norm-based weight as "1.47"."""
    return measure_text(float(pattern.weights[row, column]), pattern.measure)


def name(axis: Axis, position: int) -> str:
    """The axis entry of a token, in quotation marks, with its position if it occurs twice."""
    entry = axis.index(position)
    first = position if entry is None else int(axis.positions[entry])
    label = axis.tokens.labels[position] if entry is None else axis.labels[entry]
    labels = axis.tokens.labels if entry is None else axis.labels
    return f"“{isolated(label)}”" + (f" (token {first})" if labels.count(label) > 1 else "")


def group_name(axis: Axis, span: tuple[int, int]) -> str:
    """A run of tokens as text, in quotation marks; a single axis entry by its `name`."""
    first, stop = span
    is_entry = bool((axis.spans == span).all(axis=1).any())
    return name(axis, first) if is_entry else f"“{isolated(axis.tokens.label(first, stop))}”"


def measure_text(number: float, measure: Measure | Mixing) -> str:
    """A weight as text: "47.5%", or "1.47" for a norm-based weight."""
    return number_text(number) if measure == "norms" else share_text(number)


def clipped_words(pattern: AttentionPattern, end: float | None) -> str:
    """Where the colours end; empty if at the largest cell."""
    if end is None:
        return ""
    above = pattern.weights > end
    is_special = above[pattern.queries.is_special].any() or above[:, pattern.keys.is_special].any()
    whose = "special tokens" if is_special else "the first token"
    return f"Colours end at {measure_text(end, pattern.measure)}: cells of {whose} hold more."


def amount_text(pattern: AttentionPattern, number: float) -> str:
    """As `measure_text`, for a row that may be divided by its sum and then holds shares, whatever the measure."""
    return share_text(number) if pattern.is_renormalised else measure_text(number, pattern.measure)


def pair_finding(facts: Rank, head: Head, pair: tuple[str, str], measure: Measure) -> str:
    """The selected head's weight from query to key, how many heads have a larger one, and which has the largest.

    Plain text, like `finding`.

    Args:
        facts: the rank of the selected head among all.
        pair: query and key as text.
    """
    link = f"from {pair[0]} to {pair[1]}"
    if not facts.leading:
        return f"No head gives anything {link}."
    sentence = f"{head.title} gives {measure_text(facts.number, measure)} {link}"
    tied = f"tied with {facts.n_equal} other{'s' * (facts.n_equal != 1)}" if facts.n_equal else ""
    if facts.n_heads == 1:
        return f"{sentence}; there is no other head."
    if not facts.n_more:
        return (
            f"{sentence}, the most of the {facts.n_heads} heads, {tied}."
            if tied
            else f"{sentence}, more than any other of the {facts.n_heads} heads."
        )
    ranked = f"rank {facts.n_more + 1} of {facts.n_heads} heads{f', {tied}' if tied else ''}"
    most, several = together([head.words for head in facts.leading]), len(facts.leading) > 1
    number = f"{measure_text(facts.largest, measure)}{' each' * several}"
    return f"{sentence}, {ranked}; {most} give{'s' * (not several)} the most, {number}."


def extremes_words(title: str, facts: Extremes, amount: Callable[[float], str]) -> str:
    """The heads with the largest and the smallest number: "Entropy: most in layer 0, head 1, 98.1%; least in ...".

    Args:
        amount: formats such a number.
    """
    if amount(facts.largest) == amount(facts.smallest):
        return f"{title}: {amount(facts.largest)} in every head"
    most, least = (
        f"{together([head.words for head in heads])}, {amount(number)}"
        for heads, number in ((facts.most, facts.largest), (facts.least, facts.smallest))
    )
    return f"{title}: most in {most}; least in {least}"


MARKS = {
    "previous": "←",
    "next": "→",
    "self": "=",
    "[CLS]": "C",
    "[SEP]": "S",
    "punctuation": "P",
    "broad": "~",
}
"""Marks of heads in the grid of all heads, by the pattern that they match."""
ATTENDS = {
    "previous": "to the previous token",
    "next": "to the next token",
    "self": "to the same token",
    "[CLS]": "mostly to [CLS]",
    "[SEP]": "mostly to [SEP]",
    "punctuation": "mostly to punctuation",
    "broad": "broadly",
}
"""How a head attends, by the pattern that it matches: "31 attend mostly to [CLS]"."""
TINT_NAMES: dict[Tint, str] = {
    "role": "Role",
    "token": "Token",
    "position": "Position",
    "position mod 5": "Position mod 5",
    "part of word": "Part of word",
    "norm": "Length of the vector",
    "special": "Special or not",
}
"""What points can be coloured by, as labelled on controls."""
SPACE_NAMES: dict[Space, str] = {
    "raw": "As they are",
    "centred": "Keys centred",
    "balanced": "Centred, balanced",
    "lifted": "Lifted",
}
"""The input spaces of a map, as labelled on controls."""
SPACE_WORDS: dict[Space, str] = {
    "raw": "The vectors as the model has them: every angle and length is kept, and with them what all keys have in "
    "common, which no weight depends on but which may keep queries and keys apart.",
    "centred": "Keys moved so that their mean is zero, which leaves every weight as it is; queries are not moved, since "
    "that would change them.",
    "balanced": "Centred keys made shorter and queries longer by one factor, or the reverse, so that both have the same "
    "median length; scores change by one number for each query, weights not at all.",
    "lifted": "Centred keys with one dimension more, so that by Euclidean distance the nearer key has the larger q·k for "
    "every query.",
}
"""What each space preserves, in a sentence."""
BIASED = "This layer adds a bias to q·k, which the vectors do not hold: distances follow q·k, not the biased score."
"""The note below a map of vectors whose scores have such a bias, as in T5."""


def map_note(projection: Projection) -> str:
    """How the map was made, which settings had to be changed, how reliable it is, and what that means for a reader."""
    note = map_settings(projection)
    in_map, chance = projection.in_map, projection.chance
    if not in_map.n_query:
        return note
    judged = reading_of(in_map, chance)
    is_judged = judged.order != "unknown"
    share = f" (by chance up to {percent_text(chance.nearest)}, p = {chance.nearest_p:.3f})" * is_judged
    limit = (
        f"; by chance down to {correlation_text(chance.correlation)}, p = {chance.correlation_p:.3f}"
        * is_judged
    )
    sentences = [
        note,
        f"Reliability: for {percent_text(in_map.nearest_agreement)} of {judged_queries(projection)} the nearest key has the "
        f"largest weight{share}; mean correlation of distance and score {correlation_text(in_map.order_correlation)} "
        f"(−1 is perfect{limit}).",
        read(judged),
        f"By chance means: in 19 of 20 maps with the key points permuted ({chance.n_permutations:,} permutations)."
        * is_judged,
    ]
    return " ".join(filter(None, sentences))


def judged_queries(projection: Projection) -> str:
    """The queries over which a map's reliability is measured: "the 11 queries"."""
    n_query = projection.in_map.n_query
    of_two = " that see two keys or more" * (n_query < len(projection.query_tokens))
    return f"the {counted(n_query, 'query', 'queries')}{of_two}"


def by_chance(chance: Chance) -> str:
    """Both reliability figures of a map when its key points are permuted, as a sentence without its full stop.

    Only for a map that can be judged.
    """
    return (
        f"With the key points permuted ({chance.n_permutations:,} permutations), at most one map in twenty exceeds "
        f"{percent_text(chance.nearest)} (p = {chance.nearest_p:.3f}), and at most one has a correlation below "
        f"{correlation_text(chance.correlation)} (p = {chance.correlation_p:.3f})"
    )


def lines_note(shown: CellMeasure) -> str:
    """What the lines of a map stand for.

    Args:
        shown: what the matrix beside the map shows.
    """
    return f"Lines are attention weights{OTHER_LINES[shown]}: the thicker, the larger."


def map_settings(projection: Projection) -> str:
    """How the map was made, and which settings had to be changed."""
    used = projection.parameters
    if projection.remark and not used:  # too few points for the requested settings
        return projection.remark
    written = {
        "metric": "{} distance",
        "perplexity": "perplexity {:.3g}",
        "neighbours": "{} neighbours",
        "min_dist": "least distance {:g}",
        "iterations": "{} iterations",
        "seed": "seed {}",
    }
    method = projection.method
    sentences = [
        METHOD_NAMES[method],
        *(words.format(used[name]) for name, words in written.items() if name in used),
    ]
    return f"{', '.join(sentences)}. {projection.remark}".rstrip()


def correlation_text(correlation: float) -> str:
    """A correlation with its sign: "−0.79", "+0.12"; "none" if there is none."""
    return "none" if np.isnan(correlation) else f"{correlation:+.2f}".replace("-", "−")


power = power_text
"""A number in powers of ten, as shown on screen."""
