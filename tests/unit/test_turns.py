"""Runs take turns: so many at once, first come first served, and a run that waits for a process steps aside."""

import threading

import pytest

from tests.waiting import LONG, wait_until
from ui.runtime.turns import Line


def yield_point(ahead: int, seconds: float) -> None:
    pass


class Runner(threading.Thread):
    """A run: enters, stays until it is let go, leaves."""

    def __init__(self, line: Line, name: str, order: list[str]) -> None:
        super().__init__(name=name, daemon=True)
        self.line, self.order, self.go = line, order, threading.Event()
        self.start()

    def run(self) -> None:
        self.line.enter(yield_point)
        self.order.append(self.name)
        self.go.wait(LONG)
        self.line.leave()


def test_two_at_once_and_the_others_in_the_order_in_which_they_came():
    line, order, runners = Line(2), [], []
    for n, name in enumerate("abcde", start=1):
        runners.append(Runner(line, name, order))
        wait_until(lambda n=n: line.n_under_way + line.n_waiting == n)
    wait_until(lambda: len(order) == 2)
    assert (line.n_under_way, line.n_waiting) == (2, 3)
    for n, runner in enumerate(runners, start=3):
        runner.go.set()
        wait_until(lambda n=n: len(order) == min(n, 5))
    assert order == list("abcde")
    wait_until(lambda: line.n_under_way == 0)


def test_who_asks_for_something_newer_leaves_the_line():
    line = Line(1)
    line.enter(yield_point)
    told = []

    def newer(ahead: int, seconds: float) -> None:
        told.append(ahead)
        raise InterruptedError

    failed = []

    def wait() -> None:
        try:
            line.enter(newer)
        except InterruptedError:
            failed.append(True)

    other = threading.Thread(target=wait)
    other.start()
    other.join(LONG)
    assert (failed, told, line.n_waiting, line.n_under_way) == ([True], [0], 0, 1)
    line.leave()
    assert line.n_under_way == 0


def test_who_steps_aside_lets_the_next_go_and_comes_back_first():
    line, order = Line(1), []
    line.enter(yield_point)
    next_one = Runner(line, "next", order)
    wait_until(lambda: line.n_waiting == 1)
    last = None
    with line.stepped_aside(lambda: None):
        wait_until(lambda: order == ["next"])
        last = Runner(line, "last", order)
        wait_until(lambda: line.n_waiting == 1)
        threading.Timer(0.05, next_one.go.set).start()
    order.append("back")
    assert order == ["next", "back"]
    line.leave()
    wait_until(lambda: order == ["next", "back", "last"])
    last.go.set()


def test_without_a_turn_stepping_aside_does_nothing():
    line = Line(1)
    with line.stepped_aside(lambda: None):
        pass
    assert line.n_under_way == 0


def test_the_turn_is_not_taken_by_who_is_interrupted_on_the_way_back():
    line, order = Line(1), []
    line.enter(yield_point)

    def newer() -> None:
        raise InterruptedError

    runner = None
    with pytest.raises(InterruptedError), line.stepped_aside(newer):
        runner = Runner(line, "other", order)
        wait_until(lambda: order == ["other"])
    assert (line.n_under_way, line.n_waiting) == (1, 0)  # the other's
    runner.go.set()
