"""Every character of a label can be seen, and stands in XML."""

from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as some

from attnviz.figures.labels import literal
from attnviz.records import as_label, bare, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("door", "door"),
        ("a b", "a b"),
        ("\x10", "U+0010"),
        ("a\x00b", "aU+0000b"),
        ("\n\n\t", "↵↵⇥"),
        ("\x7f\x9f", "U+007FU+009F"),
        ("\N{NO-BREAK SPACE}", "U+00A0"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}abc", "U+202Eabc"),
        ("\ufeff", "U+FEFF"),
        ("\ufffe\U0001ffff", "U+FFFEU+1FFFF"),
        ("\ufdcf\ufdd0\ufdef\ufdf0", "\ufdcfU+FDD0U+FDEF\ufdf0"),
        ("\ue000", "U+E000"),
        ("\ud800", "U+D800"),
        ("e\N{COMBINING ACUTE ACCENT}", "e\N{COMBINING ACUTE ACCENT}"),
        ("\U0001fae8", "\U0001fae8"),  # of Unicode 15, which Python 3.11 does not know
    ],
    ids=ascii,
)
def test_what_has_no_glyph_is_shown_by_a_sign_or_its_code(text, expected):
    assert visible(text) == expected


def test_joiners_are_kept_between_characters_and_shown_alone():
    coder = "\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}"
    assert visible(coder) == coder
    assert visible("\N{ZERO WIDTH JOINER}") == "U+200D"


def test_a_label_shows_its_spaces():
    assert as_label(" the") == "␣the"
    assert as_label("  ") == "␣␣"
    assert bare("␣the") == "the"


@given(some.text(some.characters(exclude_categories=())))
def test_any_label_is_xml_and_is_shown_the_same_a_second_time(text):
    label = as_label(text)
    assert bool(label) is bool(text)
    assert as_label(label) == label
    assert ElementTree.fromstring(f"<text>{escape(label)}</text>").text == (label or None)


@given(some.text(some.characters(exclude_categories=())))
def test_whatever_plotly_draws_is_xml(text):
    ElementTree.fromstring(f"<text>{literal(text)}</text>")
