"""All methods on one sheet: a row for each token, a column for each method; the finding, the note, the table."""

from collections.abc import Sequence
from typing import Any

from plotly.graph_objects import Figure

from attnviz.effects.input_attribution import SMALLEST_GAP, InputAttribution
from attnviz.effects.outcome import TokenState
from attnviz.effects.token_embeddings import removable
from attnviz.figures.inputs import draw_attributions
from attnviz.figures.numbers import number_text, power_text
from attnviz.records import Axis
from attnviz.records.table import entry_names, table_csv
from ui.choice import state
from ui.page.chart import chart
from ui.sections.inputs.screen import NAMES, Screen
from ui.words.findings import name
from ui.words.literal import literal
from ui.work import cache


def finding(screen: Screen, found: Sequence[InputAttribution]) -> str:
    """Which token the methods that know the outcome put first, as Markdown; of those that may be taken away."""
    among = removable(cache.model(screen.view.selection.source.model), screen.tokens)
    if not among.any():
        return "**The text has no token that could be taken away**"
    voting = [one for one in found if one.has_sign]
    whole = next((one.difference for one in found if one.difference is not None), None)
    direction = -1 if whole is not None and whole < 0 else 1
    firsts = [int(one.order(among, direction)[0]) for one in voting]
    first = max(set(firsts), key=firsts.count)
    token = literal(name(Axis.of(screen.tokens), first))
    n_same = firsts.count(first)
    if n_same == len(voting):
        return f"**All {len(voting)} methods that use the outcome rank {token} first among the words: it rests on this token most**"
    return f"**{n_same} of {len(voting)} methods that use the outcome rank {token} first among the words; they do not agree on what it rests on**"


def sheet(screen: Screen, found: Sequence[InputAttribution]) -> Figure:
    """Tokens down, methods across; the figure."""
    drawn = draw_attributions(found, screen.tokens, NAMES, picked=screen.view.query, theme=screen.view.theme)
    chart(
        drawn,
        key="inputs_sheet",
        alt="How much each token counts by each method, tokens down and methods across",
        on_pick=_pick,
        name="Tokens and methods; select one",
    )
    return drawn


def note(screen: Screen, found: Sequence[InputAttribution]) -> str:
    """What the numbers are, relative to what, and what they do not mean."""
    said = [
        f"Outcome: {screen.measured}. Each column has a colour scale of its own; blue-green raises the outcome, orange lowers it."
    ]
    baseline = next((one.baseline for one in found if one.baseline is not None), None)
    if baseline is not None:
        instead = "zeros" if baseline == "zeros" else f"that of {baseline}"
        said.append(
            f"Where a token is taken away, its vector is replaced by {instead}; special tokens and masks are kept."
        )
    said += [_sum(one) for one in found if one.method == "integrated_gradients"]
    if not any(one.method == "gradient_times_input" for one in found) and not isinstance(
        screen.outcome, TokenState
    ):
        said.append(
            "Gradient × input is left out: this model scales every token's vector to one length, so that it is 0 up to rounding."
        )
    if not all(one.has_sign for one in found):
        said.append(
            "Norm-based weights, rollout and attention flow (Abnar and Zuidema 2020, arXiv:2005.00928) have no sign and know "
            "nothing of the outcome: they say what is read, not what matters."
        )
    return " ".join(said)


def _sum(found: InputAttribution) -> str:
    """Whether integrated gradients sum to the difference of outcomes."""
    title = "Integrated gradients (Sundararajan et al. 2017, arXiv:1703.01365)"
    gap, difference = power_text(abs(found.gap or 0.0)), number_text(found.difference or 0.0)
    if found.is_complete:
        within = "up to the rounding of float32" if abs(found.gap or 0.0) <= SMALLEST_GAP else f"within {gap}"
        return f"{title} sum to the difference of outcomes, {difference}, {within}."
    return f"{title} do not sum to the difference of outcomes, {difference}: with {found.steps} steps the integral is off by {gap}."


def as_csv(screen: Screen, found: Sequence[InputAttribution]) -> bytes:
    """A line for every token, a column for every method."""
    names = entry_names(Axis.of(screen.tokens))
    rows = [[at, names[at], *(one.values[at] for one in found)] for at in range(len(screen.tokens))]
    return table_csv(["position", "token", *(one.method for one in found)], rows)


def _pick(clicked: Any) -> None:
    match clicked:
        case [int(token), int()]:
            state.change(query=token)
