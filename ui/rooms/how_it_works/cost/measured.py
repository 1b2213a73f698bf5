"""What attention costs on this machine: measured on request, in a separate process, and drawn over the expected cost."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from attnviz.cost.counting import TILE, Layer
from attnviz.cost.measurement import (
    METHODS,
    MOST_BYTES,
    SECONDS,
    SHARE_OF_MEMORY,
    Measurement,
    Method,
    Series,
    Stop,
    measure,
)
from attnviz.figures.cost import WAY_NAMES, Growth, Unit, draw_growth, quantity_text
from attnviz.figures.numbers import percent_text
from attnviz.maths.blocks import QUERY_BLOCK
from ui.choice import state
from ui.runtime.jobs import TELLS_PROGRESS, job
from ui.session import of_session
from ui.shell import waiting
from ui.shell.chart import chart
from ui.shell.table import whole_rows
from ui.shell.view import View
from ui.words.findings import power


@dataclass(slots=True)
class Asked:
    """The head whose cost a visitor has requested."""

    size: tuple[int, int] | None = None
    """Dimensions of a query, and of a value."""


def measured_cost(view: View, layer: Layer) -> None:
    """Time and memory of attnviz's own functions, once requested."""
    st.subheader("Measured on this machine")
    st.markdown(
        f"attnviz computes one head of this size ({layer.d_head} numbers a query) in three ways: the whole matrix at "
        f"once; {QUERY_BLOCK} rows at a time, as the models run here; and streaming, {TILE} keys at a time. The text, "
        f"of random vectors, doubles in length each time. The measurement takes one core, at most {SECONDS:.0f} seconds and at most "
        f"{percent_text(SHARE_OF_MEMORY)} of the free memory or {quantity_text(MOST_BYTES, 'bytes')}."
    )
    size = (layer.d_head, layer.d_value)
    if of_session(Asked).size != size:
        st.button(
            "Measure",
            icon=":material/timer:",
            key="cost_measure",
            on_click=_ask,
            args=(size,),
            help="Runs attnviz's attention for longer and longer texts and draws its time and memory.",
        )
        return
    work = job("cost", size, lambda: [(measure, size, {"seconds": SECONDS, **TELLS_PROGRESS})])

    def result() -> None:
        if work.finished:
            _results(view, replace(layer, n_head=1), work.results[0])

    waiting.show_jobs(
        [work],
        lambda: "Measuring longer and longer texts.",
        lambda: "The measurement was cancelled.",
        resume="Measure",
        key="cost_act",
        result=result,
    )


def _ask(size: tuple[int, int]) -> None:
    of_session(Asked).size = size
    state.hold()


def _results(view: View, head: Layer, series: Series) -> None:
    """Measured points over expected lines, the numbers as a table, and why each way stopped where it did."""
    st.markdown(f"**{finding(longest_both(series))}**")
    both: tuple[Unit, ...] = ("seconds", "bytes")
    for column, what in zip(st.columns(2, gap="medium"), both, strict=True):
        with column:
            chart(
                draw_growth(
                    [*_lines(series, head, what), *_points(series, what)],
                    what={"seconds": "time of one head", "bytes": "memory of one head"}[what],
                    unit=what,
                    theme=view.theme,
                ),
                key=f"cost_{what}",
                alt=f"Measured {what} of one head over the number of tokens; the table below has the numbers",
            )
            st.caption(
                "Points are measured: the shortest of up to three runs. Lines grow with n², as the multiplications do, "
                "through the last point of each way. What stays in fast memory is also computed faster, which is "
                "FlashAttention's point on a graphics card; here every tile adds the time of a Python loop."
                if what == "seconds"
                else "Points are measured: the most that torch's allocator held at a time beside queries, keys and "
                "values. Lines are the cells alone, as counted above; streaming and rows also hold a few copies of the cells at "
                "hand for a moment."
            )
    _table(series)
    st.caption(" ".join(_stopped(stop) for stop in series.stops))


def _of_method(series: Series, method: Method) -> dict[int, tuple[float, int]]:
    """Seconds and bytes by number of tokens."""
    return {
        measurement.n_token: (measurement.seconds, measurement.n_bytes)
        for measurement in series.measurements
        if measurement.method == method
    }


def _points(series: Series, what: str) -> list[Growth]:
    """The measured costs."""
    return [
        Growth(
            way=method,
            n_token=np.array(list(points)),
            cost=np.array([point[what == "bytes"] for point in points.values()], dtype=float),
            measured=True,
        )
        for method in METHODS
        if (points := _of_method(series, method))
    ]


def _lines(series: Series, head: Layer, what: str) -> list[Growth]:
    """The expected costs: for bytes those of the cells, for seconds n² through the last point."""
    lines = []
    for curve in _points(series, what):
        if what == "seconds":
            cost = curve.cost[-1] * (curve.n_token / curve.n_token[-1]) ** 2
        elif curve.way == "rows":
            continue  # holds as many cells at a time as streaming
        else:
            cost = np.array(
                [head.cost("bytes", curve.way, n, n) for n in curve.n_token.tolist()], dtype=float
            )
        lines.append(replace(curve, cost=cost, measured=False))
    return lines


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


def finding(longest: LongestBoth) -> str:
    """Cost of the whole matrix and of streaming, for the longest text measured with both."""
    whole, streaming = (
        f"{quantity_text(point.seconds, 'seconds')} and {quantity_text(point.n_bytes, 'bytes')}"
        for point in (longest.whole, longest.streaming)
    )
    return (
        f"At {longest.n_token:,} tokens the whole matrix takes {whole}, streaming {streaming}; no two outputs of the ways measured there "
        f"differ by more than {power(longest.difference)}."
    )


def _table(series: Series) -> None:
    """All measurements, a row for each number of tokens."""
    by_method = {method: _of_method(series, method) for method in METHODS}
    sizes = sorted({measurement.n_token for measurement in series.measurements})

    def cells(method: Method, at: int, unit: Unit) -> list[str]:
        return [
            quantity_text(by_method[method][n][at], unit) if n in by_method[method] else "–" for n in sizes
        ]

    st.dataframe(
        {
            "tokens": [f"{n:,}" for n in sizes],
            **{f"time, {method}": cells(method, 0, "seconds") for method in METHODS},
            **{f"memory, {method}": cells(method, 1, "bytes") for method in METHODS},
            "difference": [power(series.differences[n]) if n in series.differences else "–" for n in sizes],
        },
        hide_index=True,
        height=whole_rows(len(sizes)),
        key="cost_table",
        alt="Time and memory of each way, and the largest difference between any two outputs",
    )


def _stopped(stop: Stop) -> str:
    """Why a way was not measured for more tokens."""
    unit: Unit = "bytes" if stop.reason == "memory" else "seconds"
    expected, granted = (quantity_text(max(0.0, number), unit) for number in (stop.expected, stop.granted))
    ended = f"{WAY_NAMES[stop.method]} stopped before {stop.n_token:,} tokens"
    if stop.reason == "memory":
        return f"{ended}: they would take {expected} of memory, and {granted} may be taken."
    return f"{ended}: measuring them would take about {expected}, and {granted} were left."
