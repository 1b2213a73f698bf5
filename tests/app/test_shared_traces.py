"""Visitors share what was computed. A text may have several traces, and what was made of one fits the others."""

from dataclasses import replace

import pytest

from tests.app.screen import assert_no_exception, errors, open_page
from tests.tiers import first_gates
from ui.rooms import PAGES
from ui.runtime import cache


@pytest.mark.parametrize("page", first_gates(*(page.file for page in PAGES)))
def test_what_was_made_of_an_earlier_trace_of_the_text_fits_the_present_one(page, monkeypatch):
    """As when a trace had to leave a full store before what was made of it."""
    traced = cache.trace

    def once_more(source):
        trace = traced(source)
        return replace(trace, tokens=replace(trace.tokens))

    monkeypatch.setattr(cache, "trace", once_more)
    for special, unit in (("hidden", "words"), ("shown", "tokens")):
        at = open_page(
            page,
            text="Nobody was watching the unbelievable doors.",
            special=special,
            unit=unit,
            layer=1,
            head=2,
        )
        assert_no_exception(at)
        assert errors(at) == []
