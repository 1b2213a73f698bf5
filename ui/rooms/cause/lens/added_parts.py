"""What each head, each MLP and the embedding add to the answer directly: of a sentence, or on average over a set of prompts."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import streamlit as st
from jaxtyping import Float
from plotly.graph_objects import Figure

from attnviz.effects.logit_attribution import DirectEffects, DirectParts, attribute_answer
from attnviz.effects.outcome import TokenAnswer
from attnviz.effects.over_pairs import MeanDirectEffects, attribute_pair, mean_direct_effects, over_pairs
from attnviz.figures.labels import isolated
from attnviz.figures.lens import draw_layer_parts
from attnviz.figures.numbers import number_text, power_text, spread_text
from attnviz.records import Axis, Head, as_label, heads_in, known
from ui.choice import state
from ui.components.head_grid import beside_grid
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.cause import prompts
from ui.rooms.cause.lens.answers import Screen, has_head
from ui.rooms.cause.prompts import SetRun
from ui.runtime.jobs import Job
from ui.shell.chart import chart, picks
from ui.shell.export.recipe import call, set_lines, trace_lines
from ui.shell.heads import named_heads
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.extremes import equals, places_of_largest
from ui.words.findings import name
from ui.words.literal import literal, quoted

_MOST_PARTS = 8
_HEADS, _LAYERS = "lens_heads", "lens_layer_parts"
Drawn = dict[str, Figure | None]


def direct_job(screen: Screen) -> Job:
    """The job that attributes the answer: the outcome, or the model's own answer at the selected token."""
    at, answer = screen.view.last_query, screen.answer
    key = (at if answer is None else str(answer),)
    return screen.job("direct", key, lambda: [screen.call(attribute_answer, at, answer)])


def run_of(view: View) -> SetRun[DirectParts]:
    """The attribution of the answers of every pair of the set of prompts."""
    return prompts.set_run(view, prompts.pairs(view), attribute_pair, ())


def is_averaged(view: View) -> bool:
    """Whether the parts on screen are means over a set of prompts."""
    if not prompts.is_set(view) or view.selection.bundle or not has_head(view):
        return False
    run = run_of(view)
    return run.work.finished and bool(run.results)


def set_csv(run: SetRun[DirectParts]) -> bytes:
    """A line for every part, with its mean over the pairs."""
    return mean_direct_effects([*run.results.values()]).csv(run.pairs)


def added(screen: Screen) -> Drawn | tuple[str, ...]:
    """The finding, all heads, all layers and the largest parts, of the sentence or of a set of prompts."""
    view = screen.view
    if screen.has_head:
        prompts.choice()
        if prompts.is_set(view):
            return _on_average(view)
    work = direct_job(screen)
    if not is_there(work, screen.n_tokens, "Computing direct logit attribution", key="direct_act"):
        return ()
    answer, effects = work.results[0]

    def beside() -> None:
        sources(screen, effects)
        link_to("Heads off", label=f"What if {view.selection.place.words} were off?")

    token = literal(name(Axis.of(screen.tokens), effects.position))
    what = f"the last hidden state of {token}" if answer is None else f"{answer_words(answer)} at {token}"
    of_what = "that vector’s length" if answer is None else _short(answer)
    return _show(
        view,
        effects,
        finding(effects, what, f"{of_what} is {number_text(effects.total)}"),
        lambda: _grid(view, effects, note(effects, answer, has_head=screen.has_head)),
        beside,
    )


def _on_average(view: View) -> Drawn | tuple[str, ...]:
    if prompts.table(view) is None:
        return ()
    run = run_of(view)
    mean = run.mean(mean_direct_effects, "Taking apart", lambda so_far: _mean_grid(view, so_far))
    if mean is None:
        return ()
    grid = partial(_mean_grid, view, mean, set_note(run, mean))
    return _show(view, mean.mean, set_finding(mean), grid, over=mean, of_pairs=[*run.results.values()])


def _show(
    view: View,
    parts: DirectParts,
    sentence: str,
    grid: Callable[[], None],
    beside: Callable[[], None] = lambda: None,
    over: MeanDirectEffects | None = None,
    of_pairs: Sequence[DirectParts] = (),
) -> Drawn:
    left, right = beside_grid((3, 1), _HEADS, n_layers=view.trace.n_layers(view.kind))
    with left:
        st.markdown(f"**{sentence}**")
        grid()
        drawn = layers(view, parts, over)
    with right:
        largest_parts(view, parts, of_pairs)
        beside()
    return {_HEADS: None, _LAYERS: drawn}


def _grid(view: View, effects: DirectEffects, note: str) -> None:
    named_heads(
        view,
        effects.heads,
        lambda head: f"{head.title}: {number_text(float(effects.heads[head]))}",
        name="What each head adds; select one",
        key=_HEADS,
        signed=True,
        notes=[note],
        heads=heads_in(effects.heads),
    )


def _mean_grid(view: View, mean: MeanDirectEffects, *notes: str) -> None:
    named_heads(
        view,
        mean.heads.mean,
        lambda head: f"{head.title}: mean direct effect {prompts.mean_text(mean.heads, *head)}",
        name="What each head adds on average; select one",
        key=_HEADS,
        signed=True,
        notes=notes,
    )


def largest_part(parts: DirectParts) -> tuple[Head, int] | None:
    """The head that adds or subtracts most, and how many others do as much; None if all are NaN."""
    places = places_of_largest(np.abs(parts.heads), number_text)
    return (Head(*places[0]), len(places) - 1) if places else None


def finding(parts: DirectParts, what: str, whole: str) -> str:
    """Which head adds or subtracts most.

    Args:
        what: the number that the heads add to, as Markdown.
        whole: what that number is, as a clause.
    """
    largest = largest_part(parts)
    if largest is None:
        return f"No head’s direct effect on {what} is a number; {whole}"
    head, n_equal = largest
    return (
        f"Of all heads, {head.words} has the largest direct effect on {what}{equals(n_equal)}: "
        f"{number_text(float(parts.heads[head]))}; {whole}"
    )


def set_finding(mean: MeanDirectEffects) -> str:
    """Which head adds or subtracts most on average, and how much it varies between pairs."""
    largest = largest_part(mean.mean)
    spread = np.nan if largest is None else float(mean.heads.spread[largest[0]])
    whole = f"that difference is {number_text(mean.mean.total)}"
    sentence = finding(mean.mean, "the logit difference of the answers on average", whole)
    return f"{sentence} ({prompts.over_words(mean.heads.n_pair, spread)})"


def answer_words(answer: TokenAnswer) -> str:
    """The number that is attributed, as Markdown; for a single token the logit, since a probability is not a sum."""
    words = f"the logit of {quoted(as_label(answer.token))}"
    return words if answer.against is None else f"{words} minus that of {quoted(as_label(answer.against))}"


def _short(answer: TokenAnswer) -> str:
    return "the logit" if answer.against is None else "the difference"


def note(effects: DirectEffects, answer: TokenAnswer | None, *, has_head: bool) -> str:
    """What the parts sum to, and what they leave out."""
    instead = (
        "The answer itself is not a sum of parts here: the language head is not linear, as in BERT, or its vocabulary has no "
        "such token. "
    ) * (answer is None and has_head)
    what = "length of the last hidden state" if answer is None else _short(answer).removeprefix("the ")
    gap = power_text(abs(effects.gap))
    sums = (
        f"sum to the {what}, {number_text(effects.total)}, within {gap}"
        if effects.passed
        else f"do not sum to the {what}, {number_text(effects.total)}: they are off by {gap}, which is more than rounding"
    )
    return (
        f"{instead}All parts together, heads, MLPs, embedding and biases, {sums}. Each is what a part adds directly, through W_O and the "
        "norms after it, whose scales are kept; what it changes in later heads and MLPs is left out, so that switching the head off "
        "(Heads off) gives another number (Wang et al. 2022, arXiv:2211.00593)."
    )


def set_note(run: SetRun[DirectParts], mean: MeanDirectEffects) -> str:
    """What is measured, what the parts sum to, and which lines are left out."""
    sentences = [
        prompts.outcome_words({"clean": mean.totals}),
        "Each part is the mean of what it adds directly, through W_O and the norms after it, whose scales are kept; means of parts sum "
        "to the mean outcome.",
    ]
    return " ".join([*sentences, *run.refused])


def layers(view: View, parts: DirectParts, over: MeanDirectEffects | None) -> Figure:
    """What each layer adds, its heads together and its MLP."""
    st.markdown("**Layer by layer**")
    drawn: Figure = draw_layer_parts(parts, over=over, picked=view.selection.layer, theme=view.theme)
    chart(
        drawn,
        key=_LAYERS,
        alt="What the heads and the MLP of each layer, and the embedding, add directly",
        on_pick=picks("layer"),
        name="Layers; select one",
    )
    return drawn


def named_parts(parts: DirectParts) -> list[tuple[str, float, Head | None]]:
    """All parts of the model: name, what each adds, and the head if it is one; in the same order for every text."""
    named: list[tuple[str, float, Head | None]] = [("Embedding", parts.embedding, None)]
    for layer, of_layer in enumerate(parts.heads):
        heads = [Head(layer, head) for head in range(len(known(of_layer)))]
        named += [(head.title, float(parts.heads[head]), head) for head in heads]
        named.append((f"Layer {layer}, MLP", float(parts.mlps[layer]), None))
        named.append((f"Layer {layer}, biases", float(parts.biases[layer]), None))
    return [*named, ("Final biases", parts.bias, None)]


def strongest(adds: Float[np.ndarray, " part"], most: int = _MOST_PARTS) -> list[int]:
    """The parts that add or subtract most, largest first; ties in their order, without parts that add nothing."""
    order = np.argsort(-np.abs(adds), kind="stable")[:most].tolist()
    return [row for row in order if adds[row]]


def largest_parts(view: View, parts: DirectParts, of_pairs: Sequence[DirectParts]) -> None:
    """The parts with the largest direct effects, heads and others, and the sum of all; with the spread over pairs, if any."""
    named = named_parts(parts)
    spread = np.full(len(named), np.nan)
    if of_pairs:
        spread = over_pairs([adds for _, adds, _ in named_parts(of_pair)] for of_pair in of_pairs).spread
    order = strongest(np.array([adds for _, adds, _ in named]))
    largest = abs(named[order[0]][1]) if order else 1.0

    def pick(row: int) -> None:
        if (head := named[order[row]][2]) is not None:
            state.change(layer=head.layer, head=head.head)

    st.markdown(f"**Largest {'mean ' * bool(of_pairs)}direct effects of all parts**")
    ranked_list(
        [
            Row(
                text=title,
                amount=f"{number_text(number)}{spread_text(float(spread[row]))}",
                length=number / largest,
                picked=head == view.selection.place,
            )
            for row in order
            for title, number, head in [named[row]]
        ],
        name="Parts of the model with the largest direct effects; select a head",
        on_pick=pick,
        theme=view.theme,
        key="lens_parts",
    )
    st.markdown(total(parts))


def sources(screen: Screen, effects: DirectEffects) -> None:
    """What the selected head adds, by the tokens it reads from."""
    place = screen.view.selection.place
    of_keys = effects.sources[place.layer][place.head]
    largest = float(np.abs(of_keys).max(initial=0.0)) or 1.0
    n_read = int(np.count_nonzero(of_keys))  # a decoder's head reads no later token
    keys = strongest(of_keys)
    labels = Axis.of(screen.view.trace.key_tokens(effects.kind))
    st.markdown(f"**{place.title}, by the token that it reads**")
    ranked_list(
        [
            Row(
                text=f"{isolated(labels.labels[at])} ({at})",
                amount=number_text(float(of_keys[at])),
                length=float(of_keys[at]) / largest,
                picked=at == screen.view.selection.key,
            )
            for at in keys
        ],
        name="Tokens by what the head adds because it reads them; select a key",
        on_pick=lambda row: state.change(key=keys[row]),
        theme=screen.view.theme,
        key="lens_sources",
    )
    st.caption(sources_note(len(keys), n_read, float(effects.heads[place])))


def sources_note(n_shown: int, n_token: int, adds: float) -> str:
    """What the numbers are, and that they sum to the head's total."""
    which = f"The largest {n_shown} of {n_token:,} tokens. " if n_shown < n_token else ""
    return (
        f"{which}Weight times the value of the token, through W_O and the frozen norms; over all tokens they sum to what the head "
        f"adds, {number_text(adds)}."
    )


def total(parts: DirectParts) -> str:
    """The sum of all parts, compared with the model's own number, as Markdown."""
    return (
        f"Sum of all parts **{parts.summed:.6g}** · the model’s own **{parts.total:.6g}** · difference **{power_text(abs(parts.gap))}**"
    ).replace("-", "−")


def lens_lines(screen: Screen) -> str:
    """Python for the lens, and the direct attribution of the answer at a token, or of its last state."""
    view, work = screen.view, direct_job(screen)
    answer: TokenAnswer | None = work.results[0][0] if work.finished else None
    apart, asked = "attribute_state", f"{view.last_query}"
    if answer is not None:
        at = answer.place(len(view.trace.last_tokens))
        apart, asked = "attribute_token", call(at, answer.token, against=answer.against)
    compute = "lens" if screen.has_head else "layer_similarities"
    return "\n".join(
        [
            "import attnviz",
            f"from attnviz.effects.lens import {compute}",
            f"from attnviz.effects.logit_attribution import {apart}",
            *trace_lines(view),
            f"{compute}(model, trace).figure().show()",
            f"parts = {apart}(model, trace, {asked})",
            "for head in parts.ranked()[:8]:",
            "    print(head.words, parts.heads[head])",
            "",
        ]
    )


def set_lens_lines(view: View) -> str:
    """Python that attributes the outcome of every pair of a set and draws the means layer by layer."""
    return "\n".join(
        [
            "import attnviz",
            "from attnviz.effects.logit_attribution import attribute_token",
            "from attnviz.effects.over_pairs import mean_direct_effects",
            "from attnviz.effects.prompts import checked_prompts, prepared, read_prompts",
            *set_lines(view, prompts.pairs(view)),
            "parts = []",
            "for pair in prompts.pairs:",
            "    clean, corrupted, measure = prepared(model, pair)",
            "    answer = measure.outcome",
            "    parts.append(attribute_token(model, clean, answer.position, answer.token, against=answer.against))",
            "over = mean_direct_effects(parts)",
            "for head in over.mean.ranked()[:8]:",
            "    print(head.words, over.heads.mean[head], over.heads.spread[head])",
            "over.figure().show()",
            "",
        ]
    )
