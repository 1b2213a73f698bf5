"""Which heads repeat earlier tokens: the probes on repeated random tokens, and the selected head on such a text."""

import streamlit as st

from attnviz.figures import draw_pattern
from attnviz.figures.numbers import cell_text, share_text
from attnviz.heads.probes import PROBES, HeadProbes
from attnviz.model.catalogue import offer
from attnviz.records import AttentionPattern, Head
from ui.choice import state
from ui.components.ranked_list import Row, ranked_list
from ui.runtime import probes as of_model
from ui.runtime.jobs import job
from ui.shell.chart import chart
from ui.shell.head_names import find_probes, known_probes
from ui.shell.view import View
from ui.shell.waiting import is_there
from ui.words.literal import literal

N_RANKED = 6


def random_tokens(view: View) -> None:
    """The heads with the largest number of each probe, and the selected head's matrix; until then, the progress."""
    if not find_probes(view) or (probes := known_probes(view)) is None:
        return
    st.markdown(f"**{finding(probes, view.selection.place)}**")
    for column, name in zip(st.columns(len(PROBES), gap="medium"), PROBES, strict=True):
        with column:
            _ranking(view, probes, name)
    _matrix(view, probes)


def finding(probes: HeadProbes, head: Head) -> str:
    """What the selected head does with repeated random tokens."""
    largest = max(PROBES, key=lambda name: float(probes.means[name][head]))
    share = share_text(float(probes.means[largest][head]))
    return f"On repeated random tokens, {head.words} gives {share} {_GIVEN[largest]}"


_GIVEN = {
    "probe_induction": "of a repeated token’s weight to what followed it the first time",
    "probe_duplicate": "of a repeated token’s weight to its other occurrence",
    "probe_previous": "of its weight to the previous token",
    "probe_first": "of its weight to the first token",
}


def _ranking(view: View, probes: HeadProbes, name: str) -> None:
    heads = probes.ranked(name)[:N_RANKED]
    st.markdown(f"**{PROBES[name].called.capitalize()}**")
    ranked_list(
        [
            Row(
                text=head.title,
                amount=f"{cell_text(float(probes.means[name][head]))} ± {cell_text(float(probes.spreads[name][head]))}",
                length=float(probes.means[name][head]),
                picked=head == view.selection.place,
            )
            for head in heads
        ],
        name=f"Heads with the largest share, {PROBES[name].called}; select one",
        on_pick=lambda row: state.change(layer=heads[row].layer, head=heads[row].head),
        theme=view.theme,
        key=name,
    )
    st.caption(literal(PROBES[name].help))


def _matrix(view: View, probes: HeadProbes) -> None:
    """The weights of the selected head on one of the texts."""
    model, place, kind = offer(view.selection.model).name, view.selection.place, view.kind
    work = job("probe_pattern", (model, place, kind), lambda: [(of_model.pattern, (model, place, kind), {})])
    if not is_there(work, 2 * probes.n_token, "Reading random tokens", key="pattern_act"):
        return
    pattern: AttentionPattern = work.results[0]
    chart(
        draw_pattern(pattern, theme=view.theme),
        key="random_tokens",
        alt=f"Attention matrix of {place.words} on {probes.n_token} repeated random tokens",
    )
    st.caption(
        f"{place.title} on {probes.n_token} repeated random tokens, the first of {probes.n_text} such texts that the numbers "
        "above are means of; behind ± is the standard deviation over the texts. An induction head draws a line that starts where "
        "the tokens come again, one cell to the right of their first occurrence; a duplicate token head draws it on that "
        "occurrence (Olsson et al. 2022, arXiv:2209.11895)."
    )
