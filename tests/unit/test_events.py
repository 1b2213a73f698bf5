"""docs/operating.md has every event of the code, with a line of it and what its values are."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from tests.log_lines import pairs
from ui.runtime import events

ROOT = Path(__file__).parents[2]
OPERATING = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
OF_LIBRARIES = {"message", "error"}
"""What `ui.runtime.log.Line` calls a line that is no event."""
ENDS = {"job_": get_args(events.Ended), "download_": ("done", "failed")}
"""How names go on that are put together."""
OF_EVERY_LINE = {"time", "level", "process", "event", "seconds"}


def names(source: str) -> Iterator[str]:
    """The names of all events that a module writes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and re.search(r"\b(log\.event|Progress)$", ast.unparse(node.func)):
            match node.args:
                case [ast.Constant(value=str(name)), *_]:
                    yield name
                case [ast.JoinedStr(values=[ast.Constant(value=str(begin)), _]), *_]:
                    yield from (begin + end for end in ENDS[begin])


def rows(page: str) -> dict[str, set[str]]:
    """By event, the values that the table explains."""
    table = page.split("| event |")[1].split("\n\n")[0]
    return {
        name: set(re.findall(r"`(\w+)`", meanings))
        for name, meanings in re.findall(r"^\s*\| `(\w+)` \| (.+) \|$", table, flags=re.MULTILINE)
    }


def lines(page: str) -> list[dict[str, str]]:
    return [pairs(match) for match in re.findall(r"^\s*(time=.+)$", page, flags=re.MULTILINE)]


def test_the_table_and_the_lines_have_every_event():
    written = {name for path in (ROOT / "ui").rglob("*.py") for name in names(path.read_text("utf-8"))}
    assert set(rows(OPERATING)) == written | OF_LIBRARIES
    assert [line["event"] for line in lines(OPERATING)] == list(rows(OPERATING))


def test_every_value_of_a_line_is_explained():
    explained = rows(OPERATING)
    assert {
        line["event"]: line.keys() - OF_EVERY_LINE - explained[line["event"]] for line in lines(OPERATING)
    } == {name: set() for name in explained}


def test_checks_can_fail():
    source = "log.event('one', a=1)\nevents.Progress('two')\nlog.event(f'job_{outcome}')\nother('three')"
    assert sorted(names(source)) == ["job_cancelled", "job_done", "job_failed", "one", "two"]
    assert rows("| event | values |\n|---|---|\n| `one` | When, `a` and `b`. |\n\n| `no` | `row` |") == {
        "one": {"a", "b"}
    }
    assert lines("words\n  time=1 level=info process=1 event=one c=2") == [
        {"time": "1", "level": "info", "process": "1", "event": "one", "c": "2"}
    ]
