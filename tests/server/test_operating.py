"""What the operator of a server sees: a line of the log for each event, and the metrics; and what is left of visitors who have left.

One server with few places, one run at a time and small stores, so that each of its limits is met.
"""

import asyncio
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import InvalidStatus

from tests.browser.conftest import free_port, running_server
from tests.hub import LoopbackHub, save_tiny_bert
from tests.log_lines import errors, events, lines
from tests.visitor import LONG, Visitor, run, visit
from tests.waiting import wait_until

MODEL = "tiny/bert"
PEOPLE, CACHE_MB = 4, 30
SECRET = "zebrafinch"
WORDS = [
    "the",
    "door",
    "was",
    "open",
    "when",
    "a",
    "cat",
    "and",
    "some",
    "dogs",
    "came",
    "in",
    "from",
    "the",
    "river",
    "bank",
    "to",
    "see",
    "why",
    "it",
    "had",
    "been",
    "left",
]


def sentence(number: int, n_word: int) -> str:
    """A text that no other number has."""
    return " ".join(WORDS[(place * (number + 3) + number) % len(WORDS)] for place in range(n_word))


@dataclass(frozen=True)
class Server:
    address: str
    log: Path
    metrics_port: int

    def metrics(self) -> dict[tuple[str, ...], float]:
        """What Prometheus is told: values by name and labels."""
        _, text = get(f"http://127.0.0.1:{self.metrics_port}/metrics")
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def events(self, name: str, **known: str) -> list[dict[str, str]]:
        return events(self.log, name, **known)


def get(url: str) -> tuple[int, str]:
    """Status and text of an answer."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not is_so():
        assert time.monotonic() < end
        await asyncio.sleep(0.1)


async def all_have_left(server: Server) -> None:
    """Waits until there is room for as many visitors as the server takes: it learns a moment later that one has left."""
    await until(lambda: server.metrics()[("attnviz_people",)] == 0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("operated")
    (folder / "checkpoint").mkdir()
    port = free_port()
    with (
        LoopbackHub({MODEL: save_tiny_bert(folder / "checkpoint")}) as hub,
        running_server(
            folder / "log.txt",
            ATTNVIZ_LOG_TEXTS="no",
            ATTNVIZ_METRICS_PORT=str(port),
            ATTNVIZ_MODELS=MODEL,
            ATTNVIZ_PEOPLE=str(PEOPLE),
            ATTNVIZ_RUNS="1",
            ATTNVIZ_CACHE_MB=str(CACHE_MB),
            ATTNVIZ_JOBS_MB="5",
            ATTNVIZ_CHARACTERS="5000",
            ATTNVIZ_WARM="yes",
            STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL="1",
            HF_HOME=str(folder / "home"),
            HF_ENDPOINT=hub.url,
            NO_PROXY="127.0.0.1,localhost",
        ) as address,
    ):
        started = Server(address, folder / "log.txt", port)
        # Where it is ended while it loads its own copy of the model, that may be told after its end.
        wait_until(lambda: started.events("job_begun", job="warm"))
        yield started
    log = folder / "log.txt"
    assert errors(log) == []
    assert [line["event"] for line in lines(log)][-1] == "stop"
    assert SECRET not in log.read_text()


@pytest.mark.nightly
def test_start_and_end_of_visits_and_runs(server):
    async def look_around() -> int:
        async with visit(server.address, text=f"I was watching the {SECRET} when it opened.") as visitor:
            await visitor.settle()
            for act in (
                visitor.click("head_next"),
                visitor.type("field_text", f"It was a {SECRET}."),
                visitor.type("field_second", f"A {SECRET} it was."),
            ):
                n_run = visitor.n_run
                await act
                await visitor.until(lambda n=n_run: visitor.n_run > n)
                await visitor.settle()
            assert server.metrics()[("attnviz_people",)] == 1
            return visitor.n_run

    before = server.metrics()
    n_run = run(look_around())
    run(until(lambda: server.events("visitor_left")))
    (came,), (left,) = server.events("visitor_came"), server.events("visitor_left")
    assert came["visitor"] == left["visitor"]
    assert (came["open"], left["open"]) == ("1", "0")
    runs = server.events("run", visitor=came["visitor"])
    assert len(runs) == n_run >= 4
    assert {(run["page"], run["outcome"]) for run in runs} == {("attention", "done")}
    assert 0 < sum(float(run["seconds"]) for run in runs) < float(left["seconds"])
    after = server.metrics()

    def more(*name: str) -> float:
        return after[name] - before.get(name, 0)

    assert more("attnviz_visitors_total") == 1
    assert more("attnviz_runs_total", "page", "done") == n_run
    assert more("attnviz_run_seconds_count", "attention") == n_run
    assert more("attnviz_wait_seconds_count") == n_run
    assert more("attnviz_run_seconds_sum", "attention") == pytest.approx(
        sum(float(run["seconds"]) for run in runs), abs=0.01
    )
    read = server.events("read", model="all-MiniLM-L6-v2")
    assert len(read) == 3  # texts
    assert not any("text" in text for text in read)


@pytest.mark.nightly
def test_models_jobs_and_stores(server):
    async def open_first_screen() -> None:
        async with visit(server.address, text=sentence(1, 20)) as visitor:
            await visitor.settle()

    run(open_first_screen())
    run(until(lambda: server.events("ready")))
    run(until(lambda: server.metrics()[("attnviz_jobs_under_way",)] == 0))
    (start,) = server.events("start")
    assert (start["people"], start["runs"]) == (str(PEOPLE), "1")
    assert (
        len({event["process"] for event in server.events("model_loaded")}) == 3
    )  # the server and two workers
    begun, done = server.events("job_begun"), server.events("job_done")
    assert {"place", "verify", "warm"} <= {event["job"] for event in begun}
    assert all(float(event["seconds"]) > 0 for event in done)
    assert [event["percent"] for event in server.events("job_progress", job="warm")] == ["50"]
    told = server.metrics()
    assert told[("attnviz_jobs_ended_total", "done")] == len(done)
    assert told[("attnviz_job_seconds_count", "place")] == len(server.events("job_done", job="place"))
    assert told[("attnviz_workers",)] == 2
    assert told[("attnviz_workers_resident_memory_bytes",)] > 2e8
    assert told[("process_resident_memory_bytes",)] > 2e8
    assert 80e6 < told[("attnviz_cache_bytes", "models")] < 120e6  # 22.7 million parameters of 4 bytes
    assert told[("attnviz_cache_entries", "models")] == 1
    assert 0 < told[("attnviz_cache_bytes", "results")] <= told[("attnviz_cache_limit_bytes", "results")]
    assert told[("attnviz_cache_limit_bytes", "results")] == CACHE_MB * 1e6
    assert told[("attnviz_cache_entries", "results")] > 3


@pytest.mark.nightly
def test_a_text_that_is_too_long(server):
    async def paste() -> None:
        async with visit(server.address, text=SECRET * 1000) as visitor:
            await visitor.settle()

    run(paste())
    (refused,) = server.events("refused", reason="TextTooLongError")
    assert (refused["found"], refused["limit"], refused["unit"]) == ("10000", "5000", "characters")
    assert server.metrics()[("attnviz_refused_total", "TextTooLongError")] == 1


@pytest.mark.nightly
def test_a_full_server(server):
    async def fill() -> None:
        await all_have_left(server)
        async with (
            visit(server.address),
            visit(server.address),
            visit(server.address),
            visit(server.address),
        ):
            await until(lambda: server.metrics()[("attnviz_people",)] == PEOPLE)
            assert (await asyncio.to_thread(get, server.address))[0] == 503
            with pytest.raises(InvalidStatus):
                async with visit(server.address) as visitor:
                    await visitor.until(lambda: visitor.n_run > 0, LONG)

    run(fill())
    assert [event["open"] for event in server.events("refused", reason="full")] == [str(PEOPLE)] * 2
    assert server.metrics()[("attnviz_refused_total", "full")] == 2


@pytest.mark.nightly
def test_a_download(server):
    async def download() -> None:
        async with visit(server.address, model=MODEL) as visitor:
            await visitor.until(lambda: "start_download" in visitor.widgets)
            await visitor.settle()
            await visitor.click("start_download")
            await until(lambda: server.events("download_done"))

    run(download())
    (begun,), (done,) = server.events("download_begun"), server.events("download_done")
    assert begun["model"] == done["model"] == MODEL
    assert float(done["seconds"]) > 0
    assert server.metrics()[("attnviz_downloads_total", "done")] == 1


def toasts(visitor: Visitor) -> list[str]:
    return [
        element.toast.body for element in visitor.elements.values() if element.WhichOneof("type") == "toast"
    ]


@pytest.mark.nightly
def test_whoever_waits_in_line_is_told_their_place(server):
    """One run at a time, and each of these takes seconds."""

    async def open_at_once() -> list[str]:
        told = []

        async def wait_in_line(number: int) -> None:
            async with visit(server.address, "all_heads", text=sentence(number, 300)) as visitor:
                await visitor.settle()
                told.extend(toasts(visitor))
                assert visitor.exceptions == []

        await all_have_left(server)
        await asyncio.gather(*(wait_in_line(number) for number in range(PEOPLE)))
        return told

    told = run(open_at_once())
    places = [message.removeprefix("Many people are using attnviz. Ahead of you: ") for message in told]
    assert set(places) <= {"0.", "1.", "2."}
    assert len(places) >= 2
    assert max(float(event["waited"]) for event in server.events("run", page="all_heads")) > 1


def megabytes(server: Server) -> float:
    return server.metrics()[("process_resident_memory_bytes",)] / 1e6


@pytest.mark.nightly
def test_memory_is_back_after_visitors_have_left(server):
    """A first group as large pays for what is loaded once, and for the room that allocators take for so many; after the second
    nothing more is there, beyond what the stores may keep."""

    async def come_and_leave(numbers: range) -> float:
        async def stay(number: int, together: asyncio.Barrier) -> None:
            async with visit(server.address, text=sentence(number, 300)) as visitor:
                await visitor.settle()
                await together.wait()  # until all have seen their page
                await together.wait()  # until the memory is measured

        for first in numbers[::PEOPLE]:
            await all_have_left(server)
            together = asyncio.Barrier(PEOPLE + 1)
            async with asyncio.TaskGroup() as visits:
                for place in range(PEOPLE):
                    visits.create_task(stay(first + place, together))
                await together.wait()
                at_most, n_idle = megabytes(server), len(server.events("idle"))
                await together.wait()
        await until(lambda: len(server.events("idle")) > n_idle)
        return at_most

    run(come_and_leave(range(20, 28)))
    before = megabytes(server)
    at_most = run(come_and_leave(range(40, 48)))
    after = megabytes(server)
    print(f"{before:.0f} MB before, {at_most:.0f} with eight visitors, {after:.0f} after")
    # The results may fill their store, and allocators leave gaps between what is still used.
    most = before + CACHE_MB + 30
    assert after < most < at_most


def share(visitor: Visitor) -> int:
    """How far the bar on a page is, in percent."""
    bars = [
        element.progress.value
        for element in visitor.elements.values()
        if element.WhichOneof("type") == "progress"
    ]
    return max(bars, default=0)


@pytest.mark.nightly
def test_a_job_ends_with_its_last_visitor_and_not_before(server):
    """A job of minutes: the maps of all heads of a long text."""
    place = {"text": sentence(7, 350), "method": "tsne"}

    async def leave_one_after_the_other() -> float:
        async with visit(server.address, "all_maps", **place) as stays:
            async with visit(server.address, "all_maps", **place) as leaves:
                for visitor in (stays, leaves):
                    await visitor.until(lambda visitor=visitor: share(visitor) > 0, LONG)
                assert len(server.events("job_begun", job="maps")) == 1  # shared
            left = time.monotonic()
            seen = share(stays)
            # Longer than the server waits for a visitor it has not heard from.
            await stays.until(lambda: time.monotonic() - left > 7 and share(stays) > seen, LONG)
            await until(lambda: server.metrics()[("attnviz_jobs_under_way",)] == 1)
            assert not server.events("job_cancelled", job="maps")
        left = time.monotonic()
        await until(lambda: server.events("job_cancelled", job="maps"))
        return time.monotonic() - left

    # Five until it is known that nobody looks, five for a call that tells nothing; a slow machine takes longer.
    assert run(leave_one_after_the_other()) < 60
    n_cancelled = len(server.events("job_cancelled"))
    run(until(lambda: server.metrics()[("attnviz_jobs_ended_total", "cancelled")] == n_cancelled))


@pytest.mark.nightly
def test_the_end_of_a_server_is_the_last_line_even_while_it_is_at_work(tmp_path):
    log = tmp_path / "log.txt"
    with running_server(log, ATTNVIZ_WARM="yes"):
        wait_until(lambda: events(log, "job_begun", job="warm"))
    named = [line["event"] for line in lines(log)]
    assert named[-1] == "stop"
    assert not {"not_ready", "job_failed"} & set(named)


def listening_at(port: int) -> list[str]:
    """Addresses of this machine at which somebody listens at a port, as Linux writes them."""
    lines = [Path(f"/proc/net/{name}").read_text().splitlines() for name in ("tcp", "tcp6")]
    listening = [line.split()[1].split(":") for line in chain(*lines) if line.split()[3:4] == ["0A"]]
    return [at for at, used in listening if int(used, 16) == port]


@pytest.mark.nightly
def test_metrics_are_for_this_machine_alone(server):
    assert listening_at(server.metrics_port) == ["0100007F"]
    for path in ("metrics", "_stcore/metrics"):
        assert "attnviz_" not in get(f"{server.address}/{path}")[1]
