"""The selected head over the corpus: where its weight goes, which words and tokens it links, and examples."""

import numpy as np
import streamlit as st

from attnviz.corpus.columns import NORMS
from attnviz.corpus.naming import FEWEST_WORDS, relation_words
from attnviz.corpus.profile import N_DECILE, Example, Pair, Relation
from attnviz.figures.heads import draw_shares
from attnviz.figures.numbers import cell_text, number_text, share_text
from attnviz.maths.attribution import value_lengths
from ui.choice import state
from ui.choice.fields import sentence_case
from ui.components.example_arcs import example_arcs
from ui.components.ranked_list import Row, ranked_list
from ui.rooms.many_texts.profiles.measured_heads import Screen
from ui.shell.chart import chart
from ui.shell.navigation import link_to
from ui.words.glossary import linked
from ui.words.literal import literal

MOST_ROWS = 10
STRONGEST = "Strongest"
_ROUNDING = 1e-5
"""Largest relative difference in float32 between a text that is read alone and in a batch."""


def places(screen: Screen) -> None:
    """The head's name as a heading, and the share of weight at each distance and on each position."""
    st.subheader(screen.head.title, anchor=False)
    left, right = st.columns(2, gap="medium")
    distances = screen.profile.distances(screen.head, screen.kind)
    if np.isfinite(distances).any():
        with left:
            st.markdown("**Weight by distance**")
            chart(
                draw_shares(
                    distances, distance_names(screen.profile.edges), title="distance", theme=screen.view.theme
                ),
                key="profile_distances",
                alt=f"Share of the weight of {screen.head.words} at each distance of the key from its query",
            )
            st.caption(
                "Keys before the query have negative distances; 0 is the token itself. Beyond 10 on either side, a bar is the sum of "
                "a range of distances."
            )
    positions = screen.profile.positions(screen.head, screen.kind)
    with right:
        st.markdown("**Weight by position**")
        chart(
            draw_shares(
                positions,
                [str(position) for position in range(len(positions))],
                title="position",
                theme=screen.view.theme,
            ),
            key="profile_positions",
            alt=f"Mean weight of {screen.head.words} on the key at each position",
        )
        st.caption("Mean weight on the key at each position, over the queries that may see it.")


def distance_names(edges: tuple[int, ...]) -> list[str]:
    """The distances of each bin, beginning with the keys farthest before the query."""
    before, after = [f"<−{edges[-1]}"], [f">{edges[-1]}"]
    for first, last in zip(reversed(edges[:-1]), reversed(edges[1:]), strict=True):
        is_one = last == first + 1
        before.append(f"−{last}" if is_one else f"−{last} to −{first + 1}")
        after.append(f"{last}" if is_one else f"{first + 1} to {last}")
    return [*before, "0", *reversed(after)]


def relations(screen: Screen) -> None:
    """The grammatical relations that the head finds best, compared with a fixed offset."""
    best = best_relations(screen.profile.relations(screen.head, screen.kind))[:MOST_ROWS]
    if not best:
        return
    st.markdown("**Grammatical relations**")
    ranked_list(
        [
            Row(
                text=sentence_case(relation_words(relation.relation, relation.direction)),
                amount=f"{_with_interval(relation)}; {share_text(relation.offset_accuracy)}",
                length=relation.accuracy,
                picked=False,
            )
            for relation in best
        ],
        name="Relations that this head finds; select one to rank all heads by it",
        on_pick=lambda row: _rank_by(f"{best[row].relation} {best[row].direction}"),
        theme=screen.view.theme,
        key="profile_relations",
    )
    first = best[0]
    st.caption(
        "How often the word that this head links most with a word such as a direct object is its parent, the word that it depends on, "
        "such as its verb (Clark et al. 2019, arXiv:1906.04341, section 4.2); in parentheses the interval of 95%, if enough texts have such words, "
        "and last what the best "
        f"fixed distance finds: for {first.relation}, {first.words:,} words, a distance of {_offset(first.offset)}. Those that "
        f"are furthest above it come first; relations with fewer than {FEWEST_WORDS} words are left out."
    )


def best_relations(relations_of_head: list[Relation]) -> list[Relation]:
    """Relations with enough words, ordered by how far the head exceeds the best fixed distance."""
    best = sorted(relations_of_head, key=lambda relation: relation.offset_accuracy - relation.accuracy)
    return [relation for relation in best if relation.words >= FEWEST_WORDS]


def _with_interval(relation: Relation) -> str:
    mean = share_text(relation.accuracy)
    if np.isnan(relation.low):
        return mean
    return f"{mean} ({share_text(relation.low)} to {share_text(relation.high)})"


def _offset(offset: int) -> str:
    """A distance with its sign, a minus and no hyphen: "+1", "−2"."""
    return f"{offset:+d}".replace("-", "−")


def _rank_by(name: str) -> None:
    state.change(profile_y=name)


def pairs(screen: Screen) -> None:
    """Tokens, and parts of speech, that the head links more than their frequencies predict."""
    _pairs(screen, "Tokens", screen.profile.token_pairs(screen.head, screen.kind), "profile_tokens")
    _pairs(screen, "Parts of speech", screen.profile.part_pairs(screen.head, screen.kind), "profile_parts")


def _pairs(screen: Screen, title: str, pairs: list[Pair], key: str) -> None:
    if not pairs:
        return
    shown = pairs[:MOST_ROWS]
    largest = shown[0].mass - shown[0].expected
    st.markdown(f"**{title} that it links**")
    ranked_list(
        [
            Row(
                text=pair.query,
                key=pair.key,
                amount=f"{number_text(pair.mass)} ({number_text(pair.expected)})",
                length=(pair.mass - pair.expected) / largest,
                picked=False,
            )
            for pair in shown
        ],
        name=f"{title} that this head links, as query and key",
        on_pick=lambda _: None,
        theme=screen.view.theme,
        key=key,
    )
    st.caption(
        "Sum of the weights over a sample of the texts, and in parentheses what it would be if the keys did not depend on the query; "
        "bars and order follow the difference of the two."
    )


def examples(screen: Screen) -> None:
    """Texts by decile of activation, as tokens with arcs; including the visitor's own sentence."""
    st.subheader("Examples", anchor=False)
    own = own_activation(screen)
    examples_of_head = screen.profile.examples(screen.head, screen.kind)
    if own is not None and (decile := decile_of(examples_of_head, own)) is not None:
        st.markdown(
            f"{literal('Your sentence')}: {screen.head.words} adds a vector of length {cell_text(own)} where it adds most, "
            f"which is in decile {decile} of {N_DECILE} of these texts."
        )
    names = [STRONGEST, *(str(decile) for decile in range(N_DECILE, 0, -1))]
    chosen = st.segmented_control(
        "Decile of the activation",
        names,
        default=STRONGEST,
        required=True,
        key="profile_decile",
        help="Shows the texts with the largest activation, or some from each tenth.",
    )
    for number, example in enumerate(examples_of_head):
        if (example.decile is None and chosen == STRONGEST) or str(example.decile) == chosen:
            _example(screen, example, number)
    st.caption(
        f"The activation of a head on a text is the length of what it adds to the {linked('Residual stream', 'residual stream')} at "
        "the token where it adds most; arcs are that token’s weights."
    )


def decile_of(examples_of_head: list[Example], activation: float) -> int | None:
    """The decile of an activation, by the lowest activation of each; None if the texts are not in deciles.

    The visitor's sentence may be one of the profile's, which read it in a batch: then the two differ by rounding.
    """
    lowest = {
        result.decile: result.activation
        for result in examples_of_head
        if result.rank == 1 and result.decile is not None
    }
    if not lowest:
        return None
    return max(
        (decile for decile, least in lowest.items() if activation >= (1 - _ROUNDING) * least), default=1
    )


def _example(screen: Screen, example: Example, number: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"profile_example_{number}"):
        st.markdown(cell_text(example.activation), width=64)
        example_arcs(
            example.labels,
            example.weights,
            query=None if screen.kind == "cross" else example.query,
            query_label=example.query_label,
            theme=screen.view.theme,
            key=f"profile_arcs_{number}",
        )
        if screen.kind != "cross":
            link_to(
                "Together",
                label="Open",
                icon="open_in_new",
                selection=screen.view.selection.alone(example.text, query=example.query, key=None),
                help="Shows this text on the stage, with this head and token.",
            )


def own_activation(screen: Screen) -> float | None:
    """The selected head's activation on the visitor's own text; None if the trace lacks the head, or W_O where needed."""
    trace, kind, head = screen.view.trace, screen.kind, screen.head
    if kind not in trace.kinds or head not in trace.heads(kind):
        return None
    output = trace.output(*head, kind)
    weight = trace.attention(head.layer, kind).output_weight
    if weight is None and np.isfinite(screen.profile.numbers(f"entropy{NORMS}", kind)).any():
        return None  # the profile's lengths are after W_O, which a bundle does not contain
    if weight is None:
        lengths = np.linalg.norm(output, axis=-1)
    else:
        lengths = value_lengths(output[None], weight[head.head][None])[0]
    own = ~trace.query_tokens(kind).is_added
    return float(lengths[own].max()) if own.any() else None
