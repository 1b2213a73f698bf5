"""The scripts of the components: no endless polling, private fields in one place, nothing written twice."""

import re
from itertools import combinations

import pytest

from tests.unit.test_docs import ROOT

SCRIPTS = {
    path.relative_to(ROOT / "ui" / "components").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "ui" / "components").rglob("*.js"))
}
POLLS = re.compile(r"\bsetInterval\b")
PRIVATE = re.compile(r"\._\w+")
# The one way to what a drawn label belongs to; its comment says what is missing.
ALLOWED = {"label_room/label_room.js": [".__data__"]}
MOST_ALIKE = 6  # lines in a row


def private_fields(script: str) -> list[str]:
    return PRIVATE.findall(script)


def alike(one: str, other: str) -> list[str]:
    """Runs of lines that two scripts have alike."""

    def runs(script: str) -> set[str]:
        lines = [line.strip() for line in script.splitlines() if len(line.strip()) > 3]
        return {"\n".join(lines[at : at + MOST_ALIKE]) for at in range(len(lines) - MOST_ALIKE + 1)}

    return sorted(runs(one) & runs(other))


def test_are_read_at_all():
    assert len(SCRIPTS) > 10


@pytest.mark.parametrize("name", SCRIPTS)
def test_none_polls_for_ever(name):
    assert not POLLS.search(SCRIPTS[name])


@pytest.mark.parametrize("name", SCRIPTS)
def test_none_reaches_into_private_fields(name):
    assert private_fields(SCRIPTS[name]) == ALLOWED.get(name, [])


@pytest.mark.parametrize(("one", "other"), list(combinations(SCRIPTS, 2)))
def test_none_is_a_copy_of_another(one, other):
    assert alike(SCRIPTS[one], SCRIPTS[other]) == []


def test_checks_can_fail():
    assert POLLS.search("const search = setInterval(attach, 50);")
    assert private_fields("chart._fullLayout.xaxis._length; point.__data__") == [
        "._fullLayout",
        "._length",
        ".__data__",
    ]
    lines = "\n".join(f"const number{at} = {at};" for at in range(MOST_ALIKE))
    assert alike(f"a\n{lines}\nb", f"c\n{lines}") != []
    assert alike(lines, "another") == []
