"""`make serve` says in one sentence why it cannot start. That it serves and ends is in tests/browser/test_failover.py."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import find_nginx
from deploy.serve import METRICS, NotServedError, check_free, environment

ROOT = Path(__file__).parents[2]


def test_a_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(NotServedError, match=f"127.0.0.1:{port}: Address already in use.*PORT="):
            check_free("127.0.0.1", port)
    check_free("127.0.0.1", port)


def test_processes_share_cores_and_not_ports(monkeypatch):
    monkeypatch.setenv(METRICS, "9100")
    monkeypatch.setenv("ATTNVIZ_RUNS", "3")
    monkeypatch.delenv("ATTNVIZ_WORKERS", raising=False)
    assert [environment(number, 3)[METRICS] for number in range(3)] == ["9100", "9101", "9102"]
    assert environment(1, 3)["ATTNVIZ_WORKERS"] == "1" and "ATTNVIZ_WORKERS" not in environment(0, 1)
    assert environment(1, 3)["ATTNVIZ_RUNS"] == "3"  # what the operator says counts


def test_without_nginx(monkeypatch):
    monkeypatch.delenv(find_nginx.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(find_nginx, "SYSTEM", "")
    with pytest.raises(find_nginx.NginxNotFoundError, match="apt-get install nginx-light"):
        find_nginx.nginx_path()


def test_the_nginx_that_is_named_is_not_there(tmp_path):
    made = subprocess.run(
        [sys.executable, "-m", "deploy.serve"],
        cwd=ROOT,
        env={find_nginx.VARIABLE: str(tmp_path / "nginx"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 1
    assert made.stderr.strip() == f"{find_nginx.VARIABLE} names {tmp_path}/nginx, which is no program."
