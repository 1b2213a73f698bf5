"""Many visitors at once, over the websocket: how long a change takes for each of them, and what the server's memory does.

``python -m benchmarks.load`` starts a server of its own; ``--server http://127.0.0.1:8501`` asks one that runs on this
machine; ``--processes 1,2,4`` starts as many processes behind nginx, in turn, as `make serve` does. Each visitor has a sentence of their own and changes something every five seconds: the head, the query, the
layer, and now and then the sentence. A change is finished when the server has sent everything that follows from it.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.sentences import SUBJECTS
from tests.browser.conftest import running_server
from tests.served import served
from tests.visitor import Visitor, visit
from ui.page.navigation import PAGES

PAUSE = 5.0
"""Seconds from one change of a visitor to the next."""
PLACES = ["door", "gate", "book", "window", "river"]


@dataclass(slots=True)
class Times:
    """Seconds that were measured, and what went wrong."""

    openings: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    pictures: list[float] = field(default_factory=list)
    """From a change to the matrix that follows from it, which comes before the rest."""
    wrong: list[str] = field(default_factory=list)
    n_byte: int = 0


def percentile(seconds: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))] if seconds else float("nan")


def sentence(number: int, turn: int) -> str:
    """A sentence that no other visitor has, as long as the first screen's."""
    subject, place = SUBJECTS[number % len(SUBJECTS)], PLACES[(number // len(SUBJECTS)) % len(PLACES)]
    return f"The {subject} saw the {place} number {number} when {turn} of them opened."


async def change(visitor: Visitor, number: int, turn: int) -> None:
    """One change; every sixth is another sentence."""
    match turn % 6:
        case 5:
            await visitor.type("field_text", sentence(number, turn))
        case 2:
            await visitor.trigger("token_strip", "pick", 3 + turn % 4)
        case 4:
            await visitor.set_number("field_layer", (turn + number) % 6)
        case _:
            await visitor.click("head_next")


async def person(server: str, number: int, seconds: float, times: Times) -> None:
    """One visitor, for so many seconds."""
    end = time.perf_counter() + seconds
    start = time.perf_counter()
    try:
        async with visit(server, "", text=sentence(number, 0), layer=number % 6, head=number % 12) as visitor:
            await visitor.settle()
            times.openings.append(time.perf_counter() - start)
            turn = 0
            due = time.perf_counter() + PAUSE * (number % 50) / 50
            while due < end:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                start, n_run = time.perf_counter(), visitor.n_run
                await change(visitor, number, turn)
                await visitor.until(lambda n=n_run: visitor.n_run > n)
                await visitor.settle()
                times.changes.append(visitor.last_ended - start)
                times.pictures.append(visitor.drawn["matrix"] - start)
                turn += 1
                due = max(due + PAUSE, time.perf_counter())
            times.wrong.extend(visitor.exceptions)
            times.n_byte += visitor.n_byte
    except Exception as error:  # noqa: BLE001 - counted, whatever it is
        times.wrong.append(f"{type(error).__name__}: {error}")


async def reader(server: str, number: int, times: Times) -> None:
    """One visitor who goes through all pages, each a moment after the last is there."""
    for page in PAGES:
        start = time.perf_counter()
        try:
            async with visit(server, page.address, text=sentence(number, 0)) as visitor:
                await visitor.settle(300)
                times.openings.append(time.perf_counter() - start)
                times.wrong.extend(f"{page.name}: {one}" for one in visitor.exceptions)
                times.n_byte += visitor.n_byte
        except Exception as error:  # noqa: BLE001 - counted, whatever it is
            times.wrong.append(f"{page.name}: {type(error).__name__}: {error}")
        await asyncio.sleep(1)


def processes(port: int) -> list[Path]:
    """The folders in /proc of the processes that listen to a port, and of their children."""
    children: dict[int, list[int]] = {}
    roots = []
    for folder in Path("/proc").iterdir():
        try:
            stat = (folder / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(stat[1]), []).append(int(folder.name))
            if str(port) in (folder / "cmdline").read_text().split("\0"):
                roots.append(int(folder.name))
        except (OSError, IndexError, ValueError):
            continue
    found: list[int] = []
    while roots:
        one = roots.pop()
        if one not in found:
            found.append(one)
            roots.extend(children.get(one, ()))
    return [Path(f"/proc/{one}") for one in found]


def megabytes(port: int) -> float:
    """Memory that the server's processes use alone, with its share of what they have in common."""
    total = 0
    for one in processes(port):
        try:
            text = (one / "smaps_rollup").read_text()
        except OSError:
            continue
        total += int(text.partition("\nPss:")[2].split()[0])
    return total / 1024


async def _watch_memory(port: int, peaks: list[float]) -> None:
    while True:
        peaks.append(await asyncio.to_thread(megabytes, port))
        await asyncio.sleep(1)


async def measure(server: str, n: int, seconds: float) -> tuple[Times, float]:
    """So many visitors at once; what they measured, and the most memory."""
    times, peaks = Times(), [0.0]
    watching = asyncio.create_task(_watch_memory(urlsplit(server).port or 80, peaks))

    async def late(number: int) -> None:
        await asyncio.sleep(min(15, n / 5) * number / n)  # a class opens a link within fifteen seconds
        await person(server, number, seconds, times)

    await asyncio.gather(*(late(number) for number in range(n)))
    watching.cancel()
    return times, max(peaks)


@contextmanager
def _server(address: str, n: int) -> Iterator[str]:
    """The server of this address or, where that is empty, one that is started: one process, or several behind nginx."""
    if address:
        yield address
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.txt"
        if n == 0:
            with running_server(log) as started:
                yield started
        else:
            with served(log, n) as (started, _):
                yield started


def _round(server: str, n: int, seconds: float) -> tuple[Times, float]:
    """So many people, as one row of the table; what they measured, and the 95th percentile of a change."""
    times, most = asyncio.run(measure(server, n, seconds))
    late = percentile(times.changes, 0.95)
    print(
        f"{n:6}  {len(times.changes):7}  {len(times.changes) / seconds:5.1f}  "
        f"{statistics.median(times.changes or [float('nan')]):8.2f}  {late:5.2f}"
        f"   {percentile(times.pictures, 0.5):10.2f}  {percentile(times.pictures, 0.95):4.2f}"
        f"   {percentile(times.openings, 0.5):11.2f}  {percentile(times.openings, 0.95):4.2f}"
        f"   {len(times.wrong):5}  {times.n_byte / 1e6:14.1f}  {most:12.0f}",
        flush=True,
    )
    for one in sorted(set(times.wrong))[:10]:
        print(f"        {times.wrong.count(one)} x {one[:200]}")
    return times, late


def main() -> int:
    """Prints the table; exit code 1 where anything went wrong or the 95th percentile of 50 people is over a second."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--server", default="", help="address on this machine; a server is started if empty")
    parser.add_argument(
        "--processes", default="0", help="how many behind nginx, in turn; 0 for one without nginx"
    )
    parser.add_argument("--people", default="1,10,50", help="how many at once, in turn")
    parser.add_argument("--seconds", type=float, default=60, help="how long each round takes")
    parser.add_argument("--no-pages", action="store_true", help="leave out the round through all pages")
    given = parser.parse_args()
    failed = False
    for n_process in map(int, given.processes.split(",")):
        with _server(given.server, n_process) as server:
            if urlsplit(server).hostname not in ("127.0.0.1", "localhost", "::1"):
                parser.error("only a server on this machine is loaded")
            asyncio.run(measure(server, max(1, n_process), 3))  # the first visit to a process loads the model
            if n_process:
                print(f"{n_process} processes behind nginx, on {len(os.sched_getaffinity(0))} cores")
            print(
                "people  changes  per s  median s  95% s   matrix 50%  95%    opening 50%  95%   wrong  MB on the wire  "
                "MB of memory"
            )
            for n in map(int, given.people.split(",")):
                times, late = _round(server, n, given.seconds)
                failed |= bool(times.wrong) or (n == 50 and n_process == 0 and late > 1)
            if not given.no_pages:
                failed |= _pages(server)
    return int(failed)


def _pages(server: str) -> bool:
    """Five people through all pages; whether anything went wrong."""
    times = Times()
    asyncio.run(_all_pages(server, times))
    print(
        f"all pages, 5 readers: {len(times.openings)} openings, median "
        f"{percentile(times.openings, 0.5):.2f} s, 95% {percentile(times.openings, 0.95):.2f} s, "
        f"{len(times.wrong)} wrong, {megabytes(urlsplit(server).port or 80):.0f} MB afterwards"
    )
    for one in sorted(set(times.wrong))[:10]:
        print(f"        {one[:200]}")
    return bool(times.wrong)


async def _all_pages(server: str, times: Times) -> None:
    await asyncio.gather(*(reader(server, number, times) for number in range(5)))


if __name__ == "__main__":
    sys.exit(main())
