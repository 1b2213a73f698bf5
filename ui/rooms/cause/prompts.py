"""A set of prompts, shared by all rooms that average over one: its table, the results of its pairs, and how means are drawn."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

import numpy as np
import pandas  # type: ignore[import-untyped]
import streamlit as st

from attnviz.effects.over_pairs import OverPairs, of_line
from attnviz.effects.prompts import COLUMNS, PromptPair, PromptSet, prompts_of, read_prompts
from attnviz.errors import AttnvizError, UnsupportedArchitectureError
from attnviz.figures.numbers import counted, number_text, signed_text, spread_text
from attnviz.maps.collection import LARGEST_FILE, decoded
from attnviz.model.catalogue import offer
from attnviz.records import Tokens
from ui.choice import state, widgets
from ui.choice.fields import Word
from ui.choice.selection import choices
from ui.runtime import cache, uploads, with_model
from ui.runtime.jobs import TELLS_PROGRESS, Job, job
from ui.session import of_session
from ui.shell import errors
from ui.shell.language_model import offer_language_model
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.shell.waiting import is_there, whole_page
from ui.words.literal import literal

TITLES = {
    "clean": "Clean prompt",
    "corrupted": "Corrupted prompt",
    "answer": "Answer",
    "wrong_answer": "Wrong answer",
}
_GIVEN = "When {} and {} went to the {}, {} gave a {} to"
OF_DECODERS = tuple(
    (
        _GIVEN.format(first, second, place, wrong, what),
        _GIVEN.format(first, second, place, answer, what),
        f" {answer}",
        f" {wrong}",
    )
    for first, second, place, what, answer, wrong in (
        ("Mary", "John", "store", "drink", "Mary", "John"),
        ("John", "Mary", "store", "drink", "Mary", "John"),
        ("Tom", "James", "park", "ball", "Tom", "James"),
        ("Sarah", "Paul", "school", "book", "Sarah", "Paul"),
    )
)
"""Default pairs if a model predicts the next token: who is given something (Wang et al. 2022, arXiv:2211.00593, section 2).

All have as many tokens, so that their means can be taken token by token.
"""
OF_BLANKS = (
    ("The capital of France is {}.", "The capital of Italy is {}.", "paris", "rome"),
    ("The capital of Spain is {}.", "The capital of Germany is {}.", "madrid", "berlin"),
)
"""Default pairs for a model that fills in its mask token, which replaces the braces."""

Found = TypeVar("Found")
Mean = TypeVar("Mean")


@choices
@dataclass(frozen=True, slots=True, kw_only=True)
class PromptChoices:
    """On which texts experiments measure the outcome."""

    prompts: Annotated[
        Literal["sentence", "set"],
        Word(
            names={"sentence": "Sentence above", "set": "Set of prompts"},
            title="Prompts",
            help="Measures the outcome of the sentence above, or the difference of two answers' logits for every pair of a table of "
            "prompts, whose mean and standard deviation are shown: the same table in Heads off, Lens and Patching.",
        ),
    ] = "sentence"


@dataclass(slots=True)
class OwnPrompts:
    """The visitor's own pairs."""

    rows: tuple[tuple[str, ...], ...] = ()
    """Empty until the visitor enters some."""
    version: int = 0
    """Version of the table: each change draws a new table, without what was typed into the previous one."""
    problem: str = ""
    """The problem with the last file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRun(Generic[Found]):
    """An experiment on every pair of a set, and its results so far."""

    view: View
    prompts: PromptSet
    work: Job

    @property
    def results(self) -> dict[int, Found]:
        """The results of the pairs, by line."""
        results = zip(self.prompts.lines, self.work.results, strict=True)
        return {
            line: result for line, result in results if result is not None and not isinstance(result, str)
        }

    @property
    def pairs(self) -> dict[int, PromptPair]:
        """The pairs that have a result."""
        by_line = dict(zip(self.prompts.lines, self.prompts.pairs, strict=True))
        return {line: by_line[line] for line in self.results}

    @property
    def refused(self) -> list[str]:
        """A sentence for each line that does not allow the experiment."""
        return [*self.prompts.refused, *(result for result in self.work.results if isinstance(result, str))]

    @property
    def tokens(self) -> Tokens:
        """Tokens of the first clean prompt."""
        first = next(iter(self.pairs.values()))
        return cache.model(self.view.selection.model).tokenize(first.clean, template=first.template)

    def is_done(self, sentence: str, so_far: Callable[[], None]) -> bool:
        """Whether all pairs except the refused ones have a result; until then the results so far are drawn.

        Args:
            sentence: what is being done, such as "Patching".
            so_far: draws the results so far, if any.
        """

        def result() -> None:
            with errors.explained(key="prompts_so_far"):  # a block of its own, drawn again and again
                if self.results:
                    so_far()

        doing = f"{sentence} {counted(len(self.prompts.pairs), 'pair')}"
        if not is_there(self.work, None, doing, key="prompts_act", result=result):
            return False
        if not self.results:
            st.error(literal(" ".join(["No pair can be used.", *self.refused])), icon=":material/error:")
        return bool(self.results)

    def mean(
        self, of: Callable[[Sequence[Found]], Mean], sentence: str, draw: Callable[[Mean], None]
    ) -> Mean | None:
        """The mean over all pairs; None until all are done, while ``draw`` draws that so far."""
        return (
            of([*self.results.values()])
            if self.is_done(sentence, lambda: draw(of([*self.results.values()])))
            else None
        )


def choice() -> None:
    """The control for running on the sentence above, or on a set of prompts."""
    st.segmented_control(**widgets.field("prompts", required=True))


def is_set(view: View) -> bool:
    """Whether a set of prompts is selected."""
    return view.selection.of(PromptChoices).prompts == "set"


def pairs(view: View) -> PromptSet:
    """The visitor's own pairs, or the default ones of the model."""
    return prompts_of(enumerate(_rows(view), 1), view.selection.template)


def _rows(view: View) -> Sequence[Sequence[str]]:
    mask = cache.model(view.selection.model).mask_label if "encoder" in view.trace.kinds else None
    first = OF_DECODERS if mask is None else [tuple(text.format(mask) for text in row) for row in OF_BLANKS]
    return of_session(OwnPrompts).rows or first


def table(view: View) -> PromptSet | None:
    """The pairs, typed, pasted or from a file; None if the model has no answers; a model that has is then offered.

    Raises:
        EmptyTextError: the table is empty.
        UnsupportedArchitectureError: a model that reads two texts.
    """
    model = cache.model(view.selection.model)
    if len(view.trace.kinds) > 1:
        raise UnsupportedArchitectureError(
            f"A set of prompts was asked for, each of which is one text; {model.name} reads two. Choose the sentence above, or select "
            "a model such as gpt2."
        )
    if model.language_head is None:
        offer_language_model(
            view.selection,
            "has no language head, so prompts have no answers that could be compared.",
            key="use_language_model",
        )
        return None
    own = of_session(OwnPrompts)
    rows = _rows(view)
    with st.expander(f"{counted(len(rows), 'pair')} of prompts", icon=":material/table_rows:", key="prompts"):
        with st.form("prompts_form", border=False):
            edited = st.data_editor(
                pandas.DataFrame(rows, columns=list(COLUMNS)),
                num_rows="dynamic",
                height=whole_rows(len(rows) + 1),  # the last row is for adding a pair
                width="stretch",
                hide_index=True,
                column_config={name: st.column_config.TextColumn(title) for name, title in TITLES.items()},
                key=f"prompt_table_{own.version}",
            )
            st.caption(
                "Both prompts of a pair have the same number of tokens. Answers are single tokens, with the space before them where the "
                "model would write one. Rows can be pasted from a spreadsheet; they stay in this session, and no link holds them."
            )
            if st.form_submit_button(
                "Use these pairs",
                type="primary",
                help="Computes the page for the pairs of the table; Heads off, Lens and Patching have the same.",
            ):
                _take(edited.fillna("").astype(str).values.tolist())
                whole_page()
        st.file_uploader(
            "Or a CSV file",
            type=["csv", "tsv", "txt"],
            max_upload_size=1,
            key=_uploader_key(),
            on_change=_take_file,
            help=f"Replaces the table; columns {', '.join(COLUMNS)}, in UTF-8.",
        )
        if own.problem:
            st.error(literal(own.problem), icon=":material/error:")
    return pairs(view)


def set_run(
    view: View,
    prompts: PromptSet,
    experiment: Callable[..., Any],
    key: Hashable,
    given: Callable[[], Sequence[Any]] = tuple,
) -> SetRun[Any]:
    """An experiment on every pair, as a job with a call for each.

    Args:
        experiment: a function of attnviz that takes a model, a pair and ``given``, and tells its progress.
        key: everything that the experiment depends on besides model and pairs.
        given: returns its further arguments, when the calls are created.
    """
    name = offer(view.selection.model).name
    work = job(
        f"{experiment.__name__}s",
        (view.selection.model, prompts.pairs, prompts.lines, key),
        lambda: [
            (with_model.call, (of_line, name, line, experiment, pair, *given()), TELLS_PROGRESS)
            for pair, line in zip(prompts.pairs, prompts.lines, strict=True)
        ],
    )
    return SetRun(view=view, prompts=prompts, work=work)


def mean_text(numbers: OverPairs, *place: int) -> str:
    """A mean with its sign, and the standard deviation over the pairs: "−0.26 ± 0.031"."""
    return f"{signed_text(float(numbers.mean[place]))}{spread_text(float(numbers.spread[place]))}"


def over_words(n_pair: int, spread: float = np.nan) -> str:
    """What a mean is over, for the end of a finding: "mean over 4 pairs, standard deviation 0.031"; NaN to omit the latter."""
    over = f"mean over {counted(n_pair, 'pair')}"
    return f"{over}, standard deviation {number_text(spread)}" if np.isfinite(spread) else over


def outcome_words(outcomes: Mapping[str, OverPairs]) -> str:
    """What is measured on the pairs, and its average, as a sentence.

    Args:
        outcomes: by the name of the prompts, such as "clean".
    """
    numbers = " and ".join(
        f"{number_text(float(numbers.mean))}{spread_text(float(numbers.spread))} for the {name} prompts"
        for name, numbers in outcomes.items()
    )
    return (
        f"Outcome: logit of the answer minus that of the wrong answer, {numbers} on average; ± is the standard deviation over the "
        "pairs."
    )


def _uploader_key() -> str:
    return f"prompts_file_{of_session(OwnPrompts).version}"


def _take(rows: Sequence[Sequence[str]]) -> None:
    own = of_session(OwnPrompts)
    own.rows, own.problem = tuple(tuple(row) for row in rows), ""
    own.version += 1


def _take_file() -> None:
    own, file = of_session(OwnPrompts), st.session_state.get(_uploader_key())
    state.hold()
    if file is None:
        return
    data = file.getvalue()[:LARGEST_FILE]
    uploads.forget(file)
    try:
        prompts = read_prompts(decoded(data))
    except AttnvizError as error:
        own.problem = str(error)
        own.version += 1
        return
    _take([[getattr(pair, name) for name in COLUMNS] for pair in prompts.pairs])
    own.problem = " ".join(prompts.refused)
