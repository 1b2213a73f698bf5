"""How long a page waits, in words."""

from ui.shell import waiting


def test_how_long_the_rest_takes_is_said():
    assert waiting.time_left(4.0, 0.0, 1.0) == "Starting takes a few seconds."
    assert waiting.time_left(4.0, 0.01, 0.99) == ""  # too little to tell
    assert waiting.time_left(10.0, 0.25, 0.75) == "About 30 s left."
    assert waiting.time_left(200.0, 0.5, 0.5) == "About 3 minutes left."
    assert waiting.time_left(4.0, 0.0, 0.75) == ""  # a block that is drawn anew in the middle of the work
    assert (
        waiting.time_left(10.0, 0.25, 0.75, since=12.0) == "About 18 s left."
    )  # it does not grow between two reports
