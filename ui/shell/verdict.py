"""The verdict: whether a trace's numbers are the model's own."""

from collections.abc import Callable

import streamlit as st

from attnviz.bundle.changes import changes_in_words
from attnviz.figures.numbers import counted
from attnviz.records import FILE, Check, VerificationReport
from ui.choice import state
from ui.choice.selection import Selection
from ui.runtime import cache
from ui.runtime.uploads import opened
from ui.shell import bundles, errors
from ui.shell.navigation import link_to
from ui.shell.view import View
from ui.shell.waiting import LONG_PULSE, whole_page
from ui.streamlit_fixes.redrawn_block import redrawn_block
from ui.words.findings import power
from ui.words.literal import literal


def report_on(selection: Selection) -> tuple[VerificationReport, bool]:
    """The verdict on what is shown, and whether it is only recorded, that is, claimed by a bundle's file.

    Raises:
        AttnvizError: as `attnviz.verify`, and as `ui.shell.bundles.compared`.
    """
    compared = bundles.compared(selection)
    if compared is not None:
        return compared, False
    return cache.report(selection.source), bool(selection.bundle)


def headline(report: VerificationReport) -> str:
    """Whether everything passed, with the largest difference between weights; or what failed first, and by how much."""
    if failed := report.failed:
        if failed[0].name == FILE:
            return f":red[Does not match the file:] {literal(failed[0].reason)}"
        return f":red[Does not match the model:] {failed[0].name} {difference(failed[0])}"
    n_check = len(report.checks)
    within = "within " if report.max_abs_error else ""
    return f":green[Checked:] {n_check} comparisons, weights {within}{largest(report.max_abs_error)}"


def largest(difference: float) -> str:
    """A largest difference: "9.0 × 10⁻⁷", "bit-identical"."""
    return power(difference) if difference else "bit-identical"


COMPARED = (
    "Compares {sentence} with the model's own attention, in every layer and head: tokens, queries, keys, values, weights and "
    "outputs. Not compared: what both runs share, such as embeddings, positions and MLPs; what pages compute from these numbers; "
    "and other runs of the model, such as written tokens, many sentences and effects. Opens each comparison."
)
"""What a verdict compares, for the tooltip of every page; `attnviz.verify` has the details."""
RECORDED = "Recorded when the bundle was made"


def recorded_outcome(selection: Selection, report: VerificationReport) -> str:
    """A file's own verdict, not checked here: "12 of 12 checks passed"; and the interventions of its run."""
    n_failed, n_check = len(report.failed), len(report.checks)
    bundle = opened(selection.bundle)
    changed = () if bundle is None else bundle.trace.interventions
    sentence = f"{n_check - n_failed} of {n_check} checks {'of the unchanged run ' * bool(changed)}passed"
    sentence = f":red[{sentence}]" if n_failed else sentence
    return f"{sentence}; the run was changed: {literal(changes_in_words(changed))}" if changed else sentence


def difference(check: Check) -> str:
    """By how much a check failed, and where: "differ by 1.8, tolerance 2.5 × 10⁻⁵, in layer 3, head 1"."""
    sentence = f"differ by {power(check.difference)}, tolerance {power(check.tolerance)}"
    return f"{sentence}, in {place(check)}" if place(check) else sentence


def place(check: Check) -> str:
    """Where a difference is largest relative to its tolerance: "layer 3, head 1"; empty for checks with one number per text."""
    kind, layer, head = check.worst
    n_layer, n_head = check.differences[kind].shape
    if n_layer == 1 and n_head == 1:
        return ""
    return f"layer {layer}, head {head}" if n_head > 1 else f"layer {layer}"


def show(view: View) -> None:
    """The verdict in the page's heading; pages call this last, since checking takes as long as reading the text."""
    if view.part.name == "Verification":  # which has it below
        return
    with view.places.verdict, errors.explained(key="cut_verified"):
        _show(view.selection, "the sentence above", leads_to=None)


def show_of_b(shown: Selection) -> None:
    """The verdict on B of a comparison if B is another sentence or model; like `show`, called last."""
    with errors.explained(key="cut_verified_b"):
        _show(shown, "B's sentence", leads_to=shown)


def is_there(selection: Selection) -> bool:
    """Whether the verdict on a long text is there; otherwise shows how far the comparison is, with a button that stops it."""
    if selection.layers:
        st.caption(":material/pending: Not checked before all layers are there")
        return False
    if cache.has_report(selection.source):
        return True
    work = cache.verdict_job(selection.source)
    was_awaited = work.is_awaited

    def act(do: Callable[[], None]) -> None:
        state.hold()
        do()

    def under_way() -> None:
        if work.is_awaited:
            work.watch()
        if work.finished or work.is_awaited != was_awaited:
            whole_page()
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if work.error is not None or work.was_left:
                st.caption(
                    ":material/help: Not checked"
                    if work.error is None
                    else f":red[{literal(str(work.error))}]"
                )
                st.button("Check", key="check_long", type="tertiary", on_click=act, args=(work.go_on,))
                return
            ahead = (
                f"after {counted(work.n_ahead, 'other long text')}" if work.n_ahead else f"{work.share:.0%}"
            )
            st.caption(f":material/pending: Checking every number: {ahead}")
            st.button("Stop", key="check_long", type="tertiary", on_click=act, args=(work.leave,))

    redrawn_block(under_way, LONG_PULSE if was_awaited else None)
    return False


def _show(selection: Selection, sentence: str, leads_to: Selection | None) -> None:
    """The headline in one line, a link to the Verification page; for a bundle, the recorded verdict."""
    if cache.is_long(selection.source) and not is_there(selection):
        return
    report, recorded = report_on(selection)
    if not recorded:
        link_to(
            "Verification",
            label=headline(report),
            icon="check_circle" if report.passed else "cancel",
            selection=leads_to,
            help=COMPARED.format(sentence=sentence),
        )
        return
    with st.container(gap="small"):
        link_to(
            "Verification",
            label=RECORDED,
            icon="history",
            selection=leads_to,
            help="What was recorded in the file; nothing was compared here. Opens each check.",
        )
        st.caption(recorded_outcome(selection, report), width="content")
