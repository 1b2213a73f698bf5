"""Sentences of the rooms with their numbers, worked out on paper: once where the wording branches."""

from types import SimpleNamespace

import numpy as np
import pytest

from attnviz.cost.counting import Layer
from attnviz.cost.measurement import Stop
from attnviz.effects.over_pairs import OverPairs
from attnviz.effects.score_sources import ScoreSources, Source
from attnviz.heads.comparison import compare
from attnviz.heads.score import Score
from attnviz.records import Axis
from tests import hand_made, small_records
from tests.app.screen import unescaped
from ui.rooms.cause import prompts
from ui.rooms.compare.zoom import zoom_note
from ui.rooms.explore.other_maps.of_pair import _outcome, _sum
from ui.rooms.explore.other_maps.of_pair import note as note_of_split
from ui.rooms.explore.other_maps.trusted import _missed
from ui.rooms.generate.step import difference_words
from ui.rooms.generate.written import running_text
from ui.rooms.how_it_works.cost import limits, symbols
from ui.rooms.how_it_works.cost.measured import _stopped
from ui.rooms.how_it_works.kinds_of_attention import cells_left
from ui.rooms.how_it_works.positions import distances, likeness_words, table_words
from ui.rooms.how_it_works.scaling.in_numbers import of_model, of_random
from ui.rooms.many_texts.profiles.overview import moved_words
from ui.rooms.verification import _largest


def array(*rows) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        (
            {"method": "whole", "n_token": 4096, "reason": "time", "expected": 2.0, "granted": 1.0},
            "Whole matrix stopped before 4,096 tokens: measuring them would take about 2 s, and 1 s were left.",
        ),
        (
            {"method": "rows", "n_token": 2048, "reason": "memory", "expected": 5e6, "granted": 3e6},
            "Blocks of rows stopped before 2,048 tokens: they would take 5 MB of memory, and 3 MB may be taken.",
        ),
    ],
)
def test_why_a_way_was_measured_no_further(stop, words):
    assert _stopped(Stop(**stop)).replace("\N{NO-BREAK SPACE}", " ") == words


@pytest.mark.parametrize(
    ("softcap", "bias", "allowed", "words", "outcome"),
    [
        (None, 0.0, True, "1.00 × 0.25 = 0.25", "a weight of 37.5%."),
        (2.0, 0.5, True, "2 tanh(1.00 × 0.25 / 2) + bias 0.50 = 0.75", "a weight of 37.5%."),
        (None, -1.25, False, "1.00 × 0.25 + bias −1.25 = −1.00", "in its place, and the weight is 0."),
    ],
)
def test_a_score_as_the_sum_that_it_is(softcap, bias, allowed, words, outcome):
    """Of products 2, -2, 1 and 0."""
    vectors = {"query": array(1, -2, 0.5, 0), "key": array(2, 1, 2, 3)}
    score = Score(**vectors, scale=0.25, softcap=softcap, bias=bias, allowed=allowed)
    assert _sum(score) == words and _outcome(score, 0.375).endswith(outcome)


@pytest.mark.parametrize(
    ("n_tied", "words"),
    [(0, "0.0%"), (1, "12.5% most for “cat”, 50.0%"), (4, "50.0% most for “cat” and 3 more, 50.0%")],
)
def test_the_query_whose_attention_a_map_misses_most(n_tied, words):
    axis = Axis.of(hand_made.tokens(["cat", "door", "it", "box"]))
    even = [[0.25] * 4] * 4
    of_model, of_map = (
        small_records.pattern(rows, queries=axis, keys=axis)
        for rows in (even, [[0.5, 0.5, 0, 0]] * n_tied + even[n_tied:])
    )
    share, _, rest = words.partition(" ")
    sentence = unescaped(_missed(compare(of_model, of_map))).strip("*")
    assert sentence.startswith(f"On average the map puts {share} of a query's attention on keys where the")
    assert sentence.endswith(f"does not; {rest}." if rest else "does not.")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"product": 6.0}, ["All parts sum to 6.00, 0 from the 6.00 that the model used."]),
        (
            {"product": 16.0, "softcap": 5.0, "bias": 1.5, "allowed": False},
            [
                "The parts sum to 6.00, which is 10 from the 16.00 that the model used: more than rounding.",
                "The softcap of 5 comes after the sum.",
                "The bias of the two positions, 1.50, is added after the sum.",
                "The query may not see this key",
            ],
        ),
    ],
)
def test_what_the_parts_of_a_score_sum_to(changes, parts):
    """Queries sum to (2, 3), keys to (3, 2): half of 12."""
    sources = ScoreSources(
        **{"kind": "encoder", "layer": 0, "head": 0, "query": 0, "key": 1, "scale": 0.5, "softcap": None}
        | {"bias": 0.0, "allowed": True}
        | changes,
        sources=tuple(Source(name=name) for name in ("token", "position", "biases")),
        query_vectors=np.array([[1.0, 2], [0, 1], [1, 0]]),
        key_vectors=np.array([[1.0, 0], [2, 1], [0, 1]]),
    )
    sentence = note_of_split(sources)
    assert all(part in sentence for part in parts) and sentence.startswith(parts[0])
    assert ("softcap" in sentence) == ("may not see" in sentence) == (len(parts) > 1)


@pytest.mark.parametrize(
    ("n_query", "n_key", "around", "words"),
    [
        (13, 5, None, ""),
        (40, 128, 200, ""),
        (40, 140, 12, "Shown are 12 of 40 queries and 12 of 140 keys, around"),
        (300, 5, None, "Each cell stands for a block of 3 × 1 and"),
        (300, 140, 200, "Shown are 200 of 300 queries and 140 of 140 keys, around"),
    ],
)
def test_how_much_of_a_comparison_is_shown(n_query, n_key, around, words):
    pattern = small_records.pattern(np.full((n_query, n_key), 1 / n_key).tolist(), kind="cross")
    note = zoom_note(compare(pattern, pattern), around)
    assert note.startswith(words) and bool(note) == bool(words)
    assert ("a block of 2 × 2" in note) == (around == 200 and n_key == 140)


@pytest.mark.parametrize(
    ("pairs", "mean", "over"),
    [
        ([0.25], "0.250", "mean over 1 pair"),
        ([0.25, -1.0, 4.0], "1.08 ± 2.60", "mean over 3 pairs, standard deviation 2.60"),
    ],
)
def test_means_over_pairs_and_their_spread(pairs, mean, over):
    averaged = OverPairs(pairs=array(*pairs))
    assert prompts.mean_text(averaged) == f"+{mean}"
    assert f", {mean} for the clean prompts on average" in prompts.outcome_words({"clean": averaged})
    assert prompts.over_words(len(pairs), float(averaged.spread)) == over


@pytest.mark.parametrize(
    ("rows", "begins", "ends"),
    [
        ([4, 4, 4], "12 of 12 cells are left", "again."),
        ([2, 4, 0], "6 of 12 cells are left", "1 query sees no key at all; their rows are zero."),
        ([2, 0, 0], "2 of 12 cells are left", "2 queries see no key at all; their rows are zero."),
    ],
)
def test_the_cells_that_a_mask_leaves(rows, begins, ends):
    allowed = np.array([np.arange(4) < n for n in rows])
    sentence = cells_left(small_records.pattern((np.ones((3, 4)) / 4).tolist(), allowed=allowed))
    assert sentence.startswith(begins) and sentence.endswith(ends)


LAYER = Layer(n_head=4, d_head=8, d_value=16, number_bytes=4, reach=2, causal=False)


@pytest.mark.parametrize(
    ("kind", "n_query", "limit", "words"),
    [
        ("encoder", 5, None, "This model names no limit"),
        ("decoder", 5, 512, "The causal mask forbids 10 of the 25 cells of each head"),
        ("cross", 3, None, "Cross-attention of this text has 3 queries and 5 keys, so 15 cells a head"),
    ],
)
def test_the_limits_of_a_layer(kind, n_query, limit, words):
    view = SimpleNamespace(kind=kind, selection=SimpleNamespace(bundle=""))
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in limits(view, LAYER, n_query, 5, limit)]
    assert lines[0].startswith(words)
    assert lines[-1].endswith("a single head would take 4 TB, those of one layer 16 TB.")
    assert (lines[-2].endswith("At that length one layer's weights take 4.19 MB.")) == (limit == 512)


@pytest.mark.parametrize(
    ("quantity", "words"),
    [
        ("cells", ""),
        ("bytes", ", $b$ = 4 bytes a number"),
        ("multiplications", ", $d_k$ = 8 numbers of a key, $d_v$ = 16 of a value"),
    ],
)
def test_what_the_letters_of_the_formulas_stand_for(quantity, words):
    sentence = symbols(quantity, LAYER, 7)
    assert "$h$ = 4 heads, a window of $w$ = 5 keys" in sentence and "has 7 such layers." in sentence
    assert words in sentence and ("$b$" in sentence, "$d_k$" in sentence) == (
        quantity == "bytes",
        quantity == "multiplications",
    )


def test_what_is_said_of_a_table_of_positions():
    table = array((3, 4), (0, 5), (5, 0))
    assert table_words(table).startswith("3 × 2; lengths 5.00 to 5.00.")
    assert likeness_words(table, 1).startswith("Positions 0 and 1: 0.800.")
    assert distances(table, None).endswith("1 apart it is 20.0, the same everywhere to 20.")
    assert distances(table, table).endswith("here it is 1 apart from 0 to 20.0.")


def test_the_variance_of_products_with_and_without_the_scale():
    """1, 2, 3 and 6 have mean 3 and variance 3.5; a quarter of each a sixteenth of it."""
    products = array((1, 2), (3, 6))
    assert of_random(products, 16, 0.25, seed=7).startswith(
        "2 queries and 2 keys, seed 7. Variance 3.5 where the formula says 16; the products times 0.25 have variance 0.2188, "
        "where the formula says 16 × 0.25² = 1."
    )
    own = of_model(products.ravel(), 0.25, products, 2 * products)
    assert own.startswith("4 pairs of a query and a key that it may see, 2 dimensions. Variance 3.5; ")
    assert own.endswith(
        "queries have variance 3.50, those of the keys 14.0, and the mean of the dot products is 3.00."
    )


@pytest.mark.parametrize(
    ("tolerances", "words"),
    [(1e-5, "3×10⁻⁶, layer 0, head 1"), ([[1e-6, 1e-4], [1, 1]], "10⁻⁶, layer 0, head 0")],
)
def test_the_difference_that_is_largest_beside_its_tolerance(tolerances, words):
    check = small_records.check([[1e-6, 3e-6], [0, 2e-6]], tolerances)
    assert _largest(check).replace("3.0\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}", "3×") == words


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (
            "abc",
            "abd",
            "diverge at step 3: “c” (12.5%) in A, “d” (18.8%) in B. Step 3 reads the same tokens in both.",
        ),
        (
            "abc",
            "axc",
            "diverge at step 2: “b” (25.0%) in A, “x” (37.5%) in B. Step 3 distributes 33.0% of its attention differently: "
            "the query is “x2” in A, “y2” in B.",
        ),
        ("abc", "ab", "have the same tokens as far as both go."),
    ],
)
def test_how_two_written_texts_differ(a, b, words):
    """At the third step; A and B give each token another probability."""
    chances = [0.5, 0.25, 0.125], [0.75, 0.375, 0.1875]
    first, second = (
        SimpleNamespace(
            tokens=SimpleNamespace(ids=np.array([9, *map(ord, text)])),
            n_read=1,
            written=tuple(text),
            probabilities=np.array(of_text[: len(text)]),
        )
        for text, of_text in zip((a, b), chances, strict=True)
    )
    axes = [Axis.of(hand_made.tokens([f"{side}{at}" for at in range(4)])) for side in "xy"]
    comparison = SimpleNamespace(
        row_change=np.array([0.11, 0.22, 0.33, 0.44]),
        first=SimpleNamespace(queries=axes[0]),
        second=SimpleNamespace(queries=axes[1]),
    )
    screen = SimpleNamespace(
        continuation=first,
        text=SimpleNamespace(name="own", ids=[*map(ord, a)]),
        step=2,
        query=2,
        pattern=None,
    )
    other = SimpleNamespace(name="branch", ids=[*map(ord, b)], continuation=second)
    assert unescaped(difference_words(screen, other, comparison)) == f"A (own) and B (branch) {words}"


@pytest.mark.parametrize(("n_head", "n_by_chance"), [(12, 1), (30, 2), (100, 5), (144, 7)])
def test_one_head_in_twenty_moves_by_chance(n_head, n_by_chance):
    """One more head has no such number, and is not counted."""
    means = np.where(np.arange(n_head + 1) < n_head, 0.0, np.nan)
    ranked = SimpleNamespace(
        title="Self: difference", means=means, ends=(means - 1, means + 1), moved=np.arange(n_head + 1) < 2
    )
    sentence = moved_words(SimpleNamespace(ranked=ranked))
    assert f"Of 2 of {n_head} heads" in sentence and f"would be about {n_by_chance}." in sentence


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ((), "A door"),
        (("␣was", "␣old", "."), "A door **was old\\.**"),
        (("way", "␣is"), "A door**way is**"),
    ],
)
def test_the_text_to_read_has_what_was_written_in_bold(labels, words):
    assert running_text("A door", labels) == words
