"""`:has()` in the style of pages matches only what few elements are, and styles only the element that has it.

Chromium computes a style anew when an element that is drawn may be one that a `:has()` asks for: of the element that has
it, and of all below it where the rule goes on to those. A rule like ``.stApp:has([class*=grid]) .heading`` did so for the
whole page with every mark that Plotly draws, a quarter of a second each.
"""

import re
from collections.abc import Iterator

import pytest

from tests.findings import assert_none
from ui.shell.style import style

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
ANY = re.compile(r"\[class|(?<![\w-])\*|:nth|:first|:last|:only|:empty|:not")
"""What drawing any element may make true or untrue."""


def closes(text: str, start: int) -> int:
    """Where the bracket that is opened just before ``start`` is closed."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[start], 0)
        start += 1
    return start


def outermost(selector: str) -> str:
    """The selector with a dot for each character in brackets."""
    depth, text = 0, ""
    for character in selector:
        depth += character in "(["
        text += "." if depth else character
        depth -= character in ")]"
    return text


def dear(css: str) -> Iterator[str]:
    """Rules with a `:has()` that costs the whole page."""
    for selector in re.findall(r"([^{};]*)\{", COMMENT.sub("", css)):
        selector = selector.strip()
        for match in re.finditer(r":has\(", selector):
            end = closes(selector, match.end())
            if ANY.search(selector[match.end() : end - 1]):
                yield f"{selector}: any element may be what it asks for"
            if re.search(r"[\s>~+]", outermost(selector)[end:].partition(",")[0]):
                yield f"{selector}: goes on to what is below"


def test_no_rule_costs_the_whole_page():
    assert_none(dear(style()))


@pytest.mark.parametrize(
    "css",
    [
        "body:has(.stMain h1) #first_look { display: none }",
        ".stApp:has(.st-key-stage) .page_head { top: 0 }",
        '[data-testid="x"]:has(> .stColumn .rail) > .stColumn { top: 0 }',
        '.wrapper:has(> [class*="_across"]) { top: 0 }',
        ".field:has(.instructions > *) { gap: 0 }",
        ".line:has(> .text:empty) { gap: 0 }",
        ".parts:has(> :nth-child(6)) { gap: 0 }",
        "div :not(:has(.a), .b, .c *) .d { display: none }",
    ],
)
def test_the_check_can_fail(css):
    assert list(dear(f"a {{ b: c }} /* d */ {css}"))


@pytest.mark.parametrize(
    "css",
    [
        ".wrapper:has(> .grid), .b > .c { top: 0 }",
        ".a .b:has(.c):not(.d *) { top: 0 }",
        ":is(.a, .b):not(:has([data-drawn])) { top: 0 }",
        "@media (max-width: 3px) { .a:has(> .b)::after { top: 0 } .c > .d { top: 0 } }",
    ],
)
def test_a_rule_for_the_element_alone_is_fine(css):
    assert not list(dear(css))
