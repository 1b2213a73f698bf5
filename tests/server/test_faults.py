"""Faults while a server is up, and at its start: one clear sentence, no traceback, and the server goes on.

The faults of a download are in tests/unit/test_download.py, those of memory in tests/app/test_out_of_memory.py.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import ROOT, running_server, streamlit
from tests.hub import save_tiny_bert
from tests.served import worker_processes
from tests.visitor import LONG, Visitor, run, visit

LONG_TEXT = "the river flooded an old market and nobody there was surprised by it " * 30  # of some 400 tokens
NO_HOME = "/proc/no-home"
"""A folder that is not there and that nobody can make, not even root."""
SECONDS_TO_STOP = 120.0  # less than the work would take


@dataclass(frozen=True)
class Running:
    """A server with a home that cannot be written, and a model in a folder of the operator's."""

    address: str
    folder: Path
    log: Path

    def written(self) -> str:
        return self.log.read_text()

    def workers(self) -> list[int]:
        """The processes that compute maps and verdicts."""
        return worker_processes(urlsplit(self.address).port)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    folder = tmp_path / "mine"
    folder.mkdir()
    save_tiny_bert(folder)
    log = tmp_path / "log.txt"
    environment = {
        "HOME": NO_HOME,
        "HF_HOME": f"{NO_HOME}/.cache/huggingface",
        "ATTNVIZ_MODELS": str(folder),
        "ATTNVIZ_CACHE_MB": "40",
    }
    with running_server(log, **environment) as address:
        yield Running(address, folder, log)


def shown_errors(visitor: Visitor) -> list[str]:
    """The errors that a page shows."""
    alerts = [element.alert for element in visitor.elements.values() if element.WhichOneof("type") == "alert"]
    return [alert.body.replace("\\", "") for alert in alerts if alert.format == alert.ERROR]


async def read(visitor: Visitor, text: str) -> None:
    """Types a text, and waits until everything that follows is there."""
    n_run = visitor.n_run
    await visitor.type("field_text", text)
    await visitor.until(lambda: visitor.n_run > n_run)
    await visitor.settle()


async def until(holds, what: str) -> None:
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.1)


def busy(pids: list[int]) -> float:
    """Seconds of processor time that these processes have used."""
    ticks = 0
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(stat[11]) + int(stat[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.nightly
def test_a_server_without_a_home_goes_on_while_its_model_s_folder_is_truncated_and_goes(running):
    async def all_of_it() -> None:
        weights = running.folder / "model.safetensors"
        async with visit(running.address, text="the door opened", model="mine", layer=1, head=1) as visitor:
            await visitor.settle()
            assert shown_errors(visitor) == []
            drawn = visitor.drawn["matrix"]
            os.truncate(weights, 100)
            await read(visitor, "the door was open when it opened")
            # the server has read its model into memory; the process for verdicts still reads the file
            assert visitor.drawn["matrix"] > drawn
            assert len(shown_errors(visitor)) == 1
            assert shown_errors(visitor)[0].startswith(
                ("The process that worked on this has ended", "mine cannot be loaded")
            )
            shutil.rmtree(running.folder)
            await read(visitor, "it was watching the door")
            assert shown_errors(visitor) != []
            assert all(
                "mine" in sentence and str(running.folder) not in sentence
                for sentence in shown_errors(visitor)
            )
            assert visitor.exceptions == []
        async with visit(running.address, text="the other door") as other:
            await other.settle()
            assert shown_errors(other) == other.exceptions == []

    run(all_of_it())
    assert "Traceback" not in running.written(), running.written()


@pytest.mark.nightly
def test_a_worker_that_is_killed_is_said_and_the_next_job_works(running):
    async def all_of_it() -> None:
        async with visit(running.address, "all_maps", text=LONG_TEXT, cut=1) as visitor:
            await visitor.until(lambda: visitor.n_run > 0 and visitor.is_awaited())
            begun = busy(running.workers())
            await until(lambda: busy(running.workers()) > begun + 1, "no process works")
            for worker in running.workers():
                os.kill(worker, signal.SIGKILL)
            await visitor.until(lambda: bool(shown_errors(visitor)))
            ended = "The process that worked on this has ended (exit code -9)"
            assert all(
                sentence.startswith(ended) for sentence in shown_errors(visitor)
            )  # the verdict's may be among them
            assert visitor.exceptions == []
        async with visit(running.address, text="A door creaked.") as other:
            await other.settle()
            assert shown_errors(other) == other.exceptions == []
            assert "map" in other.drawn

    run(all_of_it())
    assert "Traceback" not in running.written(), running.written()


@pytest.mark.nightly
def test_a_visitor_who_vanishes_leaves_no_work_behind(running):
    async def all_of_it() -> None:
        async with visit(
            running.address, "all_maps", text=LONG_TEXT, cut=1, method="tsne", iterations=5000
        ) as visitor:
            await visitor.until(lambda: visitor.is_awaited())
            await until(lambda: busy(running.workers()) > 1, "no process works")

        # 72 maps of a thousand points would take minutes
        async def is_idle() -> bool:
            before = busy(running.workers())
            await asyncio.sleep(2)
            return busy(running.workers()) - before < 0.1

        end = time.monotonic() + SECONDS_TO_STOP
        while not await is_idle():
            assert time.monotonic() < end, "the work goes on"

    run(all_of_it())
    assert "Traceback" not in running.written(), running.written()


def test_a_port_in_use_is_said_in_a_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            streamlit(port),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LONG,
        )
    assert done.returncode == 1
    assert f"Port {port} is not available" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("listed", [b"a b", b"caf\xe9/\xff"], ids=["no id", "no UTF-8"])
def test_a_list_of_models_that_cannot_be_read_is_said_on_every_page_and_in_the_log(listed, tmp_path):
    async def all_of_it(address: str) -> None:
        async with visit(address) as visitor:
            await visitor.until(lambda: visitor.n_run > 0)
            [sentence] = shown_errors(visitor)
            assert sentence.startswith("ATTNVIZ_MODELS lists")
            assert visitor.exceptions == []

    log = tmp_path / "log.txt"
    with running_server(log, ATTNVIZ_MODELS=os.fsdecode(listed), ATTNVIZ_WARM="yes") as address:
        run(all_of_it(address))
    written = log.read_text()
    assert "Traceback" not in written, written
    assert "ATTNVIZ_MODELS lists" in written
