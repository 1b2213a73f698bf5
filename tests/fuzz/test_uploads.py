"""Any bytes as a file: a bundle or lines, or one sentence why not, and the page goes on."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.bundle.writing import NUMBERS, PROVENANCE
from tests.app.screen import open_bundle, open_page, until_drawn
from tests.app.test_odd_bundles import odd_on_a_page
from tests.bundles import files_of, packed_again
from tests.fuzz.conftest import assert_shown
from tests.odd_bundles import odd
from ui.rooms import PAGES

FEW = settings(
    max_examples=max(2, settings.default.max_examples // 5)
)  # each is read and laid out by a process

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=9,
)


@pytest.fixture(scope="module")
def bundles() -> dict[str, bytes]:
    return odd()


@st.composite
def changed(draw: st.DrawFn, data: bytes) -> bytes:
    """A bundle in which something else stands in the place of a part, under valid checksums."""
    files = files_of(data)
    if draw(st.booleans()):
        numbers = bytearray(files[NUMBERS])
        for place, mask in draw(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 255)), max_size=4)):
            numbers[place % len(numbers)] ^= mask
        return packed_again(files | {NUMBERS: bytes(numbers)})
    document = json.loads(files[PROVENANCE])
    place, name = document, draw(st.sampled_from(sorted(document)))
    while isinstance(place[name], dict | list) and place[name] and draw(st.booleans()):
        place = place[name]
        name = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    place[name] = draw(json_values)
    return packed_again(files | {PROVENANCE: json.dumps(document).encode()})


@pytest.mark.nightly
@given(data=st.data())
def test_as_a_bundle(data, bundles, tally):
    kind = data.draw(st.sampled_from(["bytes", *bundles]))
    file = data.draw(st.binary(max_size=2000) if kind == "bytes" else changed(bundles[kind]))
    at = open_bundle(open_page(data.draw(st.sampled_from(PAGES)).file, iterations=250), file)
    assert_shown(at)
    tally("uploaded bundles")


@pytest.mark.nightly
@FEW
@given(file=st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_as_lines(file, tally):
    at = open_page("pages/many_sentences.py", method="pca", model="all-MiniLM-L6-v2")
    [uploader] = [element for element in at.file_uploader if element.key.startswith("sentences_file")]
    uploader.set_value(("any.txt", file, "text/plain")).run()
    until_drawn(at)
    assert_shown(at)
    tally("uploaded texts")


@pytest.mark.nightly
@given(page=st.sampled_from(PAGES), data=st.data())
def test_odd_bundles_one_after_another(page, data, bundles, tally):
    names = data.draw(st.lists(st.sampled_from(sorted(bundles)), min_size=1, max_size=3))
    assert odd_on_a_page(page.file, {name: bundles[name] for name in names}) == {}
    for _ in names:
        tally("odd bundles on pages")
