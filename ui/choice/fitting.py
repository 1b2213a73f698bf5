"""The nearest selection that exists in a text and a model, with a sentence for everything that had to change."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from attnviz.effects.context_mixing import MOST_MIXED
from attnviz.effects.outcome import TokenAnswer, TokenState, outcome_from
from attnviz.errors import SelectionError
from attnviz.figures.heatmap import MEASURE_NAMES, measure_of
from attnviz.model.languages import Languages
from attnviz.model.trace import Trace
from attnviz.model.words import has_words
from attnviz.records import LONG, MIXINGS, AllHeads, Head, Kind, Mixing, Template
from ui.choice.selection import FIELDS, LANGUAGES, Selection


def readable(
    selection: Selection, languages: Languages | None, templates: Sequence[Template]
) -> tuple[Selection, list[str]]:
    """The selection without a language or a template that the model's tokenizer does not have, and the notices."""
    notices: list[str] = []
    for name in LANGUAGES:
        asked = selection.value(name)
        if asked and (languages is None or asked not in languages.codes):
            what = "marks its texts with none" if languages is None else "does not have it"
            notices.append(
                f"The language “{asked}” was asked for; the tokenizer of {selection.model} {what}."
            )
            selection = selection.but(**{name: ""})
    if selection.template not in templates:
        name = FIELDS["template"].widget()["format_func"](selection.template).lower()
        notices.append(
            f"The {name} was asked for; the tokenizer of {selection.model} does not have it, or adds it by itself."
        )
        selection = selection.but(template="plain")
    return selection, notices


def fitted(
    selection: Selection, trace: Trace, unasked: frozenset[str], mixings: Collection[Mixing] = ()
) -> tuple[Selection, list[str]]:
    """The nearest selection that exists in this trace, its query aside where there is none, and the notices.

    Args:
        unasked: fields that the visitor did not choose, of which nothing is said.
        mixings: the measures that the model has for this text beside those of the trace.
    """
    notices: list[str] = []
    model = trace.provenance.model
    kinds = trace.kinds
    if selection.kind not in kinds:
        if selection.kind:
            notices.append(f"{model} has no {selection.kind} attention; {kinds[0]} attention is shown.")
        selection = selection.but(kind=kinds[0])
    kind: Any = selection.kind

    def nearest(name: str, count: int, things: str) -> None:
        nonlocal selection
        value = selection.value(name)
        if value is not None and value >= count:
            if name not in unasked:
                notices.append(nearest_words(name, value, count, things))
            changed: dict[str, Any] = {name: count - 1}
            selection = selection.but(**changed)

    measure = measure_of(selection.show)
    if measure == "rollout" and trace.is_long(kind):
        notices.append(f"Rollout takes texts of up to {LONG:,} tokens; weights are shown.")
        selection = selection.but(show="weights")
    elif measure in MIXINGS and measure not in mixings:
        notices.append(f"{not_shown(measure, selection, trace)}; weights are shown.")
        selection = selection.but(show="weights")
    elif measure not in (*trace.measures(kind), *MIXINGS):
        notices.append(f"{model} has no {MEASURE_NAMES[measure]} for {kind} attention; weights are shown.")
        selection = selection.but(show="weights")
    if selection.unit == "words" and not has_words(trace.tokens, trace.target_tokens):
        notices.append("It is not known which tokens of this text make a word; rows and columns are tokens.")
        selection = selection.but(unit="tokens")
    if trace.tokens.text_pair is None:
        selection = selection.but(sentences="all")
    nearest("layer", trace.n_layers(kind), f"{model} has layers")
    nearest("head", trace.n_heads(selection.layer, kind), f"layer {selection.layer} of {model} has heads")
    is_there = partial(_is_there, trace=trace, kind=kind)
    for record in selection.records:
        if fitted := getattr(record, "fitted", None):
            fitting, remark = fitted(is_there, model)
            if remark:
                notices.append(remark)
                selection = selection.with_records([fitting])
    queries, keys = trace.query_tokens(kind), trace.key_tokens(kind)
    for ends, n_token in ((("query", "query_to"), len(queries)), (("key", "key_to"), len(keys))):
        for end in ends:
            nearest(end, n_token, "this text has tokens")
    if not _can_be_read(selection.outcome, n_token := len(trace.last_tokens)):
        notices.append(
            f"The outcome was to be read at a token that is not there: this text has tokens 0 to {n_token - 1}. "
            "The default outcome is measured."
        )
        selection = selection.but(outcome="")
    return selection, notices


def not_shown(measure: Mixing, selection: Selection, trace: Trace) -> str:
    """Why a measure that takes the model is not there for a text, without the full stop."""
    called = MEASURE_NAMES[measure][0].upper() + MEASURE_NAMES[measure][1:]
    why = f"{trace.provenance.model} does not allow it for this text"
    if selection.bundle:
        why = "it takes the model, and an opened bundle has none"
    elif len(trace.tokens) > MOST_MIXED:
        why = f"it takes texts of up to {MOST_MIXED:,} tokens"
    return f"{called} is not shown: {why}"


def _can_be_read(written: str, n_token: int) -> bool:
    """Whether a text of so many tokens has the token at which an outcome, as written in a link, is read."""
    try:
        outcome = outcome_from(written) if written else None
    except SelectionError:
        return True  # the pages that measure it say what is wrong
    return not isinstance(outcome, TokenAnswer | TokenState) or outcome.position < n_token


def nearest_words(name: str, value: int, count: int, things: str) -> str:
    """Says that a number is out of range and the last of ``count`` is shown instead."""
    return f"There is no {name} {value}: {things} 0 to {count - 1}. {name.capitalize()} {count - 1} is shown."


def _is_there(heads: Head | AllHeads, *, trace: Trace, kind: Kind) -> bool:
    """Whether the trace has this head, or this layer if all of its heads are meant."""
    has_layer = heads.layer < trace.n_layers(kind)
    return has_layer and (isinstance(heads, AllHeads) or heads.head < trace.n_heads(heads.layer, kind))
