"""What do heads do in a long text? How far each looks, how much rests on the first token, and which find a sentence in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Annotated, ClassVar, Literal

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.needle import DEPTHS, N_BEST, N_DRAWS, HeadsOff, NeedleHeads, needle, needle_off
from attnviz.figures.heads import draw_binned_shares
from attnviz.figures.needle import draw_heads_off, draw_needle
from attnviz.figures.numbers import number_text, percent_text, share_text
from attnviz.heads.reach import Reach
from attnviz.records import Head, heads_in
from attnviz.records.table import table_csv
from ui.choice import widgets
from ui.choice.fields import Number, Text, Word
from ui.choice.selection import choices
from ui.limits import TOKENS
from ui.part import Part, Picture, Row, Sheet
from ui.rooms.cause.own_run import OwnRun
from ui.runtime import cache, with_model
from ui.runtime.jobs import TELLS_PROGRESS, Call, Job
from ui.shell.chart import chart
from ui.shell.export.recipe import call, trace_lines
from ui.shell.heads import named_heads, pick_head, ranked_heads
from ui.shell.view import View
from ui.shell.waiting import is_there, whole_page
from ui.words.findings import correlation_text
from ui.words.literal import literal

Shown = Literal["first", "near", "needle"]
NEAR = 16
"""A key is near if it is fewer than this many tokens away."""
N_RANKED = 8
_GRID = "long_grid"
_OFF = "long_off"


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class LongTextChoices:
    """What is shown of all heads, and the sentence that they are to find."""

    PREFIX: ClassVar = "long_"

    shown: Annotated[
        Shown,
        Word(
            names={"first": "First token", "near": "Near tokens", "needle": "Needle"},
            title="All heads",
            help=f"Shows of every head its weight on the first token, on tokens fewer than {NEAR} away, or on the needle once it is found.",
        ),
    ] = "first"
    needle: Annotated[
        str,
        Text(title="Needle", help="Places this sentence in the text, for the heads to find."),
    ] = "The key to the cellar lies under the blue stone."
    question: Annotated[
        str,
        Text(
            title="Question, or the beginning of the answer",
            help="Ends the text with these words, which ask for the needle.",
        ),
    ] = "The key to the cellar lies"
    answer: Annotated[
        str,
        Text(
            title="Answer",
            help="Follows the question; its probability and the heads that copy it are measured.",
        ),
    ] = "under the blue stone"
    depth: Annotated[
        int,
        Number(
            0,
            100,
            step=5,
            title="Depth (%)",
            help="Places the needle after this share of the text, at the end of a sentence.",
        ),
    ] = 50


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Screen(OwnRun):
    """A text, how far its heads reach, and the needle in it."""

    @cached_property
    def chosen(self) -> LongTextChoices:
        """What is selected on this page."""
        return self.view.selection.of(LongTextChoices)

    @cached_property
    def reach(self) -> Reach:
        """The weight of every head on the first token by position, and by distance."""
        return cache.reach(self.view.selection.source, self.view.kind)

    @cached_property
    def first(self) -> np.ndarray:
        """Weight of every head on the first token [layer, head], mean over the queries that may see it."""
        sinks = self.reach.sinks
        total = sinks.counts.sum(axis=-1)
        weight = (np.nan_to_num(sinks.shares) * sinks.counts).sum(axis=-1)
        return np.asarray(np.divide(weight, total, out=np.full(total.shape, np.nan), where=total > 0))

    @cached_property
    def near(self) -> np.ndarray | None:
        """Weight of every head on tokens fewer than `NEAR` away; None for two texts, and where all tokens are as near."""
        distances = self.reach.distances
        if distances is None or distances.bins[-1, 1] < NEAR:
            return None
        return np.asarray(distances.shares[..., distances.bins[:, 1] < NEAR].sum(axis=-1))

    @cached_property
    def depths(self) -> tuple[float, ...]:
        """Where the needle is placed: where it was asked for, then elsewhere."""
        asked = self.chosen.depth / 100
        return (asked, *(depth for depth in DEPTHS if depth != asked))

    @property
    def needle_key(self) -> tuple[object, ...]:
        """What the needle test depends on besides the text."""
        return (self.chosen.needle, self.chosen.question, self.chosen.answer, self.chosen.depth)

    @property
    def needle_job(self) -> Job:
        """The job that ranks all heads, a call for each depth."""
        return self.job(
            "needle", self.needle_key, lambda: [self._call(needle, depths=(depth,)) for depth in self.depths]
        )

    @cached_property
    def found(self) -> NeedleHeads | None:
        """Every head's weight on the needle; None until all depths are known."""
        return joined(self.needle_job.results) if self.needle_job.finished else None

    @property
    def best(self) -> tuple[Head, ...]:
        """The heads that look at the needle most, mean over the depths."""
        assert self.found is not None
        return tuple(self.found.ranked()[:N_BEST])

    @property
    def off_job(self) -> Job:
        """The job that switches the best heads off."""
        depth = self.chosen.depth / 100
        return self.job(
            "needle_off",
            (*self.needle_key, self.best),
            lambda: [self._call(needle_off, self.best, depth=depth)],
        )

    @property
    def off(self) -> HeadsOff | None:
        """The answer without the best heads; None until known, or where there is no answer."""
        if self.found is None or not self.found.answer or not self.off_job.finished:
            return None
        off: HeadsOff = self.off_job.results[0]
        return off

    def _call(self, function: Callable[..., object], *given: object, **named: object) -> Call:
        chosen = self.chosen
        asked = (chosen.needle, chosen.question, chosen.answer)
        return (
            with_model.call,
            (function, self.model, self.view.selection.text, *asked, *given),
            {
                **named,
                "cut": True,
                "max_tokens": TOKENS,
                **TELLS_PROGRESS,
            },
        )


def joined(results: Sequence[NeedleHeads | None]) -> NeedleHeads | None:
    """The depths that are known so far."""
    known = [result for result in results if result is not None]
    return reduce(NeedleHeads.joined, known) if known else None


def screen_of(view: View) -> Screen:
    """The text, and what is known of it."""
    return Screen(view=view)


def finding(screen: Screen) -> str:
    """What the selected head rests on, and once the needle is found which head looks at it most, as Markdown."""
    place = screen.view.selection.place
    if (found := screen.found) is not None:
        [best, *_] = screen.best
        said = f"{best.title} looks at the needle most: {share_text(float(found.mean[best]))} of its weight"
        if (off := screen.off) is not None:
            return f"{said}. Answer: probability {number_text(off.base)}, without the best {N_BEST} heads {number_text(off.off)}"
        return f"{said}; {place.short} {share_text(float(found.mean[place]))}"
    rests = f"{place.words} puts {share_text(float(screen.first[place]))} of its weight on the first token"
    if screen.near is None:
        return rests.capitalize()
    return f"{rests.capitalize()}, {share_text(float(screen.near[place]))} on tokens fewer than {NEAR} away"


def profile(screen: Screen) -> Figure | None:
    """The selected head's weight by distance."""
    st.markdown("**Weight by distance**")
    if (distances := screen.reach.distances) is None:
        st.caption("Queries and keys are of two texts, between which there is no distance.")
        return None
    figure = draw_binned_shares(distances, head=screen.view.selection.place, theme=screen.view.theme)
    chart(figure, key="long_profile", alt=f"Weight of {screen.view.selection.place.words} by distance")
    st.caption(
        "Each bar spans twice as many distances as the one before it (a logarithmic axis); the bars sum to 1. Weight on the first token "
        "counts at its distance."
    )
    return figure


def sinks(screen: Screen) -> Figure:
    """The selected head's weight on the first token by position."""
    st.markdown("**Weight on the first token, by position of the query**")
    figure = draw_binned_shares(screen.reach.sinks, head=screen.view.selection.place, theme=screen.view.theme)
    chart(figure, key="long_sinks", alt=f"Weight of {screen.view.selection.place.words} on the first token")
    st.caption(
        "Heads rest on the first token where they find nothing else (Xiao et al. 2023, arXiv:2309.17453)."
    )
    return figure


def numbers(screen: Screen) -> tuple[Shown, np.ndarray]:
    """The number of every head that is shown, and its name; weight on the first token where there is no other yet."""
    shown = screen.chosen.shown
    if shown == "near" and screen.near is not None:
        return shown, screen.near
    if shown == "needle" and screen.found is not None:
        return shown, screen.found.mean
    return "first", screen.first


_MEANS: dict[Shown, str] = {
    "first": "on the first token",
    "near": f"on tokens fewer than {NEAR} away",
    "needle": "on the needle",
}


def grid(screen: Screen) -> None:
    """All heads, each with the selected number."""
    st.segmented_control(**widgets.field("long_shown", required=True))
    shown, of_heads = numbers(screen)
    notes = [f"Each number is the share of a head's weight {_MEANS[shown]}, mean over the queries."]
    if shown == "needle":
        notes = [
            "Each number is the share of a head's weight on the needle "
            f"{'where the answer is predicted' if screen.found and screen.found.answer else 'from the tokens of the question'}, mean over the depths."
        ]
    elif shown != screen.chosen.shown:
        notes += [
            "The needle is not found yet: the heads are below it." if screen.chosen.shown == "needle" else ""
        ]
    named_heads(
        screen.view,
        of_heads,
        lambda head: f"{head.title}: {share_text(float(of_heads[head]))} of its weight {_MEANS[shown]}",
        name="Share of weight of each head; select one",
        key=_GRID,
        notes=[*filter(None, notes)],
    )


def ranking(screen: Screen) -> None:
    """The heads with the largest number; a click selects."""
    shown, of_heads = numbers(screen)
    st.markdown(f"**Most weight {_MEANS[shown]}**")
    order = sorted(heads_in(of_heads), key=lambda head: -float(of_heads[head]))[:N_RANKED]
    ranked_heads(
        screen.view,
        [(head, share_text(float(of_heads[head])), float(of_heads[head])) for head in order],
        name=f"Heads with the most weight {_MEANS[shown]}; select one",
        key="long_ranking",
    )


def asked(screen: Screen) -> None:
    """The fields of the needle, the button, and the heads so far."""
    st.markdown("**Find a sentence in this text**")
    st.caption(
        "Write a sentence, which is placed in the text, and a question about it, which ends it. Which heads look back at the sentence?"
    )
    columns = st.columns((3, 2, 2), gap="small")
    for column, name in zip(columns, ("long_needle", "long_question", "long_answer"), strict=True):
        column.text_input(**widgets.field(name))
    st.slider(**widgets.field("long_depth"), width=400)
    if screen.view.selection.bundle:
        st.caption(
            "An opened bundle cannot be read again with a needle in it. Close the bundle to read its sentence."
        )
        return
    if (
        is_there(
            screen.needle_job,
            None,
            f"Reading the text with the needle at {len(screen.depths)} depths",
            key="long_needle_act",
            request=screen.request("Find the heads", "needle", *screen.needle_key),
            result=lambda: so_far(screen),
        )
        and screen.found is None
    ):  # found while the page was being drawn, whose finding and grid are without it
        whole_page()


def so_far(screen: Screen) -> None:
    """The best heads at the depths that are known."""
    if (found := joined(screen.needle_job.results)) is not None:
        n = len(found.depths)
        st.caption(f"{n} of {len(screen.depths)} depths so far.")
        best_heads(screen, found)


def best_heads(screen: Screen, found: NeedleHeads) -> None:
    """The heads that look at the needle most; a click selects."""
    ranked_heads(
        screen.view,
        [(head, _amount(found, head), float(found.mean[head])) for head in found.ranked()[:N_RANKED]],
        name="Heads that look at the needle most; select one",
        key="long_needle_ranking",
    )


def _amount(found: NeedleHeads, head: Head) -> str:
    amount = share_text(float(found.mean[head]))
    copied = float(found.copied[:, head.layer, head.head].mean())
    return amount if np.isnan(copied) else f"{amount}, copies {percent_text(copied)}"


def needle_figure(screen: Screen) -> Figure | None:
    """The best heads wherever the needle is."""
    if (found := screen.found) is None:
        return None
    st.markdown("**The best heads, wherever the needle is**")
    figure = draw_needle(found, picked=screen.view.selection.place, theme=screen.view.theme)
    chart(figure, key="long_needle", alt="Weight of the best heads on the needle by its depth", on_pick=_pick)
    st.caption(literal(found_words(found)))
    return figure


def _pick(clicked: object) -> None:
    match clicked:
        case [int(layer), int(head)]:
            pick_head(layer, head)


def found_words(found: NeedleHeads) -> str:
    """Whether the same heads find the needle elsewhere, and whether the model can answer."""
    sentences = []
    if len(found.depths) > 1:
        kept, agreement = found.kept[0, 1:], found.agreement[0, 1:]
        sentences.append(
            f"Of the best {N_BEST} heads at {found.depths[0]:.0%}, {_span(kept.min(), kept.max())} are among the best {N_BEST} at the other depths; "
            f"rank correlation of all heads {_span(correlation_text(float(agreement.min())), correlation_text(float(agreement.max())))}."
        )
    else:
        sentences.append("The text is too short for another place of the needle.")
    if found.answer:
        low, high = (float(end(found.answer_probabilities)) for end in (min, max))
        sentences.append(f"Probability of the answer: {_span(number_text(low), number_text(high))}.")
        if not found.writes_answer:
            at = found.writes.index(False)
            written = " ".join(found.written[at])
            sentences.append(
                f"With the needle at {found.depths[at]:.0%} the model would not write it: in place of its tokens it has {_quoted(written)}, "
                "so that heads are ranked for an answer that it does not give."
            )
    else:
        sentences.append(
            "This model predicts no next token: the heads are ranked by the question's tokens, and nothing is answered."
        )
    return " ".join(sentences)


def _quoted(text: str) -> str:
    return f"“{text}”"


def _span(low: object, high: object) -> str:
    return f"{low}" if str(low) == str(high) else f"{low} to {high}"


def beside_needle(screen: Screen) -> None:
    """The best heads, with what they copy."""
    if (found := screen.found) is None:
        return
    st.markdown("**Look at the needle most**")
    best_heads(screen, found)
    if found.answer:
        st.caption(
            "The bar is the share of weight; copies: the share of the answer's tokens for which the largest weight is on the same token "
            "of the needle (Wu et al. 2024, arXiv:2404.15574)."
        )


def without_best(screen: Screen) -> Figure | None:
    """The answer without the best heads, and without random ones."""
    if (found := screen.found) is None or not found.answer:
        return None
    st.markdown(f"**The answer without the best {N_BEST} heads**")
    if not is_there(
        screen.off_job,
        None,
        "Switching heads off",
        key="long_off_act",
        request=screen.request(f"Switch off the best {N_BEST}", "needle_off", *screen.needle_key),
    ):
        return None
    off = screen.off
    assert off is not None
    figure = draw_heads_off(off, theme=screen.view.theme)
    chart(figure, key=_OFF, alt="Probability of the answer without heads")
    random = off.random.tolist()
    st.caption(
        literal(
            f"Probability of {_quoted(found.answer)} with the needle at {found.depths[0]:.0%}: {number_text(off.base)} with all heads (dotted), {number_text(off.off)} without "
            f"{', '.join(head.short for head in off.heads)}, {_span(number_text(min(random)), number_text(max(random)))} without as many random heads of the same layers "
            f"({N_DRAWS} draws)."
        )
    )
    return figure


def csv(screen: Screen) -> bytes:
    """A line for every head: all its numbers."""
    distances, found = screen.reach.distances, screen.found
    names = ["layer", "head", "first token"]
    names += [] if distances is None else [f"distance {name}" for name in distances.names]
    names += [f"first token at {name}" for name in screen.reach.sinks.names]
    names += [] if found is None else ["needle", "retrieval score"]
    rows = []
    for head in screen.view.trace.heads(screen.view.kind):
        row = [*head, screen.first[head]]
        row += [] if distances is None else distances.shares[head].tolist()
        row += ["" if np.isnan(share) else share for share in screen.reach.sinks.shares[head].tolist()]
        if found is not None:
            copied = float(found.copied[:, head.layer, head.head].mean())
            row += [found.mean[head], "" if np.isnan(copied) else copied]
        rows.append(row)
    return table_csv(names, rows)


def lines(screen: Screen) -> str:
    """Python that draws the profile of the head, and finds the heads."""
    view, chosen = screen.view, screen.chosen
    place = f"({call(*view.selection.place)})"
    kind = f", kind={view.kind!r}" if view.selection.kind else ""
    written = [
        "import attnviz",
        *trace_lines(view),
        f"reach = attnviz.reach(trace{kind})",
        f"reach.sinks.figure(head={place}).show()",
    ]
    if screen.reach.distances is not None:
        written.append(f"reach.distances.figure(head={place}).show()")
    if not view.selection.bundle:
        asked = call(chosen.needle, chosen.question, chosen.answer, depths=screen.depths)
        written += [
            f"found = attnviz.needle(model, trace.tokens.text, {asked}, cut=True, max_tokens={TOKENS})",
            f"print(found.ranked()[:{N_BEST}], found.answer_probabilities)",
        ]
    return "\n".join([*written, ""])


PART = Part(
    name="Long text",
    address="long_text",
    question="How far do heads look in a long text?",
    longest=8192,
    terms=("Attention sink", "Distance profile", "Retrieval head", "Head", "Weight"),
    sheets=(
        Sheet(
            screen=screen_of,
            finding=finding,
            rows=(
                Row(
                    Picture(
                        "long_profile",
                        "Weight by distance",
                        "bars: share of weight at each distance",
                        profile,
                    ),
                    Picture(
                        "long_sinks",
                        "Weight on the first token",
                        "bars: share of weight on the first token",
                        sinks,
                    ),
                ),
                Row(
                    Picture(_GRID, "All heads", "cells: share of weight of each head", grid),
                    ranking,
                    widths=(3, 1),
                    beside=_GRID,
                ),
                asked,
                Row(
                    Picture(
                        "long_needle",
                        "Heads that find the needle",
                        "lines: share of weight on the needle; across: its depth",
                        needle_figure,
                    ),
                    beside_needle,
                    widths=(2, 1),
                ),
                Picture(
                    _OFF,
                    "The answer without heads",
                    "bars: probability of the answer; dotted line: with all heads",
                    without_best,
                ),
            ),
            numbers="Numbers of all heads",
            csv=csv,
            python=lines,
        ),
    ),
)
