"""The page "Compare" in a real browser: a link as the first visit, B's own choices, and picking a change."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.screen import DOOR, link, plot, wait_for_link, wait_until_drawn

pytestmark = pytest.mark.nightly

PARTS = ("first", "second", "difference")
WINDOW = "I was watching the window when it opened."


def open_compare(page, server, **params):
    page.goto(f"{server}/compare?{urlencode(params)}")
    wait_until_drawn(page, "compare")


def finding(page):
    return page.locator(".st-key-finding")


def changes(page):
    return page.get_by_role("list", name="Largest changes from A to B").get_by_role("button")


def point_of_cell(page, part, row, column):
    plot(page, f"compare_{part}").scroll_into_view_if_needed()
    return page.evaluate(
        """([part, row, column]) => {
            const plot = document.querySelector(`.st-key-compare_${part} .js-plotly-plot`);
            const {xaxis, yaxis} = plot._fullLayout, box = plot.getBoundingClientRect();
            return [box.x + xaxis._offset + xaxis.l2p(column), box.y + yaxis._offset + yaxis.l2p(row)];
        }""",
        [part, row, column],
    )


def hover(page, part, row, column):
    x, y = point_of_cell(page, part, row, column)
    page.mouse.move(x - 1, y)  # Plotly takes a click for a cell it has seen the pointer on
    page.mouse.move(x, y)
    label = page.locator(f".st-key-compare_{part} .hoverlayer .hovertext").first
    expect(label).to_be_visible()
    return label


def test_a_link(server, page):
    open_compare(page, server, text=DOOR, layer=3, head=1, query=7, key=5, other_text=WINDOW)

    expect(finding(page)).to_have_text(
        "“it” → “door” (in B “window”): 47.5% in A, 11.4% in B. B has another sentence"
    )
    expect(page.get_by_label("Sentence B", exact=True)).to_have_value(WINDOW)
    expect(changes(page).first).to_have_accessible_name("1 it·7 → door→window·5 0.475 → 0.114")
    assert link(page)["other_text"] == WINDOW
    expect(page).to_have_title("Side by side · Compare · attnviz")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_head_of_b_is_changed(page, server):
    open_compare(page, server, text=DOOR, layer=3, head=1, query=7, key=5)
    expect(finding(page)).to_have_text("“it” → “door”: 47.5% in L3 H1, 1.7% in L3 H2")

    field = page.get_by_role("spinbutton", name="Head of B")
    field.fill("4")
    field.press("Enter")
    wait_for_link(page, other_head=4)
    expect(finding(page)).to_contain_text("in layer 3, head 4")
    assert link(page)["head"] == "1"

    page.get_by_role("button", name="Swap A and B").click()
    wait_for_link(page, head=4, other_head=1, query=7, key=5)
    expect(finding(page)).to_contain_text("to 47.5% in layer 3, head 1")
    expect(field).to_have_value("1")


def test_a_change_is_picked_by_mouse_and_by_keyboard(page, server):
    open_compare(page, server, text=DOOR, layer=3, head=1, query=7, key=5)
    changes(page).nth(0).click()
    wait_for_link(page, query=8, key=5)
    expect(finding(page)).to_contain_text("“opened” → “door”: 75.9%")
    expect(changes(page).nth(0)).to_have_attribute("aria-pressed", "true")

    changes(page).nth(1).focus()
    page.keyboard.press("Enter")
    wait_for_link(page, query=5, key=0)
    expect(finding(page)).to_contain_text("“door” → “[CLS]”: 90.5%")


def test_a_cell_of_any_matrix_picks_and_says_both_numbers(page, server):
    open_compare(page, server, text=DOOR, layer=3, head=1, query=7, key=5)
    for part, row, column, numbers in (
        ("first", 8, 5, ("A: weight 0.759", "B: weight 0.0")),
        ("second", 4, 5, ("A: weight 0.5", "B: weight 0.0")),
        ("difference", 2, 3, ("A to B: weight 0.3", "B − A: -0.3")),
    ):
        label = hover(page, part, row, column)
        for number in numbers:
            expect(label).to_contain_text(number)
        page.mouse.click(*point_of_cell(page, part, row, column))
        wait_for_link(page, query=row, key=column)
        wait_until_drawn(page)


def test_matrices_stand_side_by_side_and_on_a_phone_below_each_other(page, visitors, server):
    open_compare(page, server, text=DOOR, layer=3, head=1)
    boxes = [plot(page, f"compare_{part}").bounding_box() for part in PARTS]
    assert len({round(box["y"]) for box in boxes}) == 1
    assert all(box["y"] + box["height"] <= 900 for box in boxes)  # above the fold

    phone = visitors(width=400)
    open_compare(phone, server, text=DOOR, layer=3, head=1)
    field = phone.locator(".st-key-compare_differs")
    room = field.bounding_box()
    for what in ("Head", "Layer", "Sentence", "Model", "Masked tokens"):
        pill = field.get_by_role("radio").filter(has_text=what).last.bounding_box()
        assert pill["x"] >= room["x"] and pill["x"] + pill["width"] <= room["x"] + room["width"]
    boxes = [plot(phone, f"compare_{part}").bounding_box() for part in PARTS]
    assert len({round(box["x"]) for box in boxes}) == 1
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 400 for box in boxes)
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"] < boxes[2]["y"]
