"""A comparison in words: its finding, the names of both sides, and its notes."""

from attnviz.figures.comparison import Part
from attnviz.figures.heatmap import MEASURE_NAMES
from attnviz.figures.numbers import counted, share_text
from attnviz.heads.comparison import Alignment, Comparison
from attnviz.records import AttentionPattern, Head, bare
from ui.choice.selection import Selection
from ui.rooms.compare.partner import PartnerB
from ui.rooms.compare.zoom import zoom_note
from ui.shell.view import RENORMALISED, View, hidden_note
from ui.words import findings as words
from ui.words.findings import measure_text, name, place
from ui.words.literal import literal, quoted

SPLITS_DIFFER = "The two models split the same text into different pieces."
"""Shown for two models that tokenize the same text differently."""
KINDS_DIFFER = "In one of the two models, a token looks only at itself and at earlier tokens."
"""Shown for an encoder beside a decoder."""


def differences(a: Selection, b: Selection) -> list[str]:
    """What differs between A and B, in the order of the controls."""
    pairs = {
        "head": (a.head, b.head),
        "layer": (a.layer, b.layer),
        "sentence": ((a.text, a.second), (b.text, b.second)),
        "model": (a.model, b.model),
        "masked tokens": (a.masked, b.masked),
    }
    return [what for what, (first, second) in pairs.items() if first != second]


def places(a: Selection, b: Selection, comparison: Comparison) -> tuple[str, str]:
    """Names of A and B in a sentence: by their difference, if there is only one."""
    differing = set(differences(a, b))
    if differing <= {"head", "layer"}:
        return _short(comparison.first), _short(comparison.second)
    if differing == {"model"}:
        return literal(a.model), literal(b.model)
    if differing == {"masked tokens"}:
        return f"A ({masked(comparison.first)})", f"B ({masked(comparison.second)})"
    return "A", "B"


def _short(pattern: AttentionPattern) -> str:
    """The layer and head of a matrix where there is little room: "L3 H1"."""
    words = place(pattern)
    return words[0].lower() + words[1:] if pattern.head is None else Head(pattern.layer, pattern.head).short


def masked(pattern: AttentionPattern) -> str:
    """Lists the masked tokens, in Markdown."""
    labels = [quoted(label) for label in pattern.keys.tokens.masked.values()]
    return f"{', '.join(labels)} masked" if labels else "nothing masked"


def summary(comparison: Comparison, picked: tuple[int, int], a: Selection, b: Selection) -> str:
    """The finding with all differences of B, in Markdown; or what to do if nothing differs."""
    differing = differences(a, b)
    if comparison.is_same:
        return "A and B are the same. Change B to see a difference"
    sentence = finding(comparison, picked, places(a, b, comparison))
    if set(differing) <= {"head", "layer"} or differing in (["model"], ["masked tokens"]):
        return sentence  # it names the differences
    return f"{sentence}. B has another {listed(differing)}"


def listed(words: list[str]) -> str:
    """Words as a list in a sentence: "head, layer and sentence"."""
    *others, last = [word.replace("masked tokens", "set of masked tokens") for word in words]
    return f"{', '.join(others)} and {last}" if others else last


def finding(comparison: Comparison, picked: tuple[int, int], names: tuple[str, str]) -> str:
    """How the selected query's attention to the selected key differs, in Markdown."""
    sides = comparison.queries, comparison.keys
    query, key = (alignment.index(position) for alignment, position in zip(sides, picked, strict=True))
    if query is None or key is None:
        side = 0 if query is None else 1
        return f"{literal(name(sides[side].first, picked[side]))} is not shown"
    link = " → ".join(
        entry_name(alignment, entry) for alignment, entry in zip(sides, (query, key), strict=True)
    )
    if not (comparison.queries.is_paired[query] and comparison.keys.is_paired[key]):
        side = 1 if comparison.queries.is_paired[query] else 0
        return f"{link}: {literal(name(sides[side].first, picked[side]))} has no partner in B"
    change, measure = comparison.change(query, key), comparison.first.measure
    before, after = measure_text(change.first, measure), measure_text(change.second, measure)
    if before == after:
        return f"{link} is {before} in {names[0]} as in {names[1]}"
    return f"{link}: {before} in {names[0]}, {after} in {names[1]}"


def entry_name(alignment: Alignment, entry: int) -> str:
    """An entry of A, with its counterpart in B if that differs, in Markdown."""
    here, there = alignment.pairs[entry]
    written = literal(name(alignment.first, int(alignment.first.positions[here])))
    if there < 0 or bare(alignment.first.labels[here]) == bare(alignment.second.labels[there]):
        return written
    return f"{written} (in B {quoted(alignment.second.labels[there])})"


def heading(part: Part, a: Selection, b: Selection, comparison: Comparison) -> str:
    """Heading of a matrix, in Markdown: its source, as far as A and B differ."""
    if part == "difference":
        return "**B − A**"
    side, pattern = (a, comparison.first) if part == "first" else (b, comparison.second)
    line = [f"**{'A' if part == 'first' else 'B'}** · {place(pattern).lower()}"]
    if a.model != b.model:
        line.append(literal(side.model))
    if a.masked != b.masked:
        line.append(masked(pattern))
    return " · ".join(line)


def side_b(a: Selection, b: Selection, comparison: Comparison) -> str:
    """B's source, in plain text: its head, and its model and text if they differ."""
    parts = [place(comparison.second).lower()]
    parts += [b.model] if a.model != b.model else []
    if (a.text, a.second) != (b.text, b.second):
        parts.append(" / ".join(f"“{text}”" for text in (b.text, b.second) if text))
    if a.masked != b.masked:
        parts.append("masked: " + (", ".join(comparison.second.keys.tokens.masked.values()) or "nothing"))
    return ", ".join(parts)


def notes(view: View, comparison: Comparison) -> str:
    """What the pictures leave out or merge, and what has no counterpart."""
    sentences = [
        words.MEASURE_NOTES[comparison.first.measure],
        hidden_note(view),
        RENORMALISED * view.is_renormalised,
    ]
    sentences.append(without_partner(comparison))
    sentences.append(zoom_note(comparison, view.selection.of(PartnerB).zoom))
    if comparison.splits_differ:
        sentences.append(SPLITS_DIFFER)
    if comparison.first.kind != comparison.second.kind:
        sentences.append(KINDS_DIFFER)
    sentences.append("Triangles mark the largest changes, upwards where B has more.")
    return " ".join(sentence for sentence in sentences if sentence)


def without_partner(comparison: Comparison) -> str:
    """How many keys only A or only B has, and their share of its attention; empty if each has a counterpart."""
    only_a, only_b = comparison.unpaired
    if not (only_a.n_keys or only_b.n_keys):
        return ""
    sentence = f"{counted(only_a.n_keys, 'token')} of A (−) and {counted(only_b.n_keys, 'token')} of B (+) have no partner; they are hatched where they are missing."
    if comparison.first.measure == "norms":
        return sentence
    of_what = (
        "attention" if comparison.first.measure == "weights" else MEASURE_NAMES[comparison.first.measure]
    )
    return f"{sentence} On average {share_text(only_a.share)} of A's {of_what} and {share_text(only_b.share)} of B's lies on them."
