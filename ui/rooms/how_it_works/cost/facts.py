"""Facts for the findings of the page Cost, before they are put into words."""

from dataclasses import dataclass

from attnviz.cost.measurement import Measurement, Series


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestBoth:
    """The longest text for which both the whole matrix and streaming were measured."""

    n_token: int
    whole: Measurement
    streaming: Measurement
    difference: float
    """Largest difference between the outputs of any two ways measured there."""


def longest_both(series: Series) -> LongestBoth:
    """The two measurements; `attnviz.cost.measurement.measure` makes each at least once."""
    of_method = {
        (measurement.method, measurement.n_token): measurement for measurement in series.measurements
    }
    n_token = max(
        number for method, number in of_method if method == "whole" and ("streaming", number) in of_method
    )
    return LongestBoth(
        n_token=n_token,
        whole=of_method["whole", n_token],
        streaming=of_method["streaming", n_token],
        difference=series.differences[n_token],
    )
