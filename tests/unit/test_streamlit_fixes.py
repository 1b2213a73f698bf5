"""Work-arounds for Streamlit: each alone, with its symptom and how to see that it is gone, tried with this version."""

import ast
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import streamlit
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from tests.findings import assert_none
from ui import session, streamlit_fixes
from ui.streamlit_fixes import TRIED_WITH, check_version, runs_in_turn

ROOT = Path(__file__).parents[2]
PARTS = ("Symptom: ", "Version: ", "No longer needed when: ")
FILES = [
    path
    for path in sorted(Path(streamlit_fixes.__file__).parent.iterdir())
    if path.suffix in (".py", ".css", ".js") and path.name != "__init__.py"
]


def test_were_tried_with_the_version_that_is_installed():
    """Where it fails: go through "No longer needed when" in each file, then set `TRIED_WITH`."""
    assert streamlit.__version__ == TRIED_WITH


def test_another_version_ends_the_start_with_a_sentence():
    for fits in ("1.67.0", "1.67.3"):
        check_version(fits)
    for other in ("1.66.1", "1.68.0", "2.67.0"):
        with pytest.raises(
            SystemExit, match=rf"needs Streamlit 1\.67; {other} is installed.*streamlit==1\.67\.0"
        ):
            check_version(other)


def unsaid(text: str) -> list[str]:
    """What a work-around does not say of itself."""
    return [part.rstrip() for part in PARTS if part not in text]


def test_each_says_what_it_is_for_and_when_it_can_go():
    assert len(FILES) > 10
    assert_none(
        f"ui/streamlit_fixes/{path.name} does not say {part!r}"
        for path in FILES
        for part in unsaid(path.read_text(encoding="utf-8"))
    )


def test_check_can_fail():
    whole = "Symptom: it flickers.\nVersion: 1.\nNo longer needed when: it does not.\n"
    assert unsaid(whole) == []
    assert_none(
        f"not noticed: {part!r} is missing"
        for part in PARTS
        if unsaid(whole.replace(part, "")) != [part.rstrip()]
    )


def patched(trees: Iterable[ast.Module]) -> list[str]:
    """What of Streamlit's modules replace: "SafeSessionState.filtered_state", once per replacement."""
    places = []
    for tree in trees:
        theirs = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "streamlit"
            for alias in node.names
        }
        for node in ast.walk(tree):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                match target:
                    case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in theirs:
                        places.append(f"{owner}.{name}")
                    case ast.Subscript(
                        value=ast.Call(func=ast.Name(id="vars"), args=[ast.Name(id=owner)]),
                        slice=ast.Constant(value=name),
                    ) if owner in theirs:
                        places.append(f"{owner}.{name}")
    return places


def test_each_place_of_streamlit_is_patched_once():
    files = [path for path in FILES if path.suffix == ".py"]
    assert Counter(patched(ast.parse(path.read_text(encoding="utf-8")) for path in files)) == {
        "SafeSessionState.on_script_will_rerun": 1,
        "SafeSessionState.filtered_state": 1,
        "ScriptRunContext.on_script_start": 1,
        "script_runner.exec_func_with_error_handling": 1,
        "ForwardMsgQueue.clear": 1,
        "logger.setup_formatter": 1,
        "net_util.get_internal_ip": 1,
        "net_util.get_external_ip": 1,
    }


def test_check_of_patches_can_fail():
    text = "from streamlit import logger\nfrom a import b\nb.c = logger.d = 1\nvars(logger)['d'] = 2\n"
    assert patched([ast.parse(text), ast.parse(text)]) == ["logger.d"] * 4


@pytest.fixture(scope="module")
def bare() -> dict[str, Any]:
    """What Streamlit does where nothing of ours is loaded."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bare_streamlit"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=120,
    )
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


class TestSentValues:
    """Where one fails, a part of ui/streamlit_fixes/sent_values.py is no longer needed."""

    def test_takes_in_values_that_no_widget_sent(self, bare):
        assert bare["takes_in_what_no_widget_sent"] == ["forged"]

    def test_raises_for_what_is_no_message(self, bare):
        assert bare["raises_for_what_is_no_message"]

    def test_loses_a_message_where_a_newer_one_is_there(self, bare):
        assert bare["looks_for_a_newer_message_first"]

    def test_a_field_reads_the_values_of_all(self, bare):
        assert bare["reads_all_values_for_one"]


class TestRunsInTurn:
    """Where one fails, a part of ui/streamlit_fixes/runs_in_turn.py may no longer be needed."""

    def test_keeps_what_is_within_a_dropped_block(self, bare):
        assert bare["keeps_what_is_within_a_dropped_block"] == [0, 1, 0]

    def test_has_no_setting_for_how_many_runs_there_are(self, bare):
        assert bare["settings_of_runs"] == [
            "runner.cacheBackgroundRefreshMaxWorkers",
            "runner.cacheBackgroundRefreshTTLMultiplier",
            "runner.cacheHashSeed",
            "runner.connectionDefaultTTL",
            "runner.enforceSerializableSessionState",
            "runner.enumCoercion",
            "runner.fastReruns",
            "runner.magicEnabled",
            "runner.parallelMaxWorkers",
            "runner.postScriptGC",
        ]


@pytest.mark.parametrize(
    ("begun", "kept"),
    [
        (["outer"], [(0,), (1,), (1, 0)]),
        (["inner"], [(0,), (0, 1), (0, 1, 0), (1,), (1, 0)]),
        (["other"], [(0,), (0, 1), (0, 1, 0), (0, 1, 0, 0), (1,)]),
        (None, []),
    ],
    ids=str,
)
def test_a_block_is_dropped_with_all_that_is_within_it(begun, kept, monkeypatch):
    monkeypatch.setattr(ForwardMsgQueue, "clear", runs_in_turn._clear_whole)
    queue = ForwardMsgQueue()
    # The page's own place, a block in it with a block of its own, and another block beside both.
    waiting = [
        ("", (0,), "add_block"),
        ("outer", (0, 1), "add_block"),
        ("outer", (0, 1, 0), "add_block"),
        ("inner", (0, 1, 0, 0), "new_element"),
        ("", (1,), "add_block"),
        ("other", (1, 0), "new_element"),
    ]
    for fragment_id, path, kind in waiting:
        message = ForwardMsg()
        if fragment_id:
            message.delta.fragment_id = fragment_id
        getattr(message.delta, kind).SetInParent()
        message.metadata.delta_path.extend(path)
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=begun)
    assert [tuple(message.metadata.delta_path) for message in queue.flush()] == kept


class TestSessions:
    """Where one fails, a part of ui/streamlit_fixes/sessions.py may no longer be needed."""

    def test_a_page_is_not_told_whose_it_is(self, bare):
        assert bare["told_of_a_session"] == [
            "cookies",
            "headers",
            "ip_address",
            "is_embedded",
            "locale",
            "theme",
            "timezone",
            "timezone_offset",
            "url",
        ]

    def test_has_no_limit_for_the_files_of_all(self, bare):
        assert bare["settings_of_uploads"] == [
            "server.agentMaxSessions",
            "server.agentSessionTTL",
            "server.disconnectedSessionTTL",
            "server.maxUploadSize",
        ]

    def test_keeps_a_session_whose_time_is_over(self, bare):
        assert bare["keeps_a_session_whose_time_is_over"]


class TestLogLines:
    """Where it fails, ui/streamlit_fixes/log_lines.py is no longer needed."""

    def test_gives_each_logger_a_handler_of_its_own(self, bare):
        assert bare["gives_each_logger_a_handler"]


class TestAddressLookup:
    """Where it fails, ui/streamlit_fixes/no_address_lookup.py is no longer needed."""

    def test_asks_for_its_address_where_an_origin_is_not_known(self, bare):
        assert bare["asks_for_its_address"] == ["internal", "external"]


class TestSession:
    """`ui.session`: a typed record for each owner."""

    def test_makes_a_record_once_and_keeps_it(self, monkeypatch):
        held = {}
        monkeypatch.setattr(session.st, "session_state", held)
        link = session.of_session(session.Link)
        assert link.params is None
        link.params = {"layer": "3"}
        assert session.of_session(session.Link) is link
        assert len(held) == 1
