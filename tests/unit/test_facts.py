"""What tests of pages read out of a sentence."""

import pytest

from tests.app.screen import Facts, facts


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            "**“it” → “door” falls from 47\\.5% in layer 3, head 1 to 1.7% in L3 H2**",
            Facts(("it", "door"), ((3, 1), (3, 2)), ("47.5%", "1.7%")),
        ),
        ("correlation −0.20 (−1 is perfect), +0.12", Facts(numbers=("−0.20", "−1", "+0.12"))),
        (
            "1,000,000 cells in 11 × 32, within 8.9\xa0×\xa010⁻⁷ or 10⁻⁵",
            Facts(numbers=("1,000,000", "11", "32", "8.9\xa0×\xa010⁻⁷", "10⁻⁵")),
        ),
        ("Heads 2.4, 6.1 and 3.12; layers 0 to 3.", Facts(numbers=("2.4", "6.1", "3.12", "0", "3"))),
        ("all-MiniLM-L6-v2 in float16, door·5, U+0007, 4², arXiv:2004.10102", Facts()),
        ("“47%” is a token", Facts(("47%",))),
        (
            '3 [keys](glossary?layer=5&head=7#key "One of “many”, 12 (or 13).") of 11',
            Facts(numbers=("3", "11")),
        ),
    ],
)
def test_tokens_heads_and_numbers_in_their_order(text, named):
    assert facts(text) == named


def test_numbers_that_follow_each_other():
    named = facts("3 of 72 heads, 47.5%")
    assert named.has("3", "72") and named.has("72", "47.5%") and named.has("72")
    assert not named.has("3", "47.5%") and not named.has("72", "3")
