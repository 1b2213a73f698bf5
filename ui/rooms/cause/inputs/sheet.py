"""All methods on one sheet: a row for each token, a column for each method; the finding, the note, the table."""

from collections.abc import Sequence
from typing import Any

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.input_attribution import InputAttribution
from attnviz.effects.outcome import TokenState
from attnviz.effects.token_embeddings import removable
from attnviz.figures.inputs import draw_attributions
from attnviz.figures.numbers import number_text, percent_text, power_text
from attnviz.maths.gradients import ROUNDING
from attnviz.records import Axis, Tokens
from attnviz.records.table import entry_names, table_csv
from ui.choice import state
from ui.rooms.cause.inputs.facts import FirstTokens, first_tokens
from ui.rooms.cause.inputs.screen import NAMES, Screen
from ui.runtime import cache
from ui.shell.chart import chart
from ui.words.findings import correlation_text, name
from ui.words.literal import literal


def facts(screen: Screen, attributions: Sequence[InputAttribution]) -> FirstTokens:
    """What the methods agree on for the tokens that may be deleted."""
    return first_tokens(
        attributions, removable(cache.model(screen.view.selection.source.model), screen.tokens)
    )


def finding(first: FirstTokens, tokens: Tokens) -> str:
    """Which of the tokens that may be deleted the methods using the outcome rank first, as Markdown."""
    named = [literal(name(Axis.of(tokens), token)) for token in first.tokens]
    of_methods = f"of {first.n_method} methods that use the outcome"
    of_tokens = "Of the tokens that can be removed, "
    if not first.n_token:
        sentence = "The text has no token that could be removed"
    elif first.n_token == 1:
        sentence = "The text has one token that could be removed, so there is nothing to rank"
    elif not named:
        sentence = f"{of_tokens}none {of_methods} has a single first"
    elif len(named) > 1:
        sentence = f"{of_tokens}{', '.join(named[:-1])} and {named[-1]} are each ranked first by {first.n_same} {of_methods}"
    elif first.n_same == first.n_method:
        sentence = f"{of_tokens}all {first.n_method} methods that use the outcome rank {named[0]} first"
    else:
        sentence = f"{of_tokens}{first.n_same} {of_methods} rank{'s' * (first.n_same == 1)} {named[0]} first"
    if named and first.n_token > 1 and first.n_undecided:
        sentence += (
            f"; {first.n_undecided} {'has' if first.n_undecided == 1 else 'have'} no single first token"
        )
    return f"**{sentence}**"


def sheet(screen: Screen, attributions: Sequence[InputAttribution], *, complete: bool = True) -> Figure:
    """Draws tokens down, methods across, and the methods in numbers; returns the figure.

    Args:
        complete: whether all methods are done; until then no cell can be selected.
    """
    names = NAMES | {
        attribution.method: f"{NAMES[attribution.method]} (not converged)"
        for attribution in attributions
        if _is_off(attribution)
    }
    drawn = draw_attributions(
        attributions, screen.tokens, names, picked=screen.view.query, theme=screen.view.theme
    )
    chart(
        drawn,
        key="inputs_sheet",
        alt="How much each token counts by each method, tokens down and methods across",
        on_pick=_pick if complete else None,
        name="Tokens and methods; select one",
    )
    sums(attributions)
    return drawn


def sums(attributions: Sequence[InputAttribution]) -> None:
    """A row for each method: the sum of its numbers, and what integrated gradients must sum to."""
    rows = [sum_row(attribution) for attribution in attributions]
    st.table({title: [row[title] for row in rows] for title in rows[0]}, hide_index=True)


def sum_row(attribution: InputAttribution) -> dict[str, str]:
    """The sum of a method's numbers, and the difference that integrated gradients must sum to."""
    integral, signed = attribution.integral, number_text(attribution.sum) if attribution.has_sign else "–"
    row = {"method": NAMES[attribution.method], "sum over the tokens": signed}
    if integral is None:
        return row | {"expected sum": "–", "difference": "–", "integral": "–"}
    apart = abs(attribution.sum - integral.difference)
    share = f" ({percent_text(apart / abs(integral.difference))})" if integral.difference else ""
    points = f"{integral.n_points} points"
    return row | {
        "expected sum": number_text(integral.difference),
        "difference": f"{number_text(apart)}{share}",
        "integral": f"converged, {points}" if integral.converged else f"did not converge, {points}",
    }


def _is_off(attribution: InputAttribution) -> bool:
    return attribution.integral is not None and not attribution.integral.converged


def note(screen: Screen, attributions: Sequence[InputAttribution], first: FirstTokens) -> str:
    """What the numbers are, what they are relative to, and what they do not mean."""
    sentences = [
        f"Outcome: {screen.measured}. Each column has a colour scale of its own; blue-green raises the outcome, orange lowers it."
    ]
    baseline = next(
        (attribution.baseline for attribution in attributions if attribution.baseline is not None), None
    )
    if baseline is not None:
        instead = "zeros" if baseline == "zeros" else f"that of {baseline}"
        sentences.append(
            f"Where a token is removed, its vector is replaced by {instead}; special tokens and masks are kept."
        )
    sentences += [
        _sum(attribution) for attribution in attributions if attribution.method == "integrated_gradients"
    ]
    sentences += agreement(first)
    methods = {attribution.method for attribution in attributions}
    is_rounding = "integrated_gradients" in methods and "gradient_times_input" not in methods
    if is_rounding and not isinstance(screen.outcome, TokenState):
        sentences.append(
            "Gradient × input is left out: here it is negligible beside integrated gradients, as in models that scale every token's "
            "vector to one length."
        )
    unsigned = [NAMES[attribution.method] for attribution in attributions if not attribution.has_sign]
    if unsigned:
        several = len(unsigned) > 1
        listed = f"{', '.join(unsigned[:-1])} and {unsigned[-1]}" if several else unsigned[0]
        have, depend, they = ("have", "depend", "they say") if several else ("has", "depends", "it says")
        listed = listed[0] + listed[1:].lower()
        sentences.append(
            f"{listed} (Kobayashi et al. 2020, arXiv:2004.10102; Abnar and Zuidema 2020, arXiv:2005.00928) {have} no sign and {depend} "
            f"on the outcome only through the tokens whose states it reads: {they} what is read, not what matters."
        )
    return " ".join(sentences)


def agreement(first: FirstTokens) -> list[str]:
    """What the first token is, and why agreeing methods may still be wrong; a sentence each."""
    if first.n_token < 2:
        return []
    does = "lowers" if first.direction < 0 else "raises"
    together = ", as all of them together do" if first.direction else ""
    sentences = [
        f"Of the tokens that can be removed, ranked first is the one that {does} the outcome most{together}."
    ]
    if first.correlation is not None:
        sentences.append(
            f"Methods can agree and be wrong together: the orders of any two that use the outcome have a rank correlation of "
            f"{correlation_text(first.correlation)} on average."
        )
    return sentences


def _sum(attribution: InputAttribution) -> str:
    """Whether integrated gradients sum to the difference between the outcomes."""
    assert attribution.integral is not None  # integrated gradients always have it
    title = "Integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365)"
    difference, error = number_text(attribution.integral.difference), attribution.integral.error
    if attribution.integral.converged:
        within = "up to the rounding of float32" if error <= ROUNDING else f"within {power_text(error)}"
        return f"{title} sum to the difference of outcomes, {difference}, {within}."
    return (
        f"{title} did not converge: on the way from the baseline the outcome changes faster than {attribution.integral.n_points} points follow. "
        f"They sum to {number_text(attribution.sum)}, and the difference of outcomes is {difference}; the finding leaves them out."
    )


def as_csv(screen: Screen, attributions: Sequence[InputAttribution]) -> bytes:
    """A line for every token, a column for every method."""
    names = entry_names(Axis.of(screen.tokens))
    rows = [
        [at, names[at], *(attribution.values[at] for attribution in attributions)]
        for at in range(len(screen.tokens))
    ]
    return table_csv(["position", "token", *(attribution.method for attribution in attributions)], rows)


def _pick(clicked: Any) -> None:
    match clicked:
        case [int(token), int()]:
            state.change(query=token)
