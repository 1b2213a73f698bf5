"""A set of pairs of prompts: typed, pasted or from a file, patched one after another, and what holds for all of them on average."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas  # type: ignore[import-untyped]
import streamlit as st
from plotly.graph_objects import Figure

from attnviz.effects.patching import PatchEffects
from attnviz.effects.prompts import (
    COLUMNS,
    MeanEffects,
    PromptSet,
    over_prompts,
    prompts_of,
    read_prompts,
    set_csv,
)
from attnviz.errors import AttnvizError, UnsupportedArchitectureError
from attnviz.figures.numbers import number_text, percent_text
from attnviz.figures.patching import draw_patching
from attnviz.maps.collection import LARGEST_FILE, decoded
from attnviz.model.catalogue import offer
from attnviz.records import Tokens
from ui.choice import state, widgets
from ui.page.chart import chart
from ui.page.table import whole_rows
from ui.page.view import View
from ui.page.waiting import is_there, whole_page
from ui.sections.patching.facts import NoShares, largest_share
from ui.sections.patching.heatmap import finding, picked_place
from ui.sections.patching.screen import carried_controls, patches_of
from ui.session import of_session
from ui.words.literal import literal
from ui.work import cache, experiments, uploads
from ui.work.jobs import TELLS_PROGRESS, Job, job

TITLES = {
    "clean": "Clean prompt",
    "corrupted": "Corrupted prompt",
    "answer": "Answer",
    "wrong_answer": "Wrong answer",
}
OF_DECODERS = (
    (
        "When Mary and John went to the store, John gave a drink to",
        "When Mary and John went to the store, Mary gave a drink to",
        " Mary",
        " John",
    ),
    (
        "When John and Mary went to the store, John gave a drink to",
        "When John and Mary went to the store, Mary gave a drink to",
        " Mary",
        " John",
    ),
    (
        "When Tom and James went to the park, James gave a ball to",
        "When Tom and James went to the park, Tom gave a ball to",
        " Tom",
        " James",
    ),
    (
        "When Sarah and Paul had dinner, Paul gave a book to",
        "When Sarah and Paul had dinner, Sarah gave a book to",
        " Sarah",
        " Paul",
    ),
)
"""The first pairs of a model that predicts the next token: who is given something (Wang et al. 2022, arXiv:2211.00593, section 2)."""
OF_BLANKS = (
    ("The capital of France is {}.", "The capital of Italy is {}.", "paris", "rome"),
    ("The capital of Spain is {}.", "The capital of Germany is {}.", "madrid", "berlin"),
)
"""The first pairs of a model that fills in its mask token, which stands at the braces."""


@dataclass(slots=True)
class OwnPrompts:
    """The visitor's own pairs."""

    rows: tuple[tuple[str, ...], ...] = ()
    """Empty before any are given."""
    version: int = 0
    """Of the table: another one is drawn after each change, without what was typed into the one before."""
    problem: str = ""
    """What was wrong with the file that was given last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """A set of prompts and what has come of it so far."""

    view: View
    prompts: PromptSet
    work: Job

    @property
    def found(self) -> dict[int, PatchEffects]:
        """The map of each pair that has been patched, by its line."""
        results = zip(self.prompts.lines, self.work.results, strict=True)
        return {line: one for line, one in results if isinstance(one, PatchEffects)}

    @property
    def mean(self) -> MeanEffects:
        """The mean over those."""
        return over_prompts([*self.found.values()])

    @property
    def refused(self) -> list[str]:
        """A sentence for each line that cannot be patched."""
        return [*self.prompts.refused, *(one for one in self.work.results if isinstance(one, str))]

    @property
    def tokens(self) -> Tokens:
        """Of the first clean prompt that was patched, by which columns of tokens are named."""
        pair = self.prompts.pairs[self.prompts.lines.index(next(iter(self.found)))]
        return cache.model(self.view.selection.model).tokenize(pair.clean)


def look(view: View) -> Pairs:
    """The table of pairs, its controls, and the job that patches them.

    Raises:
        EmptyTextError: the table is empty.
        UnsupportedArchitectureError: a model that reads two texts, or has no language head.
    """
    model = cache.model(view.selection.model)
    if len(view.trace.kinds) > 1 or model.head is None:
        what = "reads two texts" if len(view.trace.kinds) > 1 else "has no language head"
        raise UnsupportedArchitectureError(
            f"A set of prompts was to be patched, whose outcome is the logit of one answer minus that of another; {model.name} {what}. "
            "Patch two sentences, or select a model such as gpt2."
        )
    with st.container(horizontal=True, vertical_alignment="bottom", key="patching_controls"):
        carried_controls(view)
    prompts = _table(model.mask_label if "encoder" in view.trace.kinds else None)
    patches, name = patches_of(view), offer(view.selection.model).name
    work = job(
        "patching_prompts",
        (view.selection.model, prompts.pairs, prompts.lines, patches),
        lambda: [
            (experiments.patch_pair, (name, pair, line, patches), TELLS_PROGRESS)
            for pair, line in zip(prompts.pairs, prompts.lines, strict=True)
        ],
    )
    return Pairs(view=view, prompts=prompts, work=work)


def is_patched(pairs: Pairs) -> bool:
    """Whether all pairs have been patched; until then the mean over those that have been is shown."""
    n_pair = len(pairs.prompts.pairs)
    return is_there(
        pairs.work,
        None,
        f"Patching {n_pair} pair{'s' * (n_pair != 1)}",
        key="prompts_act",
        result=partial(_so_far, pairs),
    )


def _so_far(pairs: Pairs) -> None:
    if pairs.found:
        heatmap(pairs, pairs.mean, key="patching_so_far")


def heatmap(pairs: Pairs, mean: MeanEffects, *, key: str) -> Figure:
    """The mean over the pairs, with its spread in the hover texts; the figure."""

    def pick(clicked: object) -> None:
        match clicked:
            case [int(row), int(column)]:
                state.change(**picked_place(mean.mean, row, column))

    tokens = pairs.tokens
    drawn = draw_patching(
        mean.mean, tokens, tokens, spread=mean.spread if mean.n_pair > 1 else None, theme=pairs.view.theme
    )
    chart(
        drawn,
        key=key,
        alt=f"Mean over {mean.n_pair} pairs of prompts with each state swapped in, a cell for each {mean.mean.rows} and "
        f"{mean.mean.columns}",
        on_pick=pick,
        name="States; select one",
    )
    return drawn


def finding_of_set(pairs: Pairs, mean: MeanEffects) -> str:
    """Which state moves the outcome most on average, and how far that differs from pair to pair."""
    said, largest = finding(pairs.tokens, mean.mean), largest_share(mean.mean)
    if isinstance(largest, NoShares) or mean.n_pair < 2:
        return f"{said} (mean over {mean.n_pair} pair{'s' * (mean.n_pair != 1)})"
    spread = float(mean.spread[largest.row, largest.column]) / abs(mean.mean.donor - mean.mean.base)
    return f"{said} (mean over {mean.n_pair} pairs, standard deviation {percent_text(spread)})"


def note(pairs: Pairs, mean: MeanEffects) -> str:
    """What is measured and averaged, and which lines are left out."""
    said = [
        f"Outcome: logit of the answer minus that of the wrong answer, {number_text(mean.mean.base)} for the clean prompts and "
        f"{number_text(mean.mean.donor)} for the corrupted ones on average; states of the corrupted prompt are swapped into the clean "
        "one. Shares are of the mean difference; hover texts give the standard deviation over the pairs.",
    ]
    if mean.mean.columns == "token":
        said.append("Columns have the tokens of the first pair.")
    said += pairs.refused
    return literal(" ".join(said))


def csv(pairs: Pairs) -> bytes:
    """Every pair with every cell."""
    return set_csv(dict(zip(pairs.prompts.lines, pairs.prompts.pairs, strict=True)), pairs.found)


def _table(mask: str | None) -> PromptSet:
    """The pairs that are typed, pasted or from a file."""
    own = of_session(OwnPrompts)
    first = OF_DECODERS if mask is None else [tuple(one.format(mask) for one in row) for row in OF_BLANKS]
    rows = own.rows or first
    with st.expander(f"{len(rows)} pairs of prompts", icon=":material/table_rows:", key="prompts"):
        with st.form("prompts_form", border=False):
            edited = st.data_editor(
                pandas.DataFrame(rows, columns=list(COLUMNS)),
                num_rows="dynamic",
                height=whole_rows(len(rows) + 1),  # the last is for a pair to add
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
                "Patch these pairs", type="primary", help="Patches every pair of the table."
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
    return prompts_of(enumerate(rows, 1))


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
        found = read_prompts(decoded(data))
    except AttnvizError as error:
        own.problem = str(error)
        own.version += 1
        return
    _take([[getattr(pair, name) for name in COLUMNS] for pair in found.pairs])
    own.problem = " ".join(found.refused)


def choice() -> None:
    """Two sentences, or a set of pairs."""
    st.segmented_control(**widgets.field("patch_prompts", required=True))
