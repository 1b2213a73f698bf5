"""The stage of a long text: its document, what a page and a widget hold of it, and what they answer."""

import base64
import zlib
from typing import Any

import numpy as np
import pytest

from attnviz.viewer import tiles
from attnviz.viewer.codes import Scale
from attnviz.viewer.data import stage_data
from attnviz.viewer.page import stage_page
from attnviz.viewer.widget import StageWidget
from tests.long_stage import LINK, N, long_trace
from tests.unit.test_viewer_page import held_in


@pytest.fixture(scope="module")
def trace() -> Any:
    return long_trace()


def numbers(codes: dict[str, float], content: bytes) -> np.ndarray:
    scale = Scale(**codes)
    return scale.numbers(np.frombuffer(zlib.decompress(content, -15), dtype="<u2"))


def test_its_document_holds_no_cells(trace: Any) -> None:
    document, content = stage_data(trace)
    assert content == b"" and document.cells.heads == ()
    assert document.tiling.levels == 4 and document.tiling.side == 256  # 1,300 tokens in 256 << 3
    assert document.tiling.windows == ((99, 0), None)
    assert "rollout" not in document.measures


def test_a_page_begins_at_the_strongest_far_link_and_holds_its_overview(trace: Any) -> None:
    page = stage_page(trace, layer=1, head=1)
    held = held_in(page)
    assert len(page) < 1_500_000
    assert (held["selection"]["query"], held["selection"]["key"]) == LINK
    kinds = [(answer["what"], answer["query"].get("level")) for answer in held["answers"]]
    assert kinds == [("tiles", 2), ("tiles", 3), ("lines", None)]
    assert held["answers"][0]["tiles"]["far"][0][:2] == list(LINK)
    lines = held["answers"][2]
    row = numbers(lines["lines"]["codes"], base64.b64decode(lines["base64"]))[:N]
    np.testing.assert_allclose(row[LINK[1]], trace.weights(1, 1)[LINK], atol=1e-4)


def test_a_page_holds_what_was_visited(trace: Any) -> None:
    place = {"layer": 1, "head": 1, "measure": "weights", "pool": "max"}
    held = held_in(
        stage_page(trace, layer=1, head=1, visited=[("tiles", {**place, "level": 0, "at": [[4, 0]]})])
    )
    answer = held["answers"][-1]
    tile = numbers(answer["tiles"]["codes"], base64.b64decode(answer["base64"])).reshape(256, 256)
    np.testing.assert_allclose(tile[LINK[0] - 4 * 256, LINK[1]], trace.weights(1, 1)[LINK], atol=1e-4)


def test_a_widget_answers_and_remembers_what_was_visited(trace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    monkeypatch.setattr(
        "attnviz.viewer.widget.overview", lambda *given: read.append(1) or tiles.overview(*given)
    )
    widget = StageWidget(trace, layer=1, head=1)
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    monkeypatch.setattr(widget, "send", lambda content, buffers=(): sent.append((content, list(buffers))))
    query = {"layer": 1, "head": 1, "measure": "weights", "pool": "mean", "level": 3, "at": [[0, 0]]}
    for _ in range(2):
        widget._answer(widget, {"id": "a", "what": "tiles", "query": query}, [])
    assert [said["id"] for said, _ in sent] == ["a", "a"] and sent[0] == sent[1] and read == [1]
    tile = numbers(sent[0][0]["tiles"]["codes"], sent[0][1][0]).reshape(256, 256)
    whole = np.where(np.tri(N, dtype=bool), trace.weights(1, 1), np.nan)[:8, :8]
    assert tile[0, 0] == pytest.approx(np.nanmean(whole), rel=0.02)
    widget._answer(widget, {"id": "b", "what": "tiles", "query": {**query, "level": 9}}, [])
    assert "Level 9 was asked for" in sent[-1][0]["error"]
    page, _ = widget._repr_mimebundle_()
    assert "&quot;pool&quot;:&quot;mean&quot;" in page["text/html"] or '"pool":"mean"' in page["text/html"]
