"""Where does attention go? Queries and keys in two columns, joined by lines, for one head or several."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Literal, Self

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures.flow import draw_flow
from attnviz.figures.heatmap import MEASURE_NAMES, MOST_COUNTED
from attnviz.figures.numbers import counted, percent_text, share_text
from attnviz.figures.theme import LIGHT
from attnviz.heads.flow import MOST_LINES, Flow, above_share, above_weight, lines_csv, strongest_lines
from attnviz.records import AllHeads, Head
from ui.choice import state, widgets
from ui.choice.fields import Heads, Number, Word
from ui.choice.selection import choices
from ui.components.token_flow import token_flow
from ui.part import Part, Picture, Sheet
from ui.rooms.explore.mixing import identity_note, mixing_is_there
from ui.shell.export.captions import measured
from ui.shell.view import RENORMALISED, View, hidden_note
from ui.words.findings import MEASURE_NOTES, finding, name, place
from ui.words.literal import literal

MOST_HEADS = len(LIGHT.heads)  # one for each distinguishable colour
Threshold = Literal["share", "weight"]
"""How the lines of the flow are selected."""


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """The lines from queries to keys: their heads, and their threshold."""

    heads: Annotated[
        tuple[Head | AllHeads, ...],
        Heads(
            title="Beside the selected head",
            help="Draws the lines of these heads too, each in its own colour.",
        ),
    ] = ()
    """Heads, or all heads of a layer together, besides the selected one."""
    threshold: Annotated[
        Threshold,
        Word(
            names={"share": "Share of each row", "weight": "Weight"},
            title="Threshold",
            help="Leaves out weak lines by how much of their row the stronger ones hold, or by their weight alone.",
        ),
    ] = "share"
    share: Annotated[
        int,
        Number(
            10,
            100,
            step=5,
            title="Share of each row",
            help="Draws the strongest lines of each query until they hold this share of its row.",
        ),
    ] = 70
    """In percent."""
    weakest: Annotated[
        float,
        Number(
            0,
            100,
            title="Weakest line, in percent",
            help="Draws lines of this weight and above; of norm-based weights, in percent of the largest.",
        ),
    ] = 5.0
    """In percent; of the largest weight if rows do not sum to 1."""
    at_once: Annotated[
        int | None,
        Number(
            0,
            2000,
            step=50,
            title="Lines at once",
            help="Draws this many of the strongest lines, beside those of the selected query and key, until you hover over a token or tap it.",
        ),
    ] = None
    """None for all lines of a short text, and no lines of a long one."""

    def fitted(self, is_there: Callable[[Head | AllHeads], bool], model: str) -> tuple[Self, str]:
        """These choices with the heads that a model has, and what was left out."""
        heads = tuple(filter(is_there, self.heads))
        asked = ", ".join(map(str, self.heads))
        remark = f"Heads {asked} were asked for; those that {model} has are shown."
        return replace(self, heads=heads), remark if heads != self.heads else ""


@dataclass(frozen=True, kw_only=True)  # without slots, for what is computed once
class Screen:
    """The lines of some heads."""

    view: View

    @property
    def settings(self) -> FlowSettings:
        """Which lines are drawn."""
        return self.view.selection.of(FlowSettings)

    @cached_property
    def chosen(self) -> list[Head | AllHeads]:
        """The heads whose lines are requested, the selected one first."""
        heads = [self.view.selection.place, *self.settings.heads]
        if self.view.is_of_layer:
            heads = [AllHeads(head.layer) for head in heads]
        return list(dict.fromkeys(heads))

    @property
    def heads(self) -> list[Head | AllHeads]:
        """Those whose lines are drawn."""
        return self.chosen[:MOST_HEADS]

    @cached_property
    def matrices(self) -> np.ndarray:
        """Their weights; of all heads of a layer together where that is requested."""
        pattern = self.view.pattern
        return np.stack(
            [
                (pattern(head.layer, together=True) if isinstance(head, AllHeads) else pattern(*head)).weights
                for head in self.heads
            ]
        )

    @property
    def largest(self) -> float:
        """The weight of the thickest line that there could be."""
        return float(self.matrices.max()) if self.view.measure == "norms" else 1.0

    @cached_property
    def flow(self) -> Flow:
        """The lines above the threshold, those of the selected query first."""
        if self.settings.threshold == "share":
            above = above_share(self.matrices, self.settings.share / 100)
        else:
            above = above_weight(self.matrices, self.settings.weakest / 100 * self.largest)
        return strongest_lines(self.matrices, above, whole_row=self.view.queries.index(self.view.query))

    @property
    def at_once(self) -> int:
        """How many lines are drawn besides the selected pair's until a token is hovered over."""
        is_long = max(len(self.view.queries), len(self.view.keys)) > MOST_COUNTED
        chosen = self.settings.at_once
        return (0 if is_long else MOST_LINES) if chosen is None else chosen

    @cached_property
    def drawn(self) -> np.ndarray:
        """True for lines drawn at once: all lines of the selected query and key, and the strongest others."""
        queries, keys = self.view.queries, self.view.keys
        of_pair = (self.flow.query == queries.index(self.view.query)) | (
            self.flow.key == keys.index(self.view.key)
        )
        drawn: np.ndarray = of_pair.copy()
        others = np.flatnonzero(~of_pair)[::-1]  # the strongest first
        drawn[others[: self.at_once]] = True
        return drawn


def screen_of(view: View) -> Screen | None:
    """The lines; None while what they are made of is computed."""
    screen = Screen(view=view)
    return screen if mixing_is_there(view, dict.fromkeys(head.layer for head in screen.heads)) else None


def said(screen: Screen) -> str:
    """What the selected head does with the selected query."""
    pattern = screen.view.pattern()
    return f"{place(pattern)}: {literal(finding(pattern, screen.view.query, screen.view.key))}"


def controls(view: View) -> None:
    """The controls for what is drawn, for which heads, and above which threshold."""
    screen, trace, kind, selection = Screen(view=view), view.trace, view.kind, view.selection
    of_layers = [AllHeads(layer) for layer in range(trace.n_layers(kind))]
    options = of_layers if view.is_of_layer else [*trace.heads(kind), *of_layers]
    # On a tablet the three buttons of the first column need the space.
    left, middle, right = st.columns((1.45, 1.05, 1))
    left.segmented_control(
        **widgets.field(
            "show",
            selection.but(show=view.measure),
            label="Lines show",
            options=view.measures,
            required=True,
        ),
    )
    middle.multiselect(
        **widgets.field(
            "heads",
            selection.but(heads=tuple(screen.heads[1:])),
            format_func=lambda heads: heads.title,
            options=[option for option in options if option != screen.heads[0]],
        ),
        max_selections=MOST_HEADS - 1,
        select_all=False,  # it would add as many heads as allowed
        placeholder="More heads, each in its own colour",
    )
    with right.container(horizontal=True, vertical_alignment="bottom"):
        if screen.settings.threshold == "share":
            st.slider(**widgets.field("share", format="%d%%"))
        else:
            st.number_input(**widgets.field("weakest"))
        with st.popover("More", icon=":material/tune:", key="flow_more"):
            st.segmented_control(**widgets.field("threshold", required=True))
            st.number_input(**widgets.field("at_once", selection.but(at_once=screen.at_once)))


def keep(side: str, position: int) -> None:
    """Takes the token whose lines are kept as the selected one."""
    match side:
        case "query":
            state.change(lines_of=side, query=position, key=None)
        case "key":
            state.change(lines_of=side, key=position)
        case _:
            state.change(lines_of="")


def lines(screen: Screen) -> dict[str, Callable[[], Figure]]:
    """Draws the lines, and says which they are."""
    view, selection = screen.view, screen.view.selection
    entry = {
        "query": view.queries.index(view.query),
        "key": None if selection.key is None else view.keys.index(selection.key),
    }.get(selection.lines_of)
    axis, thickest = view.keys if selection.lines_of == "key" else view.queries, max(screen.largest, 1e-9)
    token_flow(
        screen.flow,
        view.queries,
        view.keys,
        heads=[(head.short, head.title) for head in screen.heads],
        largest=thickest,
        drawn=screen.drawn,
        query=view.query,
        kept=None if entry is None else (selection.lines_of, int(axis.positions[entry])),
        on_keep=keep,
        theme=view.theme,
    )
    sentences = [
        literal(note(screen)),
        hidden_lines(screen.drawn),
        MEASURE_NOTES[view.measure],
        literal(identity_note(view)),
        hidden_note(view),
        RENORMALISED * view.is_renormalised,
    ]
    if left_out := "; ".join(heads.words for heads in screen.chosen[MOST_HEADS:]):
        sentences.append(
            f"Lines of {MOST_HEADS} heads at most are drawn, each in its own colour: without {left_out}."
        )
    st.caption(" ".join(filter(None, sentences)))
    figure = partial(
        draw_flow,
        screen.flow,
        view.queries,
        view.keys,
        largest=thickest,
        drawn=screen.drawn,
        theme=view.theme,
    )
    return {"token_flow": figure}


def hidden_lines(drawn: np.ndarray) -> str:
    """How many lines appear only on hover, and how to see more; empty if all are drawn."""
    if drawn.all():
        return ""
    return (
        f"{np.count_nonzero(~drawn):,} of these lines, of other queries and keys, are hidden: hover over a token or tap it for all of its lines, or "
        "raise “Lines at once” under More."
    )


def drawn_words(flow: Flow, held: str, query: str | None) -> str:
    """Which lines are drawn, with what weight in all, if there are too many; first those of the query, if it is shown."""
    lines = counted(len(flow), "line")
    if not flow.n_left_out:
        return f"{lines}, {held}."
    if query is None:
        strongest = counted(len(flow), "strongest line")
        rest = f"{counted(flow.n_left_out, 'weaker one')} {'is' if flow.n_left_out == 1 else 'are'} left out"
        return f"The {strongest}, {held}; {rest}."
    drawn = "all of {} and the strongest of the others" if flow.row_is_whole else "the strongest of {}"
    return f"{lines}, {held}, and {flow.n_left_out:,} left out: drawn are {drawn.format(query)}."


def note(screen: Screen) -> str:
    """Which lines are drawn, their total weight, and what is left out."""
    flow, view, settings = screen.flow, screen.view, screen.settings
    is_of_norms = view.measure == "norms"
    held = f"{share_text(flow.share)} of the {'sum of all norm-based weights' if is_of_norms else MEASURE_NAMES[view.measure]}"
    if view.hides_special or view.hides_first or view.selection.sentences != "all":
        held += " between these tokens"
    is_shown = view.queries.index(view.query) is not None
    sentence = drawn_words(flow, held, name(view.queries, view.query) if is_shown else None)
    if settings.threshold == "weight":
        sentence += f" Lines under {settings.weakest:g}%{' of the largest' * is_of_norms} are not drawn."
    elif settings.share < 100:
        sentence += (
            f" For each query the strongest keys that hold {percent_text(settings.share / 100)} of its row are drawn "
            "(Hoover et al. 2020, arXiv:1910.05276)."
        )
    if is_of_norms:
        sentence += f" Thickness is relative to the largest, {screen.largest:.3g}: norm-based weights do not sum to 1."
    return sentence


PART = Part(
    name="Several heads",
    address="token_flow",
    question="Where does the attention of one head, or of several, go?",
    asks=("sentence", "head", "rows"),
    sheets=(
        Sheet(
            controls=controls,
            screen=screen_of,
            finding=said,
            rows=(
                Picture("token_flow", "Token flow", lambda view: f"line thickness: {measured(view)}", lines),
            ),
            numbers="Lines",
            csv=lambda screen: lines_csv(screen.flow, screen.heads, screen.view.queries, screen.view.keys),
        ),
    ),
)
