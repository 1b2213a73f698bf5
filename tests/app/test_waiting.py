"""A page with a block that is redrawn by itself is sent whole, however late it reaches the browser."""

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from tests.app.screen import WAIT_SECONDS

ROOT = Path(__file__).parents[2]


def in_a_block():
    import streamlit as st

    from ui.streamlit_fixes.redrawn_block import redrawn_block

    st.write("before")
    redrawn_block(lambda: st.write("a look"), 0.5)
    st.write("after")


def bare():
    import streamlit as st

    st.write("before")
    st.fragment(st.write, run_every=0.5)("a look")
    st.write("after")


@pytest.fixture
def queue(monkeypatch):
    """What a page has to send, before the browser has received any of it."""
    queues = []

    def forward_msgs(runner):
        queues.append(runner.forward_msg_queue)
        return runner.forward_msg_queue._queue

    monkeypatch.setattr(LocalScriptRunner, "forward_msgs", forward_msgs)
    return lambda: queues[-1]


def misplaced(messages):
    """Paths of the elements that arrive before their place exists: an elder sibling is missing."""
    n_children, wrong = {(): 2}, []  # the main part and the sidebar
    for message in messages:
        if not message.HasField("delta"):
            continue
        *above, place = message.metadata.delta_path
        if place > n_children.setdefault(tuple(above), 0):
            wrong.append([*above, place])
        n_children[tuple(above)] = max(n_children[tuple(above)], place + 1)
    return wrong


@pytest.mark.parametrize(("page", "lost"), [(in_a_block, False), (bare, True)])
def test_what_stands_after_a_look_has_its_place(queue, page, lost):
    """The next redraw begins before the page is sent, so Streamlit drops the one that it would replace.

    `redrawn_block` exists because a bare fragment loses its place then; once that no longer fails, it is not needed any more.
    """
    AppTest.from_function(page, default_timeout=WAIT_SECONDS).run()
    unsent = queue()
    assert misplaced(unsent._queue) == []
    fragments = {message.delta.fragment_id for message in unsent._queue if message.HasField("delta")} - {""}
    assert len(fragments) == 1

    unsent.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=list(fragments))

    assert bool(misplaced(unsent._queue)) == lost


def ended_after_a_click():
    """A block that ends; the browser asked for it with the link from before a click that moved the head on to 2."""
    import streamlit as st

    from ui.choice import state
    from ui.session import Link, of_session
    from ui.shell import waiting

    if of_session(Link).params is None:
        state.current("Attention")
        state.change(head=2)
        # As the page did that was drawn after the click.
        of_session(Link).params = state.current("Attention").to_params()
        waiting.whole_page()
    st.text(state.current("Attention").head)


def test_a_click_counts_for_more_than_the_link_that_a_block_was_drawn_with():
    at = AppTest.from_function(ended_after_a_click, default_timeout=WAIT_SECONDS)
    at.query_params["head"] = "1"
    at.run()
    assert not at.exception
    assert [character.value for character in at.text] == ["2"]


def ends_meanwhile(asker):
    """A page whose job ends right after somebody has asked whether it has ended."""
    from types import SimpleNamespace

    import streamlit as st

    from tests import calls
    from ui.choice import state
    from ui.rooms.generate import written
    from ui.runtime.jobs import Job
    from ui.shell import waiting

    class EndsWhenAsked(Job):
        @property
        def finished(self):
            was_finished = Job.finished.fget(self)
            if not was_finished:
                self._waiting.clear()
                self.results = ["the picture"]
            return was_finished

    state.current("Attention")
    if "work" not in st.session_state:
        st.session_state.work = EndsWhenAsked([(calls.double, (2,), {})])
    work = st.session_state.work
    if asker == "is_there":
        is_drawn = waiting.is_there(work, None, "Drawing", key="act")
    elif asker == "generation":
        text = SimpleNamespace(work=work, is_refused=False)
        view = SimpleNamespace(trace=SimpleNamespace(tokens=SimpleNamespace(text="of a text")))
        is_drawn = written.are_there(view, text, [text])
    else:
        is_drawn = work.finished
        if not is_drawn:
            waiting.show_jobs([work], str, str, key="act", is_page_without=True)
    if is_drawn:
        st.text(work.results[0])


@pytest.mark.parametrize("asker", ["is_there", "generation", "map"])
def test_what_ends_just_when_a_page_has_asked_is_drawn_in_the_same_run(asker):
    at = AppTest.from_function(ends_meanwhile, default_timeout=WAIT_SECONDS, args=(asker,)).run()
    assert not at.exception
    assert [character.value for character in at.text] == ["the picture"]
    assert not at.markdown  # nothing of what had come before


def test_only_redrawn_blocks_are_fragments():
    makers = {
        path.relative_to(ROOT).as_posix()
        for path in [
            ROOT / "app.py",
            ROOT / "attention.py",
            *ROOT.glob("pages/*.py"),
            *ROOT.glob("ui/**/*.py"),
        ]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "fragment"
    }
    assert makers == {"ui/streamlit_fixes/redrawn_block.py"}
