"""A verification report: which checks hold, and which place of them is the worst."""

import math

import numpy as np
import pytest

from attnviz.errors import ShapeError
from attnviz.records import Check, VerificationReport
from tests.small_records import PROVENANCE, check, report


class TestReport:
    @pytest.mark.parametrize(
        ("difference", "passed"),
        [(0.0, True), (1e-5, True), (1.1e-5, False), (math.inf, False), (math.nan, False)],
    )
    def test_a_check_holds_up_to_its_tolerance(self, difference, passed):
        assert check([[0.0, difference]]).passed is passed
        assert report(weights=difference).passed is passed

    def test_every_place_has_a_tolerance_of_its_own(self):
        assert check([[1e-3, 1e-6]], [[1e-2, 1e-5]]).passed
        assert not check([[1e-3, 1e-4]], [[1e-2, 1e-5]]).passed

    def test_the_worst_place_is_the_largest_beside_its_tolerance(self):
        checked = check([[1e-3, 1e-6], [2e-6, 0.0]], [[1e-2, 1e-6], [1e-6, 0.0]])
        assert checked.worst == ("encoder", 1, 0)
        assert checked.difference == pytest.approx(2e-6)
        assert checked.tolerance == pytest.approx(1e-6)

    def test_the_worst_place_of_a_check_that_passed_is_nearest_to_its_tolerance(self):
        """Shares of the tolerances: 1/5, 1/2, 3/4 and 1/10."""
        checked = check([[2e-6, 1e-6], [3e-6, 1e-6]], [[1e-5, 2e-6], [4e-6, 1e-5]])
        assert checked.passed
        assert checked.worst == ("encoder", 1, 0)

    def test_what_is_not_a_number_is_worse_than_anything(self):
        checked = check([[1.0, math.nan]])
        assert checked.worst == ("encoder", 0, 1)
        assert math.isnan(checked.difference)

    def test_where_nothing_may_differ_the_smallest_difference_is_the_worst(self):
        checked = check([[1e-3, 1.0]], [[1.0, 0.0]])
        assert checked.worst == ("encoder", 0, 1)
        assert not checked.passed

    def test_of_a_model_with_several_kinds_of_attention(self):
        """A head that a layer does not have is nowhere the worst."""

        def of(encoder, cross):
            return Check(
                name="attention weights",
                differences={"encoder": np.array(encoder), "cross": np.array(cross)},
                tolerances={"encoder": np.array([[1e-5, 1e-5]]), "cross": np.array([[1e-5, np.nan]])},
                unit="weight",
                reason="float32",
            )

        checked = of([[2e-6, 1e-6]], [[3e-6, np.nan]])
        assert checked.passed
        assert checked.worst == ("cross", 0, 0)
        assert VerificationReport(checks=(checked,), provenance=PROVENANCE).max_abs_error == pytest.approx(
            3e-6
        )
        for wrong in (of([[0.0, 1.0]], [[0.0, np.nan]]), of([[0.0, 0.0]], [[1.0, np.nan]])):
            assert not wrong.passed
            assert wrong.difference == 1
        assert of([[0.0, 0.0]], [[0.0, np.nan]]).worst == ("encoder", 0, 0)

    def test_a_head_that_a_layer_does_not_have_is_nowhere_the_worst(self):
        assert check([[math.nan, 0.0]], [[math.nan, 1.0]]).worst == ("encoder", 0, 1)

    def test_every_layer_has_something_to_compare(self):
        for tolerances in ([[1e-5, math.nan], [math.nan, math.nan]], [[math.nan, math.nan]] * 2):
            with pytest.raises(ShapeError, match="a layer of encoder attention without a tolerance"):
                check(np.where(np.isnan(tolerances), np.nan, 0.0), tolerances)

    def test_one_failed_check_fails_the_whole(self):
        assert report().passed
        assert report().failed == ()
        wrong = report(outputs=1.0)
        assert not wrong.passed
        assert [failing.name for failing in wrong.failed] == ["output after W_O"]

    def test_summary(self):
        summary = report(weights=0.5)
        assert summary.max_abs_error == 0.5
        assert summary.weight_error.tolist() == [[0.0, 0.5]]
        assert summary.check("output after W_O") is summary.checks[1]
        with pytest.raises(KeyError):
            summary.check("another")

    @pytest.mark.usefixtures("types_unchecked")
    def test_differences_and_tolerances_have_the_same_axes(self):
        with pytest.raises(ShapeError, match="attention weights: differences"):
            Check(
                name="attention weights",
                differences={"encoder": np.zeros((2, 3))},
                tolerances={"encoder": np.zeros((3, 2))},
                unit="weight",
                reason="float32",
            )
