"""Any query string, on any page: it is shown, or said what is shown in its place, without an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.screen import open_page
from tests.fuzz.conftest import assert_shown
from tests.fuzz.strategies import links
from ui.part import room_of
from ui.rooms import PAGES


@given(params=links, page=st.sampled_from(PAGES))
def test_a_link(params, page, tally):
    at = open_page(page.file, **params)
    assert_shown(at)
    assert at.title[0].value == room_of(page).name
    tally("links")


@pytest.mark.nightly
@given(first=links, second=links, pages=st.tuples(st.sampled_from(PAGES), st.sampled_from(PAGES)))
def test_one_link_after_another_in_one_visit(first, second, pages, tally):
    at = open_page(pages[0].file, **first)
    at.switch_page(pages[1].file)
    at.query_params.update(second)
    at.run()
    assert_shown(at)
    tally("links")
