"""Where memory is short a page says so in one sentence, and draws nothing of another text."""

import numpy as np
import pytest
import torch

from attnviz.errors import OutOfMemoryError, enough_memory
from tests.app.screen import assert_no_exception, assert_nothing_drawn, chips, errors, open_page, type_text
from ui.runtime import cache


def sentence() -> str:
    """What attnviz says where memory is short."""
    with pytest.raises(OutOfMemoryError) as refused, enough_memory():
        raise MemoryError
    return str(refused.value)


SAID = sentence()
TOO_MUCH = 2**46


def test_a_text_that_does_not_fit_is_refused_and_the_next_is_shown():
    at = type_text(open_page(), "The old door creaked.")
    network = cache.model("all-MiniLM-L6-v2").network
    hook = network.encoder.layer[2].register_forward_hook(lambda *_: torch.empty(TOO_MUCH))
    type_text(at, "A text of many words that nobody has read.")
    hook.remove()
    assert_no_exception(at)
    assert errors(at) == [SAID]
    assert_nothing_drawn(at)
    type_text(at, "A text of many words that nobody had read.")
    assert errors(at) == []
    assert chips(at)[1:4] == ["a", "text", "of"]


@pytest.mark.parametrize("page", ["attention.py", "pages/find_a_head.py"])
def test_a_page_that_runs_out_of_memory_anywhere_ends_in_the_sentence(page, ends_in_a_sentence, monkeypatch):
    at = open_page(page)
    monkeypatch.setattr(
        cache, "report", lambda _: np.empty(TOO_MUCH)
    )  # the verdict, which every page ends with
    at.run()
    assert_no_exception(at)
    assert SAID in errors(at)
