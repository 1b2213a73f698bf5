"""The table of docs/families.md says what is tested and what is refused, each with its reason."""

import re

import pytest
import transformers as tf

import attnviz
from benchmarks.families import END, PAGE, PROTEIN, SECOND_TEXT, START, TEXT
from tests import tiny, tiny_refused
from tests.findings import assert_none
from tests.own_tokenizers import PACKAGES, save_own


def rows() -> list[list[str]]:
    section = PAGE.read_text(encoding="utf-8").split(START)[1].split(END)[0]
    table = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line
    ]
    return [row for row in table if not set(row[0]) <= {"-"}]


def test_every_family_that_is_tested_has_a_row_whose_difference_is_within_its_tolerance():
    verified = {row[0]: row for row in rows() if len(row) == 5 and row[0] != "family"}
    assert set(verified) == set(tiny.TEXT_FAMILIES | tiny.TEXT_PARTS) - set(PACKAGES)
    for name, (_, _, _, difference, tolerance) in verified.items():
        assert float(difference) <= float(tolerance), name


def test_every_family_that_is_refused_has_a_row_with_the_reason_that_is_given():
    """That the reason is given is tested in tests/parity/test_families.py."""
    refused = {row[0]: row[1] for row in rows() if len(row) == 2 and row[0] != "refused"}
    assert set(refused) == set(tiny_refused.UNSUPPORTED_FAMILIES)
    for name, reason in refused.items():
        assert re.search(tiny_refused.UNSUPPORTED_FAMILIES[name].reason, reason), name


def test_the_numbers_of_families_are_those_of_the_rows():
    [counts] = re.findall(r"(\d+) families verified, (\d+) refused\.", PAGE.read_text(encoding="utf-8"))
    n_counted = len(tiny.TEXT_FAMILIES | tiny.TEXT_PARTS) - len(PACKAGES)
    assert [int(count) for count in counts] == [n_counted, len(tiny_refused.UNSUPPORTED_FAMILIES)]


def test_what_is_not_counted_is_named_with_the_package_that_it_needs():
    section = PAGE.read_text(encoding="utf-8").split(START)[1].split(END)[0]
    [sentence] = re.findall(r"^Not counted.*$", section, re.MULTILINE)
    assert_none(name for name, package in PACKAGES.items() if f"{name} ({package})" not in sentence)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(set(tiny.TEXT_FAMILIES) - set(PACKAGES)))
def test_a_family_is_verified_with_the_files_that_its_own_tokenizer_class_writes(name, tmp_path):
    family = tiny.TEXT_FAMILIES[name]
    tiny.build(family).save_pretrained(tmp_path)
    save_own(family, tmp_path)
    own = tf.AutoTokenizer.from_pretrained(tmp_path)
    model = attnviz.load_model(str(tmp_path))
    text = PROTEIN if name == "esm" else TEXT
    trace = model.trace(text, SECOND_TEXT if family.is_encoder_decoder else None, cut=True)
    assert trace.tokens.ids.tolist() == own(text, truncation=True, max_length=model.max_tokens)["input_ids"]
    assert not trace.tokens.is_unknown.any()
    assert attnviz.verify(model, trace).passed
