"""Any text: its figures and the page that needs no network can be read, and no page ends in an exception."""

import html.parser
import io
import json
import zipfile

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import attnviz
from attnviz.bundle.bundle import Bundle
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import PAGE, write_bundle
from attnviz.errors import AttnvizError
from attnviz.records import Axis
from tests.app.screen import open_page, type_text
from tests.fuzz.conftest import assert_shown
from tests.fuzz.strategies import texts
from ui.rooms import PAGES


def strict(written: str) -> object:
    """JSON as browsers read it: without NaN and infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in JSON")

    return json.loads(written, parse_constant=refuse)


class Tags(html.parser.HTMLParser):
    """The tags of a page, and the attributes that could lead elsewhere or run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.leading: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.leading += [
            name for name, _ in attrs if name in ("src", "href", "srcdoc") or name.startswith("on")
        ]


WITH_SENTENCE = [page for page in PAGES if "sentence" in page.asks]


@pytest.mark.nightly
@given(text=texts, second=st.none() | texts, layer=st.integers(0, 5), head=st.integers(0, 11))
def test_a_page_that_needs_no_network(text, second, layer, head, embedded, types_unchecked, tally):
    try:
        trace = embedded.trace(text, second)
    except AttnvizError:
        assume(False)
    axis = Axis.of(trace.tokens, "words")
    bundle = Bundle(
        trace=trace,
        report=attnviz.verify(embedded, trace),
        kind="encoder",
        layer=layer,
        head=head,
        queries=axis,
        keys=axis,
        query=0,
        key=len(trace.tokens) - 1,
    )
    data = write_bundle(bundle)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        page = Tags(archive.read(PAGE).decode())
    assert page.leading == []
    assert page.tags.count("script") == 2
    assert read_bundle(data).trace.tokens.labels == trace.tokens.labels
    tally("offline pages")


WITH_SENTENCE = [page for page in PAGES if "sentence" in page.asks]


@pytest.mark.nightly
@given(text=texts, second=texts | st.just(""), page=st.sampled_from(WITH_SENTENCE))
def test_a_text_on_a_page(text, second, page, tally):
    at = type_text(open_page(page.file, iterations=250), text, second)
    assert_shown(at)
    for element in at.get("plotly_chart"):
        strict(element.proto.spec)
    for element in at.get("bidi_component"):
        if element.proto.bytes:
            strict(element.proto.bytes.partition(b"\n")[0])
    tally("texts on pages")


def test_these_checks_can_fail():
    assert Tags("<p onclick=1><script src=x></script>").leading == ["onclick", "src"]
    with pytest.raises(AssertionError, match="NaN in JSON"):
        strict('{"z": [NaN]}')
