"""What the found tokens have in common, in words."""

from attnviz.corpus.contexts import Vectors
from attnviz.corpus.token_index import Attended, FoundFacts
from attnviz.figures.labels import isolated

VECTOR_NAMES: dict[Vectors, str] = {"hidden": "hidden state", "query": "query", "key": "key"}
PARTS = {
    "ADJ": "adjectives",
    "ADP": "adpositions",
    "ADV": "adverbs",
    "AUX": "auxiliaries",
    "CCONJ": "coordinating conjunctions",
    "DET": "determiners",
    "INTJ": "interjections",
    "NOUN": "nouns",
    "NUM": "numerals",
    "PART": "particles",
    "PRON": "pronouns",
    "PROPN": "proper nouns",
    "PUNCT": "punctuation",
    "SCONJ": "subordinating conjunctions",
    "SYM": "symbols",
    "VERB": "verbs",
}
"""Parts of speech of Universal Dependencies, in the plural."""


def found_words(token: str, by: Vectors, facts: FoundFacts) -> str:
    """How many of the nearest tokens equal this token, and what the head attends to at most of them; plain text."""
    if facts.n == 0:
        return f"no other token is there to compare “{isolated(token)}” with"
    parts = [f"{_number(facts.n_same, facts.n)} the same token"]
    if facts.other is not None and facts.other[1] > max(1, facts.n_same):
        parts.append(f"{_number(facts.other[1], facts.n)} “{isolated(facts.other[0])}”")
    if facts.part is not None and facts.part[1] > 1:
        name, n = facts.part
        of_known = "" if facts.n_part == facts.n else f" of {facts.n_part} with a known part of speech"
        parts.append(f"{_number(n, facts.n)} {PARTS.get(name, name)}{of_known}")
    words = f"of the {facts.n} tokens nearest to “{isolated(token)}” by {VECTOR_NAMES[by]}, {_listed(parts)}"
    if facts.attended is not None:
        number = "all" if facts.attended.n == facts.n else str(facts.attended.n)
        words += f"; the head attends most to {attended_words(facts.attended)} from {number} of them"
    return words


def _number(n: int, n_all: int) -> str:
    every = "all" if n == n_all else "none" if n == 0 else str(n)
    return f"{every} {'is' if n == 1 else 'are'}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def attended_words(attended: Attended) -> str:
    """What a head attends to, for use within a sentence; plain text."""
    match attended.relation:
        case "itself":
            return "the token itself"
        case "previous":
            return "the previous token"
        case "next":
            return "the next token"
        case "first":
            return "the first token"
    if attended.token.startswith(("[", "<")):  # special tokens are named without quotation marks
        return attended.token
    return f"“{isolated(attended.token)}”"
