"""What a browser has before the server has run anything: title, style and where the server is."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS, running_server
from tests.browser.screen import finding, wait_until_drawn
from ui.part import part_named
from ui.shell.first_look import PURPOSE

pytestmark = pytest.mark.nightly


def test_is_in_our_style_before_the_first_script_has_run(server, visitors):
    page = visitors(alone=True)
    page.route_web_socket("**/_stcore/stream", lambda _: None)  # a server that never answers
    page.goto(f"{server}/compare")

    expect(page).to_have_title("Side by side · Compare · attnviz")
    first_look = page.locator("#first_look")
    expect(first_look.get_by_text("Compare", exact=True)).to_be_in_viewport()
    for words in (part_named("Side by side").question, PURPOSE, "Loading the page."):
        expect(first_look.get_by_text(words)).to_be_in_viewport()
    content = page.locator(".stMain")
    expect(content).to_be_attached()
    assert content.bounding_box()["x"] == 220  # the menu has its place


def test_an_address_of_no_page_shows_the_first_one(server, visitors):
    page = visitors(alone=True)
    with page.expect_console_message(lambda message: "does not seem to exist" in message.text):
        page.goto(f"{server}/no_such_page")
    wait_until_drawn(page, "")
    expect(page.get_by_role("dialog")).to_contain_text("Page not found")
    page.keyboard.press("Escape")
    assert page.locator(".stMain").bounding_box()["x"] == 220
    expect(page.locator(".st-key-head_rail image").first).to_be_visible()  # components have their scripts
    visitors.wrong.clear()  # Streamlit writes what it says into the console, too


@pytest.fixture
def below_a_path(tmp_path):
    with running_server(tmp_path / "log.txt", STREAMLIT_SERVER_BASE_URL_PATH="class/attention") as address:
        yield address


def test_finds_the_server_where_all_pages_are_below_a_path(below_a_path, visitors):
    page = visitors(alone=True)
    page.goto(f"{below_a_path}/compare?layer=4")
    wait_until_drawn(page, "compare")

    expect(page).to_have_title("Side by side · Compare · attnviz")
    expect(page.get_by_test_id("stHeading").first).to_have_text("Compare")
    expect(page.locator("#first_look")).to_be_hidden()
    page.get_by_test_id("stSidebar").get_by_role("link", name="Explore", exact=True).click()
    expect(page).to_have_title(part_named("Together").title, timeout=LOAD_MS)
    expect(finding(page)).to_contain_text("Layer 4", timeout=LOAD_MS)
    visitors.leave()
