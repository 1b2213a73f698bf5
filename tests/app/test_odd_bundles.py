"""Bundles that no export writes are shown on every page like any other: no page ends in an exception."""

import pytest

from tests.app.screen import errors, open_page, unescaped
from tests.odd_bundles import odd
from ui.page.navigation import PAGES


@pytest.fixture(scope="module")
def bundles():
    return odd()


@pytest.mark.parametrize("page", [page.file for page in PAGES])
def test_every_page_shows_an_odd_bundle(page, bundles):
    at = open_page(page)
    wrong = {}
    for name, data in bundles.items():
        [uploader] = [one for one in at.file_uploader if one.key.startswith("bundle_")]
        uploader.set_value(("odd.zip", data, "application/zip")).run()
        if at.exception:
            wrong[name] = [f"{one.value} {one.stack_trace[-3:]}" for one in at.exception]
            at = open_page(page)
        elif not any("From a bundle, as recorded" in unescaped(one.value) for one in at.caption):
            wrong[name] = errors(at)
    assert wrong == {}
