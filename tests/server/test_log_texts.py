"""An operator who asks for it finds what visitors write in the log, each text in one line."""

import pytest

from tests.log_lines import events
from tests.visitor import run, visit

HOSTILE = 'It was a "pelican".\nevent=stop \x1b[2J\x9b31m \u202eopened.'


@pytest.mark.nightly
def test_a_text_and_its_second_sentence(server, server_log):
    async def ask() -> None:
        async with visit(server, text=HOSTILE, second="And a heron.") as visitor:
            await visitor.settle()

    run(ask())
    (read,) = [event for event in events(server_log, "read") if "pelican" in event["text"]]
    assert (read["text"], read["second"]) == (HOSTILE, "And a heron.")
    assert events(server_log, "stop") == []
