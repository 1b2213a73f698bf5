"""Frequent words that say little by themselves: articles, pronouns, prepositions and the like, of English and its neighbours.

Lists of words. Those of English are after Quirk et al. 1985, "A Comprehensive Grammar of the English Language".
"""

from collections.abc import Iterable, Mapping


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


ENGLISH: Mapping[str, frozenset[str]] = {
    "preposition": _listed(
        "aboard about above across after against along amid among around as at before behind below beneath beside "
        "besides between beyond but by concerning despite down during except for from in inside into like near of off "
        "on onto opposite out outside over past per since than through throughout till to toward towards under "
        "underneath until unto up upon via with within without"
    ),
    "determiner": _listed(
        "a all an another any both each either enough every few fewer half her his its less many more most much my "
        "neither no our several some such that the their these this those what whatever which whichever whose your"
    ),
    "auxiliary verb": _listed(
        "'d 'll 'm 're 's 've am are be been being ca can could dare did do does had has have having is may might must "
        "need ought sha shall should to used was were will wo would"
    ),
    "form of “be”": _listed("'m 're 's am are be been being is was were"),
    "by-phrase": _listed("by"),
    "conjunction": _listed("& and but either neither nor or plus so yet"),
    "subordinating conjunction": _listed(
        "after although as because before for how if in lest like once provided since so than that though till to "
        "unless until when whenever where whereas wherever whether while with"
    ),
    "negation": _listed("n't never no not nt t"),
    "possessive": _listed("her his its my our their thy whose your"),
}
"""The English words of each kind of which a language has few; a possessive noun is in none of them."""
AUXILIARIES = ENGLISH["auxiliary verb"] | _listed(
    "aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn"
)
PRONOUNS = _listed("he her him i it me one she somebody someone something them they us we who whom you")
"""English pronouns that can stand in place of a noun."""
FUNCTION_WORDS = frozenset[str]().union(*ENGLISH.values()) - AUXILIARIES
FOREIGN = _listed(
    "der das den dem des ein eine einen einem einer und ist nicht ich sich mit von zu auf für le la les une est et au aux du dans pour "
    "je tu nous vous los las que el de un una di che gli lo och det att ett het een niet van ik og ikke jeg på os uma não y se del por "
    "con il en da nel della"
)
"""Articles, prepositions, conjunctions and the like of German, French, Spanish, Italian, Dutch, Portuguese and the Scandinavian
languages."""
REFERRING = _listed(
    "it he she they him them its his their hers theirs itself himself herself themselves er sie es ihm ihn ihnen sein seine ihr ihre il "
    "elle ils elles lui leur él ella ellos ellas lei loro egli hij zij hem haar hun ele ela eles elas han hon"
)
"""Pronouns of the third person, which refer to something said before, of the same languages."""


_UNMISTAKABLE = _listed(
    "the it that this these those with they their she you your my our his its him us we were had has have from are been when what "
    "which who and not there would could did does i he of on at by is an old into never because very before"
)
"""Frequent English words that are not frequent in those languages."""


def is_english(words: Iterable[str]) -> bool:
    """Whether a text can be taken for English: a word tells, and none is of `FOREIGN`."""
    plain = {word.casefold() for word in words}
    return not _UNMISTAKABLE.isdisjoint(plain) and FOREIGN.isdisjoint(plain)


def says_little(word: str) -> bool:
    """Whether a word is one of those listed here, or has neither letter nor digit."""
    plain = word.casefold().replace("’", "'")
    listed = FUNCTION_WORDS | AUXILIARIES | PRONOUNS | FOREIGN | REFERRING
    return not any(map(str.isalnum, word)) or not listed.isdisjoint(
        (plain, plain.strip("'"), plain.removesuffix("n't"))
    )
