"""Many visitors at once, over the websocket: how long a change takes for each of them, and how much memory the server uses.

``python -m benchmarks.load`` starts a server of its own; ``--server http://127.0.0.1:8501`` uses one that runs on this
machine; ``--processes 1,2,4`` starts as many processes behind nginx, in turn, as `make serve` does. Each visitor has a
sentence of their own and changes something every five seconds: seven times of ten the head, which the viewer shows by itself
and tells the server once the visitor rests, else the sentence. A change is finished when the server has sent everything that
follows from it.

``--long 8192`` repeats each round beside one more visitor, who has a text of so many tokens.

First come the budgets, as ratios: the processor time of a change of head, told by the viewer and by a link that is opened, and
the number of changes per second without pauses, against those of a Streamlit page whose two figures are ready
(`benchmarks.ready_made`), in turns in the same run.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from urllib.parse import urlsplit

import attnviz
from attnviz.figures import draw_heatmap, draw_projection
from attnviz.model.catalogue import EMBEDDED, SMOLLM2
from benchmarks.measurement import Measurement
from benchmarks.sentences import SUBJECTS
from tests.browser.conftest import running_server
from tests.served import served
from tests.visitor import LONG, Visitor, visit
from ui.choice.presets import long_preset
from ui.rooms import PAGES

PAUSE = 5.0
"""Seconds from one change of a visitor to the next."""
PLACES = ["door", "gate", "book", "window", "river"]
BESIDE = 10
"""Number of visitors of attnviz, and of the ready-made page, where the two are compared."""
KINDS = ("head", "head", "sentence", "head", "head", "head", "sentence", "head", "head", "sentence")
"""What a visitor changes, in turn."""
VIEWER, SETTLED = "viewer", "settled"
"""Key of the component that shows the stage, and the name under which it tells where a visitor rests; see ui/components/stage."""
CHARACTERS_PER_TOKEN = 3.9
"""Of the novel's text, in tokens of SmolLM2."""
READY_S, LATE_S = 0.025, 0.2
"""Where a change of the ready-made page takes so many seconds, 19 of 20 changes of fifty visitors may take so many."""


@dataclass(slots=True)
class Times:
    """Seconds that were measured, and what went wrong."""

    openings: list[float] = field(default_factory=list)
    changes: list[float] = field(default_factory=list)
    pictures: list[float] = field(default_factory=list)
    """From another sentence to the document that the viewer draws, which comes before the rest."""
    wrong: list[str] = field(default_factory=list)
    n_byte: int = 0


def percentile(seconds: Sequence[float], share: float) -> float:
    """The value that this share of the numbers does not exceed; NaN without numbers."""
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))] if seconds else float("nan")


def sentence(number: int, turn: int, n_word: int = 12) -> str:
    """A sentence of at least eight words that no other visitor has; the first screen's has nearly twelve."""
    others = (SUBJECTS[(number + step) % len(SUBJECTS)] for step in count(1))
    clauses = (word for subject in others for word in f"and the {subject} heard of it".split())
    subject, place = SUBJECTS[number % len(SUBJECTS)], PLACES[(number // len(SUBJECTS)) % len(PLACES)]
    words = f"The {subject} number {number} opened {place} {turn}".split()
    return " ".join([*words, *islice(clauses, n_word - len(words))]) + "."


def length(number: int, turn: int) -> int:
    """Words of a sentence that somebody types: 8 to 40, each as often."""
    return 8 + (7 * number + 13 * turn) % 33


def next_head(visitor: Visitor) -> dict[str, int]:
    """The head after the one that the stage shows, in layers of 12."""
    shown = visitor.told(VIEWER)["selection"]
    layer, head = divmod(12 * shown["layer"] + shown["head"] + 1, 12)
    return {"layer": layer % 6, "head": head}


async def rest(visitor: Visitor, number: int = 0, turn: int = 0) -> None:
    """The next head, as a browser does it: the address follows at once, the server is told once the visitor rests."""
    there, shown = next_head(visitor), visitor.told(VIEWER)
    visitor.params |= {name: str(value) for name, value in there.items()}
    await visitor.trigger(
        VIEWER, SETTLED, {"n": shown["n"] + 1, "text": shown["text"], "selection": shown["selection"] | there}
    )


async def open_link(visitor: Visitor, number: int = 0, turn: int = 0) -> None:
    """The next head by its address: a whole run of the page."""
    visitor.params |= {name: str(value) for name, value in next_head(visitor).items()}
    await visitor.send()


async def change(visitor: Visitor, number: int, turn: int) -> None:
    """One change of those that `KINDS` names."""
    if KINDS[turn % len(KINDS)] == "sentence":
        await visitor.type("field_text", sentence(number, turn, length(number, turn)))
    else:
        await rest(visitor)


async def person(server: str, number: int, seconds: float, times: Times) -> None:
    """One visitor, for this many seconds."""
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
                if KINDS[turn % len(KINDS)] == "sentence":
                    times.pictures.append(visitor.drawn["stage_data"] - start)
                turn += 1
                due = max(due + PAUSE, time.perf_counter())
            times.wrong.extend(visitor.exceptions)
            times.n_byte += visitor.n_byte
    except Exception as error:  # noqa: BLE001 - counted, whatever it is
        times.wrong.append(f"{type(error).__name__}: {error}")


def long_text(n_token: int) -> str:
    """A text of about as many tokens of SmolLM2, which no visitor before has read."""
    novel = long_preset().text
    return f"{time.time():.0f} {(novel + ' ') * (1 + 4 * n_token // len(novel))}"[
        : int(CHARACTERS_PER_TOKEN * n_token)
    ]


async def long_reader(server: str, n_token: int, there: list[float], ready: asyncio.Event) -> None:
    """One visitor with a long text, who stays; adds the seconds until the first layer, and until all layers, are on screen."""
    start = time.perf_counter()
    async with visit(server, "", model=SMOLLM2, text=long_text(n_token), layer=0, head=0) as visitor:
        await visitor.until(lambda: "read_long" in visitor.widgets, LONG)
        ready.set()
        await visitor.until(lambda: "stage_data" in visitor.drawn, LONG)
        there.append(time.perf_counter() - start)
        await visitor.until(
            lambda: "check_long" in visitor.widgets, LONG
        )  # all is read; the numbers are compared
        there.append(time.perf_counter() - start)
        await visitor.until(lambda: False, LONG)


async def reader(server: str, number: int, times: Times) -> None:
    """One visitor who goes through all pages, each a moment after the previous one is drawn."""
    for page in PAGES:
        start = time.perf_counter()
        try:
            async with visit(server, page.address, text=sentence(number, 0)) as visitor:
                await visitor.settle(300)
                times.openings.append(time.perf_counter() - start)
                times.wrong.extend(f"{page.name}: {exception}" for exception in visitor.exceptions)
                times.n_byte += visitor.n_byte
        except Exception as error:  # noqa: BLE001 - counted, whatever it is
            times.wrong.append(f"{page.name}: {type(error).__name__}: {error}")
        await asyncio.sleep(1)


async def other_figures(visitor: Visitor, number: int, turn: int) -> None:
    """One change of the ready-made page: the figures of another sentence."""
    await visitor.type("text", ready_sentence((number + turn + 1) % BESIDE))


def ready_sentence(number: int) -> str:
    """A sentence whose figures are ready; they are as long as the visitors'."""
    return sentence(number, 0, length(number, number))


@dataclass(slots=True)
class Cost:
    """What changes have cost a server, once all visitors are there."""

    n: int = 0
    seconds: float = 0.0
    """Seconds from the first change to the last."""
    server: float = 0.0
    """Processor seconds of the process that draws pages."""
    workers: float = 0.0
    """Processor seconds of the processes that lay out maps and verify."""
    n_byte: int = 0
    """Bytes sent to the browser."""
    n_message: int = 0
    """Messages sent to the browser."""


Change = Callable[[Visitor, int, int], Awaitable[None]]


async def cost(
    server: str, do: Change, n: int, seconds: float, pause: float, *, filled: str = "all", turn: int = 0
) -> Cost:
    """What the changes of ``n`` visitors cost; all visitors are there before the first change is counted.

    Args:
        filled: what fills the stage.
        turn: of the first change; with another one, sentences are others, so that nothing of them is kept from before.
    """
    costs, here, go, begun = Cost(), asyncio.Barrier(n + 1), asyncio.Event(), 0.0
    port = urlsplit(server).port or 80

    async def one_visitor(number: int) -> None:
        link = {"text": sentence(number, turn), "layer": number % 6, "head": number % 12, "filled": filled}
        async with visit(server, "", **link) as visitor:
            await visitor.settle()
            await here.wait()
            await go.wait()
            due, done = begun + pause * number / n, 0
            while due < begun + seconds:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                n_run, n_byte, n_message = visitor.n_run, visitor.n_byte, visitor.n_message
                await do(visitor, number, turn + done)
                await visitor.until(lambda n=n_run: visitor.n_run > n)
                await visitor.settle()
                costs.n += 1
                costs.n_byte += visitor.n_byte - n_byte
                costs.n_message += visitor.n_message - n_message
                costs.seconds = time.perf_counter() - begun
                done += 1
                due = max(due + pause, time.perf_counter())
            if visitor.exceptions:
                raise AssertionError(visitor.exceptions[0])

    async def account() -> tuple[float, float]:
        nonlocal begun
        await here.wait()
        before = await _at_rest(port)
        begun = time.perf_counter()
        go.set()
        return before

    before, *_ = await asyncio.gather(account(), *(one_visitor(number) for number in range(n)))
    after = processor_seconds(port)
    costs.server, costs.workers = (end - start for end, start in zip(after, before, strict=True))
    return costs


async def _at_rest(port: int) -> tuple[float, float]:
    """Processor seconds of a server once its processes use none: after their start they load models and compile."""
    spent, n_quiet = processor_seconds(port), 0
    while n_quiet < 3:  # a start pauses now and then
        await asyncio.sleep(2)
        before, spent = spent, processor_seconds(port)
        n_quiet = n_quiet + 1 if sum(spent) - sum(before) < 0.1 else 0
    return spent


def beside(app: str, ready: str, seconds: float) -> tuple[list[Measurement], float]:
    """The budgets of a change against the ready-made page, in turns; and the seconds of its change where it never rests."""
    rows: dict[str, tuple[str, Change, float, str]] = {
        "ready": (ready, other_figures, PAUSE, ""),
        "without map": (app, rest, PAUSE, "matrix"),
        "with map": (app, rest, PAUSE, "all"),
        "whole run": (app, open_link, PAUSE, "all"),
        "ready without pauses": (ready, other_figures, 0.0, ""),
        "without pauses": (app, change, 0.0, "all"),
    }
    costs: dict[str, list[Cost]] = defaultdict(list)
    for number, (name, (server, do, pause, filled)) in enumerate([*rows.items()] * 2):
        turn = 1000 * (1 + number)  # a multiple of the number of `KINDS`
        costs[name].append(
            asyncio.run(cost(server, do, BESIDE, seconds / 2, pause, filled=filled, turn=turn))
        )

    def of(name: str, *parts: str) -> float:
        """Mean of a change."""
        return float(sum(getattr(cost, part) for cost in costs[name] for part in parts)) / max(
            1, sum(cost.n for cost in costs[name])
        )

    theirs = of("ready", "server")
    processor = [
        Measurement(
            what=f"processor time of a change of head{how} / of the ready-made page's",
            value=of(name, "server", "workers") / theirs,
            budget=budget,
            detail=f"{1000 * of(name, 'server'):.0f} ms and {1000 * of(name, 'workers'):.0f} of worker processes, which lay out "
            f"maps, against {1000 * theirs:.0f}",
        )
        for name, how, budget in (
            ("without map", " told at rest, no map in sight", 0.5),
            ("with map", " told at rest", 1.2),
            ("whole run", " by a link that is opened, a whole run", float("inf")),
        )
    ]
    quickest, quick = (1 / of(name, "seconds") for name in ("ready without pauses", "without pauses"))
    return [
        *processor,
        Measurement(
            what="ready-made page's changes per second at saturation / ours, 3 of 10 being sentences of 8 to 40 words",
            value=quickest / quick,
            budget=1 / 0.7,
            detail=f"{quick:.1f} against {quickest:.1f}",
        ),
        Measurement(
            what="KB sent for a change of head beside the map",
            value=of("without map", "n_byte") / 1000,
            budget=10,
            detail=f"{of('without map', 'n_message'):.1f} messages; with the map {of('with map', 'n_byte') / 1000:.1f} KB in "
            f"{of('with map', 'n_message'):.1f}; a whole run {of('whole run', 'n_byte') / 1000:.1f} in "
            f"{of('whole run', 'n_message'):.1f}",
        ),
    ], 1 / quickest


@contextmanager
def _ready_made() -> Iterator[str]:
    """A server of the ready-made page, with the figures of the visitors' sentences."""
    with tempfile.TemporaryDirectory() as folder:
        model = attnviz.load_model(EMBEDDED)
        traces = {text: model.trace(text) for text in map(ready_sentence, range(BESIDE))}
        figures = {
            text: [
                draw_heatmap(trace, 3, 1).to_json(),
                draw_projection(attnviz.project(trace, 3, 1), picked=(7, 5)).to_json(),
            ]
            for text, trace in traces.items()
        }
        ready = Path(folder) / "ready.json"
        ready.write_text(json.dumps(figures), encoding="utf-8")
        log = Path(folder) / "log.txt"
        with running_server(log, "benchmarks/ready_made.py", ATTNVIZ_READY_MADE=str(ready)) as address:
            yield address


def processor_seconds(port: int) -> tuple[float, float]:
    """Processor seconds so far of a server's own process, and of those that it has started."""
    seconds = {True: 0.0, False: 0.0}
    for folder in processes(port):
        with suppress(OSError):  # it has ended
            user, system = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
            is_server = "streamlit" in (folder / "cmdline").read_text().split("\0")
            seconds[is_server] += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return seconds[True], seconds[False]


def processes(port: int) -> list[Path]:
    """The folders in /proc of the processes that have a port among their arguments, and of their descendants."""
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
    pids: list[int] = []
    while roots:
        pid = roots.pop()
        if pid not in pids:
            pids.append(pid)
            roots.extend(children.get(pid, ()))
    return [Path(f"/proc/{pid}") for pid in pids]


def megabytes(port: int) -> float:
    """Memory of the server's processes: what each uses alone, with its share of what they have in common."""
    total = 0
    for process in processes(port):
        try:
            text = (process / "smaps_rollup").read_text()
        except OSError:
            continue
        total += int(text.partition("\nPss:")[2].split()[0])
    return total / 1024


async def _watch_memory(port: int, peaks: list[float]) -> None:
    while True:
        peaks.append(await asyncio.to_thread(megabytes, port))
        await asyncio.sleep(1)


async def measure(
    server: str, n: int, seconds: float, n_token: int = 0, there: list[float] | None = None
) -> tuple[Times, float]:
    """What ``n`` visitors at once measured, and the peak memory.

    Args:
        n_token: of the long text that one more visitor has; 0 for no such visitor.
        there: takes when that visitor saw the first layer, and all.
    """
    times, peaks = Times(), [0.0]
    beside = []
    if n_token:
        ready = asyncio.Event()
        beside = [asyncio.create_task(long_reader(server, n_token, [] if there is None else there, ready))]
        await asyncio.wait([asyncio.create_task(ready.wait()), *beside], return_when=asyncio.FIRST_COMPLETED)
    watching = asyncio.create_task(_watch_memory(urlsplit(server).port or 80, peaks))

    async def late(number: int) -> None:
        await asyncio.sleep(min(15, n / 5) * number / n)  # a class opens a link within fifteen seconds
        await person(server, number, seconds, times)

    await asyncio.gather(*(late(number) for number in range(n)))
    for task in (watching, *beside):
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            times.wrong.append(f"{type(error).__name__}: {error}")
        task.cancel()
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
            with running_server(log, ATTNVIZ_WARM="yes") as started:
                yield started
        else:
            with served(log, n, ATTNVIZ_WARM="yes") as (started, _):
                yield started


def _round(server: str, n: int, seconds: float, n_token: int = 0) -> tuple[Times, float]:
    """Prints the row of ``n`` people, beside whom one has a text of ``n_token``; returns what they measured, and the 95th
    percentile of a change."""
    there: list[float] = []
    times, most = asyncio.run(measure(server, n, seconds, n_token, there))
    late = percentile(times.changes, 0.95)
    print(
        f"{n:6}  {len(times.changes):7}  {len(times.changes) / seconds:5.1f}  "
        f"{statistics.median(times.changes or [float('nan')]):8.2f}  {late:5.2f}"
        f"   {percentile(times.pictures, 0.5):10.2f}  {percentile(times.pictures, 0.95):4.2f}"
        f"   {percentile(times.openings, 0.5):11.2f}  {percentile(times.openings, 0.95):4.2f}"
        f"   {len(times.wrong):5}  {times.n_byte / 1e6:14.1f}  {most:12.0f}",
        flush=True,
    )
    if n_token:
        reached = [f"{seconds:.0f} s" for seconds in there] + ["not yet"] * (2 - len(there))
        print(f"        beside {n_token:,} tokens: first layer on screen {reached[0]}, all read {reached[1]}")
    for message in sorted(set(times.wrong))[:10]:
        print(f"        {times.wrong.count(message)} x {message[:200]}")
    return times, late


def main() -> int:
    """Prints the table; exit code 1 if anything went wrong, or a budget is exceeded, that of 50 people only without
    nginx.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--server", default="", help="address on this machine; a server is started if empty")
    parser.add_argument(
        "--processes", default="0", help="how many behind nginx, in turn; 0 for one without nginx"
    )
    parser.add_argument("--people", default="1,10,50", help="how many at once, in turn")
    parser.add_argument("--seconds", type=float, default=60, help="how long each round takes")
    parser.add_argument(
        "--long",
        type=int,
        default=0,
        metavar="TOKENS",
        help="repeats each round beside one more visitor, with a text of so many tokens",
    )
    parser.add_argument("--no-pages", action="store_true", help="leave out the round through all pages")
    parser.add_argument(
        "--no-budgets", action="store_true", help="leave out what is measured beside the ready-made page"
    )
    given = parser.parse_args()
    failed, ready_s = False, READY_S
    if not given.no_budgets:
        with _server(given.server, 0) as server, _ready_made() as ready:
            budgets, ready_s = beside(server, ready, given.seconds)
            for budget in budgets:
                failed |= not budget.within
                asked = "no budget" if budget.budget == float("inf") else f"budget {budget.budget:.2f}"
                kept = "" if budget.within else ", NOT KEPT"
                print(f"{budget.what}: {budget.value:.2f} ({asked}{kept}): {budget.detail}", flush=True)
    for n_process in map(int, given.processes.split(",")):
        with _server(given.server, n_process) as server:
            if urlsplit(server).hostname not in ("127.0.0.1", "localhost", "::1"):
                parser.error("only a server on this machine is loaded")
            asyncio.run(measure(server, max(1, n_process), 3))  # the first visit to a process loads the model
            if n_process:
                print(f"{n_process} processes behind nginx, on {len(os.sched_getaffinity(0))} cores")
            print(
                "people  changes  per s  median s  95% s   document 50%  95%    opening 50%  95%   wrong  MB on the wire  "
                "MB of memory"
            )
            for n in map(int, given.people.split(",")):
                times, late = _round(server, n, given.seconds)
                failed |= bool(times.wrong)
                if n == 50 and n_process == 0:
                    asked_s = LATE_S * ready_s / READY_S
                    failed |= late > asked_s
                    print(f"95% of fifty people's changes: {late:.2f} s (budget {asked_s:.2f})", flush=True)
                if given.long:
                    times, beside_long = _round(server, n, given.seconds, given.long)
                    failed |= bool(times.wrong)
                    print(
                        f"95% of {n} people's changes beside a long text: {beside_long / late:.2f} of without",
                        flush=True,
                    )
            if not given.no_pages:
                failed |= _pages(server)
    return int(failed)


def _pages(server: str) -> bool:
    """Sends five people through all pages; returns whether anything went wrong."""
    times = Times()
    asyncio.run(_all_pages(server, times))
    print(
        f"all pages, 5 readers: {len(times.openings)} openings, median "
        f"{percentile(times.openings, 0.5):.2f} s, 95% {percentile(times.openings, 0.95):.2f} s, "
        f"{len(times.wrong)} wrong, {megabytes(urlsplit(server).port or 80):.0f} MB afterwards"
    )
    for message in sorted(set(times.wrong))[:10]:
        print(f"        {message[:200]}")
    return bool(times.wrong)


async def _all_pages(server: str, times: Times) -> None:
    await asyncio.gather(*(reader(server, number, times) for number in range(5)))


if __name__ == "__main__":
    sys.exit(main())
