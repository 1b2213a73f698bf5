"""The port of the metrics; what is told there is tried with a real server in tests/server/test_operating.py."""

import socket

import pytest

from ui.runtime import metrics
from ui.runtime.remembered import MODELS, NUMBERS


def test_a_port_that_is_taken_ends_the_start_with_one_sentence(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setattr(metrics, "METRICS_PORT", taken.getsockname()[1])
        with pytest.raises(SystemExit) as ended:
            metrics.serve()
    message = str(ended.value)
    assert message.startswith(f"/metrics cannot listen at port {metrics.METRICS_PORT} of 127.0.0.1 (")
    assert message.endswith("Change ATTNVIZ_METRICS_PORT or ATTNVIZ_METRICS_ADDRESS and start attnviz again.")


@pytest.mark.parametrize(("port", "address"), [(70_000, "127.0.0.1"), (8500, "no such address")])
def test_what_no_port_can_be_is_said_too(monkeypatch, port, address):
    monkeypatch.setattr(metrics, "METRICS_PORT", port)
    monkeypatch.setattr(metrics, "METRICS_ADDRESS", address)
    with pytest.raises(SystemExit):
        metrics.serve()


def test_there_are_none_unless_they_are_wanted(monkeypatch):
    monkeypatch.setattr(metrics, "start_http_server", lambda *_: pytest.fail("nobody wants them"))
    metrics.serve()


def test_what_is_kept_is_told_in_bytes_by_store():
    def told(name, store="results"):
        [family] = [metric for metric in metrics.Now().collect() if metric.name == f"attnviz_cache_{name}"]
        [value] = [sample.value for sample in family.samples if sample.labels == {"store": store}]
        return value

    before = told("entries")
    NUMBERS.keep("a key of this test", b"12345")
    assert (told("limit_bytes"), told("limit_bytes", "models")) == (NUMBERS.most_bytes, MODELS.most_bytes)
    assert told("bytes") == NUMBERS.n_bytes > 0
    assert told("entries") == before + 1
