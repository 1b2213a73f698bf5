"""What would stand in a gap of the text: the likeliest tokens by the models here that predict tokens, each side's part in bars."""

from dataclasses import dataclass

import streamlit as st
from plotly.graph_objects import Figure

from attnviz.figures.infilling import draw_infilling
from attnviz.figures.labels import isolated
from attnviz.figures.numbers import counted, percent_text, share_text
from attnviz.model.catalogue import BERT, SMOLLM2, locate, offer
from attnviz.model.infilling import GAP, MOST, Infilling, gap_at
from attnviz.records import bare
from ui.choice import state
from ui.choice.selection import Selection
from ui.runtime import cache, with_model
from ui.runtime.jobs import TELLS_PROGRESS, Job, job
from ui.shell import errors
from ui.shell.chart import chart
from ui.shell.view import View
from ui.shell.waiting import REFUSALS, show_jobs
from ui.words.literal import literal, quoted

_MOST_READ, _FEWEST = 6_000, 50
"""Most tokens after the gap that are read for all candidates together, about 20 s on a slow machine, and the fewest candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A text with one word taken out."""

    before: str
    after: str

    @classmethod
    def at(cls, selection: Selection, position: int) -> "Gap":
        """The gap at the word of a token.

        Raises:
            SelectionError: it is a special token.
        """
        here = cache.trace(selection.source)
        return cls(
            **dict(
                zip(
                    ("before", "after"),
                    gap_at(cache.model(selection.model), here.tokens, position),
                    strict=True,
                )
            )
        )

    @property
    def text(self) -> str:
        """The text, with a line for the word."""
        return f"{self.before}{GAP}{self.after}"

    def filled_by(self, model: str) -> Job:
        """The job that fills it, shared by all who ask the same; for a long text after it with fewer candidates."""
        n_word = max(1, len(self.after.split()))
        most = max(_FEWEST, min(MOST, _MOST_READ // n_word))
        given = (model, self.before, self.after, most)
        return job("filling a gap", given, lambda: [(with_model.fill, given, dict(TELLS_PROGRESS))])


def masked_position(selection: Selection, query: int) -> int:
    """The query's position if it is a mask token or there is none, otherwise the first mask token's."""
    tokens = cache.trace(selection.source).tokens
    masked = [
        at
        for at, label in enumerate(tokens.labels)
        if at in tokens.masked or label == cache.mask_label(selection.source)
    ]
    return query if not masked or query in masked else masked[0]


def fillers(model: str) -> tuple[str, ...]:
    """The models on this disk that fill gaps: the bundled language model, bert-base-uncased, and the selected one if it predicts tokens."""
    known = [name for name in (SMOLLM2, BERT) if locate(offer(name)) is not None]
    if model not in known and cache.model(model).language_head is not None:
        known.append(model)
    return tuple(known)


def candidates(view: View, gap: Gap, *, key: str) -> dict[str, Figure]:
    """Draws who fills the gap with what, side by side; returns the charts by their keys.

    Args:
        key: of the charts, the first part of each key.
    """
    st.markdown(f"“{literal(gap.text)}”")
    works = {name: gap.filled_by(name) for name in fillers(view.selection.model)}
    drawn: dict[str, Figure] = {}
    for number, (column, (name, work)) in enumerate(
        zip(st.columns(max(1, len(works)), gap="medium"), works.items(), strict=True)
    ):
        with column:
            if work.finished:
                infilling: Infilling = work.results[0]
                st.markdown(f"**{finding(name, infilling, view.selection.model)}**")
                figure = draw_infilling(infilling, theme=view.theme)
                chart(figure, key=f"{key}_{number}", alt=f"Candidates for the gap. {figure_words(infilling)}")
                st.caption(literal(note(infilling)))
                drawn[f"{key}_{number}"] = figure
            elif isinstance(work.error, REFUSALS):
                errors.show(work.error)
    waiting = {
        name: work for name, work in works.items() if not (work.finished or isinstance(work.error, REFUSALS))
    }
    if waiting:
        wait_for(waiting, key=f"{key}_act")
    return drawn


def wait_for(works: dict[str, Job], *, key: str) -> None:
    """The progress of models that fill a gap, with a button to cancel; the page is drawn again once they are done."""
    names = " and ".join(works)
    show_jobs(
        list(works.values()),
        lambda: f"{names} {'reads' if len(works) == 1 else 'read'} the candidates …",
        lambda: f"Cancelled: {names} fills the gap.",
        key=key,
        resume="Resume",
        is_page_without=True,
    )


def what_stands_here(view: View, position: int, *, key: str) -> None:
    """A button that opens the list for a masked token; nothing is computed before."""
    if view.selection.bundle or not fillers(view.selection.model):
        return
    drawer = st.popover(
        "What would stand here?", icon=":material/format_ink_highlighter:", key=key, on_change=state.hold
    )
    if drawer.open:
        with drawer, errors.explained(key=f"{key}_error"):
            candidates(view, Gap.at(view.selection, position), key=f"{key}_list")


def finding(name: str, infilling: Infilling, selected: str) -> str:
    """Which model fills in what, as Markdown, and what the text before the gap alone gave it."""
    other = "" if name == selected else f", another model than {literal(selected)},"
    first, share = quoted(bare(infilling.labels[0])), share_text(float(infilling.probabilities[0]))
    sentence = f"{literal(name)}{other} fills in {first}: {share}"
    if infilling.before_probabilities is None or not infilling.after:
        return sentence
    return f"{sentence}; from the text before alone, {share_text(float(infilling.before_probabilities[0]))}"


def figure_words(infilling: Infilling, most: int = 3) -> str:
    """The likeliest candidates with their probabilities, for those who do not see the bars."""
    pairs = zip(infilling.labels[:most], infilling.probabilities.tolist(), strict=False)
    return ", ".join(f"{isolated(label)} {share_text(share)}" for label, share in pairs)


def note(infilling: Infilling) -> str:
    """How the bars are computed, and what is left out."""
    if infilling.before_probabilities is None:
        return "The model's own prediction at its mask token, which reads both sides at once. One token fills the gap."
    n_candidate = counted(len(infilling.ids), "candidate")
    if not infilling.after:
        return f"Nothing follows the gap, so the text before decides alone. One token fills the gap; {n_candidate} are compared."
    return (
        f"Bayes' rule: probability after the text before, times the probability of the text after. {n_candidate}, each one token, "
        f"hold {percent_text(infilling.mass)} of the probability before; the rest is left out."
    )
