"""A bundle holds no model: pages that would run it with changes say so."""

import pytest

from tests.app.screen import assert_no_exception, errors, open_bundle, open_page
from tests.tiers import first_gates


@pytest.mark.parametrize("page", first_gates("patching", "effects", "lens", "inputs"))
def test_an_opened_bundle_is_explained(page, door_bundle):
    at = open_bundle(open_page(f"pages/{page}.py"), door_bundle)
    assert_no_exception(at)
    [error] = errors(at)
    assert "bundle" in error
