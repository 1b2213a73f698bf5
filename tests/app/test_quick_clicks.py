"""A browser that is clicked twice in a row sends with the second click what its widgets held before the first."""

import pytest
from streamlit.runtime.state.session_state import SessionState
from streamlit.testing.v1 import AppTest

from tests.app.screen import WAIT_SECONDS, assert_no_exception, open_page, shown, step_head
from ui.choice import state


def place(at) -> tuple[int, int]:
    return int(shown(at)["layer"]), int(shown(at)["head"])


@pytest.fixture
def one_further():
    """A page where a button has moved the head on from 4 to 5, in layer 2."""
    at = open_page("pages/token_flow.py", layer=2, head=4)
    step_head(at)
    assert place(at) == (2, 5)
    return at


def test_an_old_value_beside_a_click_is_not_taken(one_further):
    one_further.number_input(key="field_head").set_value(4)
    step_head(one_further)
    assert place(one_further) == (2, 6)
    assert one_further.number_input(key="field_head").value == 6


def test_nor_is_one_of_two_clicks_ago(one_further):
    one_further.number_input(key="field_head").set_value(4)
    step_head(one_further)
    one_further.number_input(key="field_head").set_value(5)
    one_further.number_input(key="field_layer").set_value(3).run()
    assert place(one_further) == (3, 6)


def test_an_old_value_beside_another_field_is_not_taken(one_further):
    one_further.number_input(key="field_head").set_value(4)
    one_further.segmented_control(key="field_show").set_value("norms").run()
    assert (place(one_further), shown(one_further)["show"]) == ((2, 5), "norms")


def test_two_old_values_at_once_are_not_taken():
    at = open_page("pages/find_a_head.py", query=7, key=5)
    at.query_params["query"], at.query_params["key"] = "8", "3"  # back in the browser
    at.run()
    at.query_params.clear()
    for name, old in (("query", 7), ("key", 5)):
        at.selectbox(key=f"field_{name}").set_value(old)
    at.run()
    assert (shown(at)["query"], shown(at)["key"]) == ("8", "3")


def test_what_was_replaced_can_be_picked_again(one_further):
    one_further.number_input(key="field_head").set_value(4).run()
    assert place(one_further) == (2, 4)
    one_further.number_input(key="field_head").set_value(5).run()
    assert place(one_further) == (2, 5)


def test_what_the_browser_has_been_told_is_no_longer_doubted(one_further):
    one_further.number_input(key="field_layer").set_value(3).run()  # sent with head 5
    one_further.number_input(key="field_head").set_value(4)
    one_further.segmented_control(key="field_show").set_value(
        "norms"
    ).run()  # two things really chosen at once
    assert (place(one_further), shown(one_further)["show"]) == ((3, 4), "norms")


def test_what_was_selected_while_its_list_was_filled_in_stays():
    """The browser takes the filling, which comes after what was selected, and sends that with the next click."""
    at = open_page("pages/find_a_head.py", query=7, key=5)
    step_head(at)  # fills the list in for the second time
    at.selectbox(key="field_key").set_value(3).run()
    assert at.selectbox(key="field_key").proto.set_value  # told again, so that the browser shows it
    at.selectbox(key="field_key").set_value(5)
    step_head(at)
    assert (shown(at)["key"], at.selectbox(key="field_key").value) == ("3", 3)
    at.selectbox(key="field_key").set_value(5).run()  # alone it is a choice again
    assert shown(at)["key"] == "5"


def test_the_label_of_an_option_that_is_gone_is_not_taken():
    at = open_page("pages/find_a_head.py", query=7, key=5)
    at.selectbox(key="field_query").set_value(8).run()
    last = at.selectbox(key="field_query_to")  # from 8 on, while the browser still holds the 7 of before
    last.options = ["it·7"]
    last.set_value("it·7")
    step_head(at)
    assert_no_exception(at)
    assert shown(at)["query"] == "8"
    assert "query_to" not in shown(at)


def test_what_a_page_is_filled_with_reaches_a_browser_that_missed_its_first_drawing():
    """Streamlit drops what it has not sent yet when the page is drawn anew, and with it what a field holds."""
    at = open_page("pages/query_key_map.py", method="pca", space="centred")
    sent = []
    for _ in range(3):
        sent.append(
            [at.selectbox(key="field_method").proto.set_value, at.text_area(key="field_text").proto.set_value]
        )
        at.run()
    assert sent == [[True, True], [True, False], [False, False]]  # once where a text may be being typed


def test_a_field_reads_no_other_value(one_further, monkeypatch):
    read = []
    everything = SessionState.filtered_state
    noted = property(lambda self: read.append(self) or everything.fget(self))
    monkeypatch.setattr(SessionState, "filtered_state", noted)
    step_head(one_further)
    assert place(one_further) == (2, 6)
    assert read == []


def between_two_uploaders():
    """A message after the one with a file, before the page is drawn: the uploader of that file has changed, for its bytes are gone."""
    from ui.rooms.many_texts import own_corpora
    from ui.session import of_session
    from ui.shell import bundles

    refused, own = of_session(bundles.Uploads), of_session(own_corpora.OwnSentences)
    refused.n_brought, refused.problem = 1, "No bundle."
    bundles._open()
    own.n_file, own.problem = 1, "No text."
    own_corpora._take_lines_file()


def test_a_file_that_was_refused_is_not_looked_for_again_and_the_reason_stays():
    at = AppTest.from_function(between_two_uploaders, default_timeout=WAIT_SECONDS).run()
    assert_no_exception(at)
    assert at.session_state["ui.shell.bundles.Uploads"].problem == "No bundle."
    assert at.session_state["ui.rooms.many_texts.own_corpora.OwnSentences"].problem == "No text."


class TestAnotherPage:
    """The links of a page lead to what it showed when they were drawn."""

    def opened(self, at, **link):
        """The page that a click on the menu leads to, with the link that the menu has."""
        at.query_params.clear()
        at.query_params.update(link)
        at.switch_page("pages/find_a_head.py").run()
        assert_no_exception(at)
        return at

    def test_shows_what_was_clicked_just_before(self, monkeypatch):
        monkeypatch.setattr(
            state, "LATE_SECONDS", 3600.0
        )  # a run may take longer than those of a real visitor
        at = open_page(layer=2, head=4)
        before = shown(at)
        at.query_params.clear()
        step_head(at)
        assert place(self.opened(at, **before)) == (2, 5)

    def test_but_back_on_the_same_page_leads_back(self):
        at = open_page(layer=2, head=4)
        before = shown(at)
        at.query_params.clear()
        step_head(at)
        at.query_params.clear()
        at.query_params.update(before)
        assert place(at.run()) == (2, 4)

    def test_shows_what_a_link_says_that_the_page_before_never_had(self):
        at = open_page(layer=2, head=4)
        other = shown(at) | {"head": "7"}
        at.query_params.clear()
        step_head(at)
        assert place(self.opened(at, **other)) == (2, 7)

    def test_shows_what_was_there_long_ago(self, monkeypatch):
        """Back in the browser, over several pages at once."""
        at = open_page(layer=2, head=4)
        before = shown(at)
        at.query_params.clear()
        step_head(at)
        monkeypatch.setattr(state, "LATE_SECONDS", 0.0)
        assert place(self.opened(at, **before)) == (2, 4)

    def test_keeps_no_link_for_long(self, monkeypatch):
        """A link holds the whole text, and a page may be open for hours."""
        monkeypatch.setattr(state, "LATE_SECONDS", 0.0)
        at = open_page(layer=2, head=4)
        for _ in range(3):
            step_head(at)
        assert len(at.session_state["ui.session.Link"].replaced) == 1
