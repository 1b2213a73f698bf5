"""A start, and a visitor after it, reach nothing outside this machine and its network."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.browser.conftest import ROOT, START_SECONDS, free_port, streamlit, wait_for
from tests.visitor import run, visit

TRAP = '''
"""Python imports this at every start: it notes who is asked and connected to, in the server and in its processes."""
import ipaddress, os, sys

def note(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg") and isinstance(arguments[1], tuple):
        host = str(arguments[1][0])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
        host = host.decode() if isinstance(host, bytes) else host
    else:
        return
    try:
        is_outside = ipaddress.ip_address(host.split("%")[0]).is_global
    except ValueError:
        is_outside = host not in ("", "localhost")
    except AttributeError:  # None: this machine
        is_outside = False
    with open(os.environ["TRAP_LOG"], "a") as log:
        log.write(f"{event} {host}{' OUTSIDE' if is_outside else ''}\\n")

with open(os.environ["TRAP_LOG"], "a") as log:
    log.write(f"in process {os.getpid()}\\n")
sys.addaudithook(note)
'''


@contextmanager
def started(folder: Path) -> Iterator[tuple[str, Path]]:
    """The address of a server that was started by hand, without one, and what its trap has noted."""
    (folder / "trap").mkdir()
    (folder / "trap" / "sitecustomize.py").write_text(TRAP)
    port = free_port()
    noted, log = folder / "noted.txt", folder / "log.txt"
    noted.touch()
    with log.open("w") as output:
        process = subprocess.Popen(
            streamlit(port),
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(folder / "trap"), "TRAP_LOG": str(noted)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/_stcore/health", process, log)
            yield f"http://127.0.0.1:{port}", noted
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def outside(noted: Path) -> list[str]:
    return [line for line in noted.read_text().splitlines() if line.endswith(" OUTSIDE")]


async def open_pages(server: str) -> None:
    for page in ("", "door_experiment", "all_maps"):
        async with visit(server, page) as visitor:
            await visitor.settle()
            assert visitor.exceptions == []
    port = server.rpartition(":")[2]
    with pytest.raises(InvalidStatus):  # a page of somebody else's
        async with connect(
            f"ws://127.0.0.1:{port}/_stcore/stream", origin="http://elsewhere.example", proxy=None
        ):
            pass


@pytest.mark.nightly
def test_no_start_and_no_visitor_reach_outside(tmp_path):
    with started(tmp_path) as (server, noted):
        run(open_pages(server))
        log = (tmp_path / "log.txt").read_text()
        assert re.search(r"URL: http://localhost:\d+\n", log)
    assert noted.read_text() != ""  # the trap works
    assert outside(noted) == []


def test_the_trap_sees_names_and_addresses(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TRAP)
    noted = tmp_path / "noted.txt"
    code = """if True:
        import socket
        for name in ("localhost", "checkip.example"):
            try:
                socket.getaddrinfo(name, 80)
            except OSError:
                pass
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("8.8.8.8", 1))  # sends nothing
    """
    subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "TRAP_LOG": str(noted)},
        check=False,  # a machine without a network has no way there
    )
    assert outside(noted) == ["socket.getaddrinfo checkip.example OUTSIDE", "socket.connect 8.8.8.8 OUTSIDE"]
