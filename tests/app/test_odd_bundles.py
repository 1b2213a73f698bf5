"""Bundles that no export writes are shown on every page like any other: no page ends in an exception.

The kinds that once did; `tests/fuzz` goes through all of `tests.odd_bundles`.
"""

import pytest

from tests.app.opened import banner
from tests.app.screen import errors, open_bundle, open_page
from tests.odd_bundles import long, odd
from ui.rooms import PAGES

pytestmark = pytest.mark.nightly

KINDS = (
    "a tolerance of 0",
    "a difference that is not a number",
    "a row without an allowed key",
    "a pair of which one sentence has one token",
    "one head of 1,024 tokens",
    "norms of nothing",
    "a run that was changed",
    "layers with different numbers of heads",
)


@pytest.fixture(scope="module")
def bundles():
    made = odd() | long()
    return {name: made[name] for name in KINDS}


@pytest.mark.parametrize("page", [page.file for page in PAGES])
def test_every_page_shows_an_odd_bundle(page, bundles):
    assert odd_on_a_page(page, bundles) == {}


def odd_on_a_page(page, bundles):
    """What goes wrong when bundles are opened one after another, by name."""
    at = open_page(page)
    wrong = {}
    for name, data in bundles.items():
        open_bundle(at, data)
        if at.exception:
            wrong[name] = [f"{exception.message} {exception.stack_trace[-3:]}" for exception in at.exception]
            at = open_page(page)
        elif not banner(at):
            wrong[name] = errors(at)
    return wrong
