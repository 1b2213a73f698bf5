"""The profiles available for a model: those on this server, and the visitor's own sentences and file."""

from collections.abc import Mapping

from ui.rooms.many_texts.joint_map.lines import OwnSentences
from ui.rooms.many_texts.profiles.own_file import FILE, OwnFile
from ui.runtime import profiles
from ui.runtime.profiles import Listed
from ui.session import of_session

OWN = "own"
"""The visitor's own sentences, which are not part of links."""
NOTHING = "none"
"""No other texts to compare with."""


def offered(weights: Mapping[str, str]) -> dict[str, Listed]:
    """Profiles of the model with these weights, by name; "" for the bundled sentences."""
    return {
        "" if listed_profile.is_bundled else listed_profile.name: listed_profile
        for listed_profile in profiles.of_model(weights)
        if not listed_profile.problem
    }


def corpora(weights: Mapping[str, str]) -> list[str]:
    """The corpora available for a model: names of `offered`, and the visitor's own texts if there are any."""
    own = [OWN] * bool(of_session(OwnSentences).text) + [FILE] * bool(of_session(OwnFile).name)
    return [*offered(weights), *own]


def others(weights: Mapping[str, str]) -> dict[str, Listed]:
    """The profiles to compare with: the model's other profiles, and those of other models."""
    of_others = [
        listed_profile
        for listed_profile in profiles.listed().values()
        if not listed_profile.is_of(weights) and not listed_profile.problem
    ]
    return {**offered(weights), **{of_other.name: of_other for of_other in of_others}}


def corpus_name(corpus: str) -> str:
    """Name of a profile's texts."""
    return {"": "Bundled sentences", OWN: "Your own sentences", FILE: of_session(OwnFile).name}.get(
        corpus, corpus
    )


def other_name(listed: Listed, weights: Mapping[str, str]) -> str:
    """Name of a profile to compare with: its texts, and its model if that is another."""
    if listed.is_of(weights):
        return corpus_name("") if listed.is_bundled else listed.name
    return listed.model if listed.is_bundled else f"{listed.model}, {listed.name}"


def missed(corpus: str, weights: Mapping[str, str]) -> str:
    """Why the texts that a link asks for are not shown, a sentence; empty if the reason is unknown."""
    if corpus in (OWN, FILE):
        return "The link leads to texts of a visitor's own, which no link holds."
    listed = profiles.listed().get(corpus)
    if listed is None:
        return f"The link asks for the profile “{corpus}”, which is not on this server."
    if listed.problem:
        return f"The profile “{corpus}” cannot be shown: {listed.problem}"
    return (
        f"The profile “{corpus}” is of {listed.model}, with other weights than those of the model that is selected. Make one with "
        "attnviz corpus profile."
    )
