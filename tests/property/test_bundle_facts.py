"""What a bundle is checked by: tokens that differ, digests, tolerances and changes are counted again in plain Python."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz.bundle import changes, comparison, document, reading
from attnviz.bundle.bounds import LARGEST_NUMBER, check_numbers
from attnviz.errors import BundleError, VerificationError
from attnviz.model.interventions import ReplacedWeights, ScaledOutput
from attnviz.records import Check, Head, LayerAttention
from tests import hand_made, small_records
from tests.drawing import MARKS, draw_few

pytestmark = MARKS
draw_few(20)

N = 5
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "ids": hnp.arrays(np.int64, N, elements=st.integers(0, 1), fill=st.nothing()),
        "word": hnp.arrays(np.int64, N, elements=st.integers(-1, 0), fill=st.nothing()),
        "segment": hnp.arrays(np.int64, N, elements=st.integers(0, 1), fill=st.nothing()),
        "is_special": hnp.arrays(np.bool_, N, elements=st.booleans(), fill=st.nothing()),
        "masked": st.dictionaries(st.integers(0, N - 1), st.sampled_from(["cat", "it"])),
        "n_cut": st.sampled_from([(), (2,), (1, 4)]),
    },
)
BASE = {
    "ids": np.zeros(N, dtype=np.int64),
    "word": np.zeros(N, dtype=np.int64),
    "segment": np.zeros(N, dtype=np.int64),
    "is_special": np.zeros(N, dtype=bool),
}


def tokens_of(changed):
    return small_records.tokens(N, **BASE | {"text_pair": "pair"} | changed)


def n_wrong(tokens, expected) -> int:
    """Tokens that differ in anything, and tokens that were cut from one and not from the other."""
    wrong = 0
    for at in range(N):
        names = ("ids", "word", "segment", "is_special", "is_unknown")
        differs = any(getattr(tokens, name)[at] != getattr(expected, name)[at] for name in names)
        wrong += differs or tokens.masked.get(at) != expected.masked.get(at)
    cuts = [[*side.n_cut, 0, 0][:2] for side in (tokens, expected)]
    return wrong + sum(abs(a - b) for a, b in zip(*cuts, strict=True))


@pytest.mark.stand_ins
@given(CHANGES, CHANGES, CHANGES, st.booleans(), st.booleans())
def test_tokens_that_differ_are_counted(first, second, third, has_target, other_pair):
    tokens, expected = tokens_of(first), tokens_of(second)
    expected = replace(expected, text_pair="other") if other_pair else expected
    target = tokens_of(third)
    sides = [
        SimpleNamespace(tokens=of_encoder, target_tokens=of_decoder, kinds=("encoder",))
        for of_encoder, of_decoder in ((tokens, target), (expected, tokens_of({})))
    ]
    if not has_target:
        sides[0].target_tokens = sides[1].target_tokens = None
    counted = comparison._wrong_tokens(*sides)
    count = n_wrong(tokens, expected) + other_pair + has_target * n_wrong(target, tokens_of({}))
    assert counted["encoder"].tolist() == [[count]]


@pytest.mark.stand_ins
@given(
    st.sampled_from([(), (0,), (2,), (0, 3)]),
    st.sampled_from([None, (), (1,)]),
    st.sampled_from(["", "It ran."]),
)
def test_a_text_is_read_again_as_it_was(n_cut, target_cut, target_text):
    tokens = replace(tokens_of({"n_cut": n_cut}), masked={3: "cat", 1: "it"}, language="de", template="begin")
    target = None
    if target_cut is not None:
        target = replace(small_records.tokens(7), text=target_text, n_cut=target_cut, language="fr")
    asked = {}
    model = SimpleNamespace(trace=lambda *given_, **named: asked.update(named, given=given_))
    comparison._read_again(SimpleNamespace(trace=SimpleNamespace(tokens=tokens, target_tokens=target)), model)
    is_cut = sum(n_cut) + sum(target_cut or ()) > 0
    assert asked["given"] == ("text", "pair" if target is None else target_text or None)
    assert asked["cut"] == is_cut and asked["max_tokens"] == (
        (5 if target is None else 7) if is_cut else None
    )
    assert asked["masked"] == [1, 3] and asked["template"] == "begin" and asked["source_language"] == "de"
    assert asked["target_language"] == (None if target is None else "fr")


@pytest.mark.stand_ins
@pytest.mark.parametrize("n_file", [0, 1, 2, 3])
def test_other_weights_are_named_by_their_first_file(n_file):
    recorded = {"model.safetensors": "0123456789abcdef"}
    here = {f"part {at}": f"{at}" * 16 for at in reversed(range(n_file))}
    bundle = SimpleNamespace(
        weights_sha256=recorded, trace=SimpleNamespace(provenance=small_records.PROVENANCE)
    )
    with pytest.raises(VerificationError) as error:
        comparison.check_weights(bundle, SimpleNamespace(name="n", weights_sha256=here))
    rest = {
        0: "no weights",
        1: "part 0 000000000000…",
        2: "part 0 000000000000… and 1 more file",
        3: "part 0 000000000000… and 2 more files",
    }
    assert f"made with model.safetensors 0123456789ab…, n has {rest[n_file]}. Load revision r of m." in str(
        error.value
    )


def u(n_term: int) -> float:
    """The error of a sum of so many products in float32, with one rounding more."""
    step = 2.0**-24
    return n_term * step / (1 - n_term * step) + step


@pytest.mark.stand_ins
@given(
    hnp.arrays(np.float32, (2, 3, 4), elements=st.integers(-2, 2).map(float), fill=st.nothing()),
    hnp.arrays(np.float32, (2, 5, 4), elements=st.integers(-2, 2).map(float), fill=st.nothing()),
    st.sampled_from([None, 20.0]),
    st.sampled_from([None, -3.0]),
    st.integers(0, 1),
)
def test_how_far_the_weights_of_a_view_may_be_rounded(query, key, softcap, bias, head):
    call = LayerAttention(
        kind="cross",
        layer=0,
        query=query,
        key=key,
        value=key,
        scale=0.5,
        softcap=softcap,
        bias=None if bias is None else np.array([[[0.5] * 4 + [bias]] * 3], dtype=np.float32),
    )
    trace = SimpleNamespace(
        attention=lambda layer, kind: {1 - head: call}[layer],
        query=lambda layer, of, kind: query[of],
        key=lambda layer, of, kind: key[of],
    )
    rounding = reading._rounding(SimpleNamespace(trace=trace, layer=1 - head, head=head, kind="cross"))
    longest = [max(math.hypot(*map(float, row)) for row in side[head]) for side in (query, key)]
    scores = u(2 * 4 + (8 if softcap is None else 16)) * (0.5 * math.prod(longest) + (3.0 if bias else 0.0))
    assert rounding == pytest.approx(scores / 2 + 2 * u(5 + 8), rel=1e-5)


@pytest.mark.stand_ins
@given(
    hnp.arrays(np.float32, (2, 3, 2), elements=st.integers(-2, 2).map(float), fill=st.nothing()),
    hnp.arrays(np.float32, (4, 2, 3), elements=st.integers(-2, 2).map(float), fill=st.nothing()),
    hnp.arrays(np.float32, (4, 4, 3), elements=st.sampled_from([0.0, 1.0, -2.0]), fill=st.nothing()),
)
def test_how_far_products_of_values_may_be_off(value, weight, change):
    """Two heads share a value; of each head its largest difference from a dot product of v W_O written out."""
    vectors = [
        [
            [
                math.fsum(float(value[head // 2, key, at]) * float(weight[head, at, to]) for at in range(2))
                for to in range(3)
            ]
            for key in range(3)
        ]
        for head in range(4)
    ]
    exact = np.array(
        [
            [
                [
                    math.fsum(a * b for a, b in zip(vectors[number][key], vectors[other][key], strict=True))
                    for key in range(3)
                ]
                for other in range(4)
            ]
            for number in range(4)
        ]
    )
    recorded = (exact + change).astype(np.float32)
    trace = SimpleNamespace(
        attention=lambda layer, kind: SimpleNamespace(value=value),
        value_products=lambda layer, kind: recorded,
    )
    model = SimpleNamespace(output_maps={"encoder": [SimpleNamespace(weight=weight)]})
    apart, allowed = comparison._products(trace, model, "encoder", 0)
    tiny = float(np.finfo(np.float32).tiny)
    lengths = [max(math.hypot(*vector) for vector in vectors[head]) for head in range(4)]
    norms = [
        max(math.hypot(*map(float, vector)) for vector in value[head // 2])
        * math.sqrt(float((weight[head].astype(float) ** 2).sum()))
        for head in range(4)
    ]
    for head in range(4):
        longest = max(lengths[head] * max(lengths), tiny)
        assert apart[head] == pytest.approx(float(np.abs(change[head]).max()) / longest, rel=1e-4, abs=1e-6)
        assert allowed[head] == pytest.approx(2 * u(2 * 2 + 3) * norms[head] * max(norms) / longest, rel=1e-4)


@pytest.mark.stand_ins
@pytest.mark.parametrize("of_norms", [0.5, 1.5, math.nan])
@pytest.mark.parametrize("of_products", [0.25, 2.0, math.nan])
def test_of_a_head_the_worse_of_two_checks_is_kept(of_norms, of_products, monkeypatch):
    check = Check(
        name="norms",
        differences={"encoder": np.array([[of_norms, 0.0]], dtype=np.float32)},
        tolerances={"encoder": np.ones((1, 2), dtype=np.float32)},
        unit="share",
        reason="Said.",
    )
    pair = np.array([4 * of_products, 4.0], dtype=np.float32), np.array([4.0, 8.0], dtype=np.float32)
    monkeypatch.setattr(comparison, "_products", lambda *_: pair)
    combined = comparison._with_products(check, SimpleNamespace(n_layers=lambda kind: 1), None)
    takes_products = not math.isnan(of_norms) and (math.isnan(of_products) or of_products > of_norms)
    expected = (4 * of_products, 4.0) if takes_products else (of_norms, 1.0)
    np.testing.assert_equal(
        [float(combined.differences["encoder"][0, 0]), float(combined.tolerances["encoder"][0, 0])],
        list(expected),
    )
    assert (combined.differences["encoder"][0, 1], combined.tolerances["encoder"][0, 1]) == (4, 8)
    assert combined.reason.startswith("Said. ")


@st.composite
def interventions(draw: st.DrawFn):
    """Weights in place of others, and outputs times a factor, of a trace of 2 layers with 3 heads of 4 tokens."""
    drawn = []
    for _ in range(draw(st.integers(0, 3))):
        place = {"layer": draw(st.sampled_from([None, 0, 1])), "head": draw(st.sampled_from([None, 0, 2]))}
        if draw(st.booleans()):
            drawn.append(ScaledOutput(factor=draw(st.sampled_from([0.0, -2.0])), **place))
        else:
            weights = draw(
                hnp.arrays(np.float32, (4, 4), elements=st.sampled_from([0.0, 0.5, 1.0]), fill=st.nothing())
            )
            drawn.append(ReplacedWeights(weights=weights, **place))
    return tuple(drawn)


@given(interventions())
def test_what_is_changed_is_counted(given_):
    weights = np.full((2, 3, 4, 4), 0.25)
    trace = replace(
        hand_made.trace(weights, ["a", "b", "c", "d"], lengths=np.ones((2, 3, 4))), interventions=given_
    )
    heads = [Head(*at) for at in np.ndindex(2, 3)]
    places = [
        (intervention, head)
        for intervention in given_
        for head in heads
        if intervention.layer in (None, head.layer) and intervention.head in (None, head.head)
    ]
    n_replaced = 16 * sum(isinstance(intervention, ReplacedWeights) for intervention, _ in places)
    largest = 1.0
    for layer in range(2):
        sums = [
            float(intervention.weights.astype(float).sum(axis=1).max())
            for intervention in given_
            if isinstance(intervention, ReplacedWeights) and intervention.layer in (None, layer)
        ]
        largest *= 0.5 + 0.5 * max([1.0, *sums])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "MOST_CHANGES", len(places))
        patch.setattr(changes.bounds, "MOST_WEIGHTS", n_replaced)
        patch.setattr(changes, "LARGEST_NUMBER", max(largest, 10.0))
        changes.check_changes(trace)
        for name, of, least in (
            ("MOST_CHANGES", changes, len(places)),
            ("MOST_WEIGHTS", changes.bounds, n_replaced),
        ):
            with pytest.MonkeyPatch.context() as less:
                less.setattr(of, name, least - 1)
                if least:
                    with pytest.raises(BundleError, match=r"Use fewer interventions\."):
                        changes.check_changes(trace)
        patch.setattr(changes, "LARGEST_NUMBER", largest * 0.999)
        if largest > 2:
            with pytest.raises(BundleError, match="rollout through the layers is too large"):
                changes.check_changes(trace)
    arrays = changes.changes_arrays(given_)
    assert list(arrays) == [
        f"intervention.{at}"
        for at, intervention in enumerate(given_)
        if isinstance(intervention, ReplacedWeights)
    ]
    assert all(array.dtype == np.float32 for array in arrays.values())


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_number_of_a_bundle(sign):
    array = np.zeros((2, 3), dtype=np.float32)
    array[1, 2] = sign * np.nextafter(np.float32(LARGEST_NUMBER), np.float32(0))
    check_numbers("it", array)
    array[1, 2] = sign * np.nextafter(np.float32(LARGEST_NUMBER), np.float32(np.inf))
    with pytest.raises(BundleError, match="it holds numbers that are not finite or too large"):
        check_numbers("it", array)
    check_numbers("it", np.zeros((0, 3), dtype=np.float32))


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (b'{"format": "attnviz bundle", "version": 99}', True),
        (b'{"format": "other"}', False),
        (b"not json", False),
        (b'{"version": 5}', False),
    ],
)
def test_what_is_the_provenance_of_a_bundle(content, is_one):
    content = content.replace(b"attnviz bundle", document.FORMAT.encode())
    assert document.is_provenance(content) is is_one
    with pytest.raises(BundleError, match="version 99" if is_one else "is not that of a bundle"):
        document.read_document(content)


@pytest.mark.parametrize(("number", "count"), [(0, 1), (2, 3), (1, 1), (5, 3)])
def test_what_is_shown_is_in_the_bundle(number, count):
    if number < count:
        assert reading._below(number, count) == number
    else:
        with pytest.raises(BundleError, match="that it does not contain"):
            reading._below(number, count)


def test_a_file_of_as_many_bytes_as_may_be_is_read_and_one_more_is_not():
    with pytest.raises(BundleError, match="is not a complete zip"):
        reading.read_bundle(b"x" * 100, most_bytes=100)
    with pytest.raises(BundleError, match="a bundle is at most"):
        reading.read_bundle(b"x" * 101, most_bytes=100)
