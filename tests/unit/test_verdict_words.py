"""What the verdict says in words, of reports that are written down here."""

from tests.small_records import check, report
from ui.shell.verdict import difference, headline


def test_all_passed_with_the_largest_difference_of_the_weights():
    assert (
        headline(report(weights=2e-6))
        == ":green[Checked:] 2 comparisons, weights within 2.0\u00a0×\u00a010⁻⁶"
    )


def test_weights_that_differ_in_no_bit_are_said_to_be_identical():
    assert headline(report(weights=0.0)) == ":green[Checked:] 2 comparisons, weights bit-identical"


def test_what_failed_first_by_how_much_and_where():
    assert headline(report(weights=0.3, outputs=0.5)) == (
        ":red[Does not match the model:] attention weights differ by 0.3, tolerance 10⁻⁵, in layer 0, head 1"
    )


def test_a_check_of_one_number_has_no_place():
    assert difference(check([[1.8]])) == "differ by 1.8, tolerance 10⁻⁵"


def test_a_check_of_layers_names_no_head():
    assert difference(check([[0.0], [1.8]])) == "differ by 1.8, tolerance 10⁻⁵, in layer 1"
