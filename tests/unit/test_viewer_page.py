"""A page that holds the stage: what is in it, and that it can reach nothing outside."""

import base64
import html.parser
import json
import zlib

import numpy as np
import pytest

import attnviz
from attnviz.errors import SelectionError
from attnviz.viewer import SCRIPTS, held, joined, style
from attnviz.viewer.page import CONTENT_POLICY, framed, own_file, stage_page
from tests import odd_bundles
from tests.app.hostile import TEXT, save_hostile_bert

TWENTY_TWO = "I was watching the door when it opened and then the cat ran into the garden once again today!"


class Parts(html.parser.HTMLParser):
    """Tags with their attributes, scripts, and the words outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += data
        elif self.cdata_elem is None:
            self.words += data


def held_in(page: str) -> dict:
    return json.loads(Parts(page).scripts[0])


def cells_in(block: dict) -> bytes:
    packed = base64.b64decode(block["base64"])
    return zlib.decompress(packed, wbits=-15) if block["isDeflated"] else packed


def test_it_reaches_nothing_outside(door_trace):
    parts = Parts(door_trace.to_html(3, 1))
    policies = [of for tag, of in parts.tags if tag == "meta" and "http-equiv" in of]
    assert [of["content"] for of in policies] == [CONTENT_POLICY]
    assert "default-src 'none'" in CONTENT_POLICY and "connect" not in CONTENT_POLICY
    assert [of for _, of in parts.tags if {"src", "href", "srcset", "action"} & of.keys()] == []
    assert "url(" not in style() + own_file("page.css") and "@import" not in style()


def test_no_script_or_style_ends_early():
    for text in (joined(*SCRIPTS), own_file("page.js"), own_file("widget.js")):
        assert "</script" not in text.lower() and "<!--" not in text
    assert "</style" not in style() + own_file("page.css")


def test_tokens_are_text(tmp_path):
    trace = attnviz.load_model(str(save_hostile_bert(tmp_path / "hostile"))).trace(TEXT)
    page = trace.to_html(0, 0)
    parts = Parts(page)
    known = {"html", "head", "meta", "title", "style", "body", "h1", "div", "h2", "dl", "dt", "dd", "script"}
    assert {tag for tag, _ in parts.tags} == known
    assert len(parts.scripts) == 2
    assert held_in(page)["document"]["queries"]["labels"] == list(trace.tokens.labels)
    assert parts.words.count(TEXT) >= 2  # title and fact
    [frame] = Parts(framed(page)).tags
    assert frame[1]["srcdoc"] == page and "allow-same-origin" not in frame[1]["sandbox"]


def test_it_holds_all_heads_within_its_budget(embedded):
    trace = embedded.trace(TWENTY_TWO)
    assert len(trace.tokens) == 22
    page = trace.to_html(3, 1)
    assert len(page.encode()) <= 400_000
    assert len(framed(page).encode()) <= 400_000
    inside = held_in(page)
    assert inside["document"]["measures"] == ["weights", "scores", "rollout"]
    assert len(cells_in(inside["blocks"][0])) == 2 * 72 * 22 * 22
    assert inside["document"]["cells"]["heads"] == "all"
    assert "alone" not in Parts(page).words


def test_a_measure_that_is_selected_is_there_whatever_room_it_takes(door_trace, monkeypatch):
    monkeypatch.setattr(held, "MOST_PACKED", 0)
    page = stage_page(door_trace, layer=3, head=1, choices={"measure": "norms"})
    assert held_in(page)["document"]["measures"] == ["weights", "norms"]


def test_numbers_are_deflated_where_half_of_them_are_hidden():
    assert held._packed(bytes(1000))["isDeflated"]
    noise = np.random.default_rng(0).bytes(1000)
    packed = held._packed(noise)
    assert not packed["isDeflated"] and cells_in(packed) == noise
    assert cells_in(held._packed(bytes(1000) + noise)) == bytes(1000) + noise


def test_of_a_long_text_it_holds_the_selected_head_alone_and_says_so():
    trace = odd_bundles.trace(2, 40, 100)
    page = stage_page(trace, layer=1, head=7)
    inside = held_in(page)
    assert [block["cells"]["heads"] for block in inside["blocks"][:1]] == [[[1, 7]]]
    assert len(cells_in(inside["blocks"][0])) == 2 * 100 * 100
    assert "This page holds layer 1, head 7 alone" in Parts(page).words
    assert inside["missing"]["head"] in Parts(page).words


def test_what_is_not_there_is_refused_and_a_query_is_found(door_trace):
    for wrong in ({"layer": 6}, {"head": 12}, {"query": 11}, {"key": -1}):
        with pytest.raises(SelectionError):
            stage_page(door_trace, **{"layer": 3, "head": 1} | wrong)
    selection = held_in(door_trace.to_html(3, 1))["selection"]
    weights = door_trace.weights(3, 1)[1:-1, 1:-1]  # without [CLS] and [SEP]
    assert selection["query"] == weights.max(axis=1).argmax() + 1 and selection["key"] is None


def test_it_is_written_to_a_file(door_trace, tmp_path):
    path = door_trace.save_html(tmp_path / "door.html", 3, 1, query=7, title="It and the door")
    assert path.read_text(encoding="utf-8") == door_trace.to_html(3, 1, query=7, title="It and the door")
    assert "<title>It and the door</title>" in path.read_text(encoding="utf-8")
