"""A grammatical relation in plain words: what it links, and whether two words of a text could be so related.

A relation holds between a word, the dependent, and the word that it depends on, its parent.

Source: the labels of spaCy 3's English pipelines (ClearNLP), of Universal Dependencies 2 and of TIGER, which spaCy's German
pipelines have; of a label that two of them share, the first.
"""

from collections.abc import Mapping

from attnviz.corpus.relations import DIRECTIONS
from attnviz.heads.frequent_words import ENGLISH, FUNCTION_WORDS, PRONOUNS

RELATIONS: Mapping[str, tuple[str, str]] = {
    "acl": ("clause’s verb", "noun"),
    "acomp": ("adjective", "verb"),
    "advcl": ("adverbial clause’s verb", "main verb"),
    "advmod": ("adverb", "verb or adjective"),
    "ag": ("genitive", "noun"),
    "agent": ("by-phrase", "passive verb"),
    "amod": ("adjective", "noun"),
    "appos": ("apposition", "noun"),
    "attr": ("noun", "form of “be”"),
    "aux": ("auxiliary verb", "main verb"),
    "auxpass": ("auxiliary verb", "passive verb"),
    "case": ("preposition", "noun"),
    "cc": ("conjunction", "joined word"),
    "ccomp": ("clause’s verb", "main verb"),
    "cd": ("conjunction", "joined word"),
    "cj": ("joined word", "conjunction"),
    "clf": ("classifier", "number or noun"),
    "compound": ("compound’s first part", "main noun"),
    "conj": ("later joined word", "first joined word"),
    "cop": ("form of “be”", "complement"),
    "cp": ("subordinating conjunction", "clause’s verb"),
    "csubj": ("subject clause’s verb", "main verb"),
    "csubjpass": ("subject clause’s verb", "passive verb"),
    "da": ("indirect object", "verb"),
    "dative": ("indirect object", "verb"),
    "det": ("determiner", "noun"),
    "discourse": ("interjection", "verb"),
    "dislocated": ("word moved to the edge", "verb"),
    "dobj": ("direct object", "verb"),
    "expl": ("empty pronoun", "verb"),
    "fixed": ("later word of a fixed phrase", "first word"),
    "flat": ("later part of a name", "first part"),
    "goeswith": ("later part of a split word", "first part"),
    "intj": ("interjection", "verb"),
    "iobj": ("indirect object", "verb"),
    "mark": ("subordinating conjunction", "clause’s verb"),
    "mnr": ("noun’s modifier", "noun"),
    "mo": ("modifier", "verb or adjective"),
    "neg": ("negation", "verb"),
    "ng": ("negation", "verb"),
    "nk": ("article or adjective", "noun"),
    "nmod": ("modifying noun", "noun"),
    "npadvmod": ("noun of time or measure", "verb or adjective"),
    "nsubj": ("subject", "verb"),
    "nsubjpass": ("subject", "passive verb"),
    "nummod": ("number", "noun"),
    "oa": ("direct object", "verb"),
    "obj": ("direct object", "verb"),
    "obl": ("noun of place, time or manner", "verb"),
    "oc": ("dependent verb", "verb"),
    "og": ("genitive object", "verb"),
    "op": ("prepositional object", "verb"),
    "oprd": ("object’s complement", "verb"),
    "parataxis": ("inserted clause’s verb", "main verb"),
    "pcomp": ("verb form", "preposition"),
    "pd": ("predicate", "form of “be”"),
    "pg": ("genitive", "noun"),
    "pobj": ("noun", "preposition"),
    "poss": ("possessive", "noun"),
    "preconj": ("first half of a pair such as “both … and”", "joined word"),
    "predet": ("word before a determiner", "noun"),
    "prep": ("preposition", "verb or noun"),
    "prt": ("particle", "verb"),
    "punct": ("punctuation mark", "word"),
    "quantmod": ("modifier of a number", "number"),
    "rc": ("relative clause’s verb", "noun"),
    "relcl": ("relative clause’s verb", "noun"),
    "reparandum": ("corrected word", "correction"),
    "sb": ("subject", "verb"),
    "sbp": ("by-phrase", "passive verb"),
    "svp": ("separable prefix", "verb"),
    "vocative": ("name of the person addressed", "verb"),
    "xcomp": ("dependent verb or adjective", "verb"),
}
"""Of each relation, what its dependent and its parent are."""

_NAMED = ("noun", "subject", "direct object", "indirect object")
"""Kinds of words that a pronoun can be."""


def linked_words(relation: str, direction: str) -> str:
    """What a head links, from query to key: "a preposition to its noun"; a relation that is not known by its label.

    Args:
        relation: a label, with or without a treebank's subtype after a colon.
        direction: one of `attnviz.corpus.relations.DIRECTIONS`.
    """
    is_from_dependent = direction == DIRECTIONS[0]
    if (known := RELATIONS.get(relation.split(":")[0])) is None:
        other = "the word that it depends on" if is_from_dependent else "the word that depends on it"
        return f"a word to {other} ({relation})"
    query, key = known if is_from_dependent else reversed(known)
    first = next(character for character in query if character.isalpha())
    return f"{'an' if first in 'aeiou' else 'a'} {query} to its {key}"


def could_relate(relation: str, dependent: str, parent: str) -> bool:
    """Whether two English words could be so related, as far as lists of words tell."""
    kinds = RELATIONS.get(relation.split(":")[0], ())
    return all(_could_be(_plain(word), kind) for kind, word in zip(kinds, (dependent, parent), strict=False))


def _could_be(word: str, kind: str) -> bool:
    if kind in ENGLISH:
        return word in ENGLISH[kind]
    return kind in _NAMED if word in PRONOUNS else word not in FUNCTION_WORDS


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'")
