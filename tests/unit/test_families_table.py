"""README's table of families says what is tested and what is refused, each with its reason."""

import re

from benchmarks.families import END, README, START
from tests import tiny, tiny_refused


def rows() -> list[list[str]]:
    section = README.read_text(encoding="utf-8").split(START)[1].split(END)[0]
    found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line
    ]
    return [row for row in found if not set(row[0]) <= {"-"}]


def test_every_family_that_is_tested_has_a_row_whose_difference_is_within_its_tolerance():
    verified = {row[0]: row for row in rows() if len(row) == 5 and row[0] != "family"}
    assert set(verified) == set(tiny.TEXT_FAMILIES | tiny.TEXT_PARTS)
    for name, (_, _, _, difference, tolerance) in verified.items():
        assert float(difference) <= float(tolerance), name


def test_every_family_that_is_refused_has_a_row_with_the_reason_that_is_given():
    """That the reason is given is tested in tests/parity/test_families.py."""
    refused = {row[0]: row[1] for row in rows() if len(row) == 2 and row[0] != "refused"}
    assert set(refused) == set(tiny_refused.UNSUPPORTED_FAMILIES)
    for name, reason in refused.items():
        assert re.search(tiny_refused.UNSUPPORTED_FAMILIES[name].reason, reason), name


def test_the_numbers_of_families_are_those_of_the_rows():
    [said] = re.findall(r"(\d+) families verified, (\d+) refused\.", README.read_text(encoding="utf-8"))
    assert [int(one) for one in said] == [
        len(tiny.TEXT_FAMILIES | tiny.TEXT_PARTS),
        len(tiny_refused.UNSUPPORTED_FAMILIES),
    ]
