"""Whatever happens to a bundle, reading it gives a bundle or a BundleError, and nothing else."""

import io
import json
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import attnviz
from attnviz.bundle.bundle import Bundle
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import NUMBERS, PROVENANCE, write_bundle
from attnviz.errors import BundleError
from attnviz.records import Axis
from tests.bundles import files_of, packed_again

pytestmark = pytest.mark.slow

FEW = settings(
    max_examples=60,
    deadline=None,
    # the fixtures never change: one bundle, and checks of types switched off
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def packed(tiny_model):
    model = tiny_model("t5")
    trace = model.trace("the door", "it opened")
    tokens = trace.target_tokens
    return write_bundle(
        Bundle(
            trace=trace,
            report=attnviz.verify(model, trace),
            kind="decoder",
            layer=1,
            head=0,
            queries=Axis.of(tokens),
            keys=Axis.of(tokens),
            query=1,
            key=0,
        )
    )


@pytest.fixture(scope="module")
def parts(packed):
    """The provenance and the numbers, and a way to pack them again with the rest left empty."""
    return {name: data if name in (PROVENANCE, NUMBERS) else b"" for name, data in files_of(packed).items()}


def outcome(data):
    """What reading gives; anything but a bundle or the one error fails the test."""
    try:
        return write_bundle(read_bundle(data))
    except BundleError as error:
        return str(error)


flips = st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 255)), min_size=1, max_size=4)


def flipped(data, changes):
    changed = bytearray(data)
    for place, mask in changes:
        changed[place % len(changed)] ^= mask
    return bytes(changed)


@pytest.mark.nightly
@FEW
@given(changes=flips)
def test_flipped_bytes_anywhere(packed, types_unchecked, changes):
    assert outcome(flipped(packed, changes))


@pytest.mark.nightly
@FEW
@given(changes=flips)
def test_flipped_bytes_in_the_numbers_under_a_valid_checksum(parts, types_unchecked, changes):
    assert outcome(packed_again(parts | {NUMBERS: flipped(parts[NUMBERS], changes)}))


@pytest.mark.nightly
@FEW
@given(changes=flips)
def test_flipped_bytes_in_an_array_under_valid_checksums(parts, types_unchecked, changes):
    with zipfile.ZipFile(io.BytesIO(parts[NUMBERS])) as numbers:
        arrays = {name: numbers.read(name) for name in numbers.namelist()}
    name = sorted(arrays)[changes[0][0] % len(arrays)]
    near = [(place % 200, mask) for place, mask in changes]  # the header and the first numbers
    assert outcome(
        packed_again(
            parts | {NUMBERS: packed_again(arrays | {name: flipped(arrays[name], near)}, zipfile.ZIP_STORED)}
        )
    )


@pytest.mark.nightly
@FEW
@given(changes=flips)
def test_flipped_bytes_in_the_provenance_under_a_valid_checksum(parts, types_unchecked, changes):
    assert outcome(packed_again(parts | {PROVENANCE: flipped(parts[PROVENANCE], changes)}))


@FEW
@given(length=st.integers(0, 10**9))
def test_cut_off_anywhere(packed, types_unchecked, length):
    with pytest.raises(BundleError):
        read_bundle(packed[: length % len(packed)])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=9,
)


@FEW
@given(data=st.data(), value=json_values)
def test_anything_in_the_place_of_a_part_of_the_provenance(parts, types_unchecked, data, value):
    document = json.loads(parts[PROVENANCE])
    place, name = document, data.draw(st.sampled_from(sorted(document)))
    while isinstance(place[name], dict | list) and place[name] and data.draw(st.booleans()):
        place = place[name]
        name = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[name] = value
    assert outcome(packed_again(parts | {PROVENANCE: json.dumps(document).encode()}))
