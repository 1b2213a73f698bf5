"""The film of one head in Chromium: played, stopped, stepped, dragged, by pointer, finger and keyboard."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import DOOR, wait_until_drawn

PLACE = {"text": DOOR, "layer": 3, "head": 1, "query": 7, "key": 5}
NAMES = ("Vector", "Query, key, value", "Products", "Scaling", "Softmax", "Weighted values", "Output")


def film(page):
    return page.locator(".st-key-head_film")


def picture(page):
    return film(page).locator(".screen svg")


def slider(page):
    return film(page).get_by_role("slider", name="Stage of the film")


def button(page, name):
    return film(page).get_by_role("button", name=name, exact=True)


@pytest.fixture
def still(visitors):
    """The window of a person who wants no motion: where the film goes is what counts, not the way."""
    return visitors(motion=False)


def open_film(page, server, **params):
    """At the first step, which has the film at its first stage and no chart to wait for."""
    page.goto(f"{server}/step_by_step?{urlencode(PLACE | {'step': 1} | params)}")
    expect(picture(page)).to_be_visible(timeout=LOAD_MS)
    wait_until_drawn(page)


def stage(page, number):
    """Waits until this stage is shown and at rest."""
    expect(slider(page)).to_have_value(str(number - 1))
    expect(slider(page)).to_have_attribute("aria-valuetext", NAMES[number - 1])
    expect(film(page).locator(".live")).to_contain_text(f"{NAMES[number - 1]}. ")


def texts(page):
    """What can be read in the picture now."""
    return picture(page).evaluate("""svg => [...svg.querySelectorAll('text')]
        .filter(text => text.getAttribute('visibility') === 'visible' && Number(text.getAttribute('opacity')) > 0.99)
        .map(text => text.textContent)""")


def moments(page):
    """Notes where the slider is at every frame."""
    slider(page).evaluate("""slider => {
        window.moments = [];
        const note = () => { window.moments.push(Number(slider.value)); window.noting = requestAnimationFrame(note); };
        note();
    }""")


def noted(page):
    return page.evaluate("cancelAnimationFrame(window.noting), window.moments")


@pytest.mark.nightly
def test_it_plays_when_asked_and_stops_at_the_end(page, server):
    open_film(page, server)
    stage(page, 1)
    moments(page)
    button(page, "Play").click()
    expect(button(page, "Pause")).to_be_visible()
    expect(slider(page)).to_have_value("6", timeout=LOAD_MS)  # 3.5 s a stage, more where frames are rare
    stage(page, 7)
    expect(button(page, "Play")).to_be_visible()
    seen = noted(page)
    assert seen == sorted(seen)
    assert len({moment for moment in seen if moment % 1}) > 10
    expect(button(page, "Next")).to_be_disabled()
    button(page, "Play").click()  # once more
    expect(slider(page)).not_to_have_value("6")
    expect(button(page, "Pause")).to_be_visible()


@pytest.mark.nightly
def test_pause_comes_to_rest_where_every_number_is_real(page, server, door_trace):
    open_film(page, server)
    button(page, "Play").click()
    page.wait_for_function("slider => Number(slider.value) > 1.4", arg=slider(page).element_handle())
    button(page, "Pause").click()
    expect(button(page, "Play")).to_be_visible()
    page.wait_for_function("slider => Number(slider.value) % 1 === 0", arg=slider(page).element_handle())
    at = int(slider(page).input_value())
    assert 1 <= at <= 5  # how far it went before the button was pressed
    moments(page)
    expect(slider(page)).to_have_value(str(at))
    assert set(noted(page)) == {at}


def as_written(number):
    """Three digits with a leading zero, and powers of ten below a thousandth."""
    if abs(number) >= 0.001:
        return f"{number:#.3g}".replace("-", "−")
    digits, exponent = f"{number:.1e}".split("e-")
    power = exponent.lstrip("0").translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}\u00a0×\u00a010⁻{power}".replace("-", "−")


@pytest.mark.nightly
def test_numbers_are_the_models(still, server, door_trace):
    """In each stage, read from the screen."""
    q, k = door_trace.query(3, 1)[7].astype(float), door_trace.key(3, 1)
    scores, weights = door_trace.scores(3, 1)[7], door_trace.weights(3, 1)[7]
    open_film(still, server)
    button(still, "Next").click()
    expected = {3: k @ q, 4: scores, 5: weights, 6: weights, 7: weights}
    for number in range(2, 8):
        stage(still, number)
        drawn = texts(still)
        labels = [text for text in drawn if re.search(r"·\d+$", text)]
        assert labels == ["it·7", *(f"{label}·{at}" for at, label in enumerate(door_trace.tokens.labels))]
        if number in expected:
            written = [as_written(value) for value in expected[number]]
            shown = [text for text in drawn if text in written]
            assert len(shown) >= len(written) and set(shown) == set(written), number
        if number < 7:
            button(still, "Next").click()
    first = as_written(door_trace.output(3, 1)[7, 0])
    assert any(text.startswith(f"{first}\u00a0") for text in texts(still))


@pytest.mark.nightly
def test_back_and_next_and_the_names(page, server):
    open_film(page, server)
    expect(button(page, "Back")).to_be_disabled()
    button(page, "Next").click()
    stage(page, 2)
    button(page, "Next").click()
    button(page, "Next").click()  # before the motion has ended
    stage(page, 4)
    button(page, "Back").click()
    stage(page, 3)
    film(page).get_by_role("button", name="f. Weighted values").click()
    stage(page, 6)


@pytest.mark.nightly
def test_a_drag_follows_the_pointer_and_comes_to_rest(page, server):
    open_film(page, server)
    box = slider(page).bounding_box()
    at = lambda share: box["x"] + 8 + share * (box["width"] - 16)  # noqa: E731
    y = box["y"] + box["height"] / 2
    page.mouse.move(at(0), y)
    page.mouse.down()
    page.mouse.move(at(5.5 / 6), y, steps=8)
    is_there = "slider => Math.abs(Number(slider.value) - 5.5) <= 0.1"
    page.wait_for_function(is_there, arg=slider(page).element_handle())
    flying = picture(page).locator("use[visibility=visible]")
    expect(flying).to_have_count(11)  # every value is on its way to the sum
    page.mouse.move(at(5.2 / 6), y)
    page.mouse.up()
    stage(page, 6)
    expect(flying).to_have_count(0)


@pytest.mark.nightly
def test_the_keyboard_alone(still, server):
    open_film(still, server)
    film(still).locator(".screen").focus()
    for number in (2, 3):
        still.keyboard.press("ArrowRight")
        stage(still, number)
    still.keyboard.press("ArrowLeft")
    stage(still, 2)
    still.keyboard.press("End")
    stage(still, 7)
    still.keyboard.press("Home")
    stage(still, 1)
    still.keyboard.press("Space")
    expect(button(still, "Pause")).to_be_visible()
    still.keyboard.press("Space")
    expect(button(still, "Play")).to_be_visible()
    slider(still).focus()
    before = round(float(slider(still).input_value()))
    still.keyboard.press("ArrowRight")
    stage(still, before + 2)
    button(still, "Back").focus()
    still.keyboard.press("Space")  # the button's own
    stage(still, before + 1)


@pytest.mark.nightly
def test_without_motion_it_switches(still, server):
    open_film(still, server)
    moments(still)
    button(still, "Next").click()
    stage(still, 2)
    button(still, "Play").click()
    still.wait_for_function("slider => Number(slider.value) >= 3", arg=slider(still).element_handle())
    button(still, "Pause").click()
    expect(button(still, "Play")).to_be_visible()
    stage(still, int(slider(still).input_value()) + 1)
    assert all(moment == int(moment) for moment in noted(still))
    expect(picture(still).locator("use[visibility=visible]")).to_have_count(0)


@pytest.mark.nightly
def test_the_stage_stays_when_another_head_or_query_is_selected(page, server):
    open_film(page, server)
    film(page).get_by_role("button", name="e. Softmax").click()
    stage(page, 5)
    page.get_by_role("button", name=re.compile(r"^token 5: ")).click()
    expect(film(page).locator(".live")).to_contain_text("“door” gives")
    wait_until_drawn(page)
    stage(page, 5)


@pytest.mark.nightly
def test_numbers_of_a_strip_are_read_by_pointer_and_finger(page, server, door_trace):
    open_film(page, server)
    film(page).get_by_role("button", name="b. Query, key, value").click()
    stage(page, 2)
    cell = picture(page).locator("[data-strip][visibility=visible]").nth(0).locator("[data-cell='3']")
    number = f"{door_trace.query(3, 1)[7, 3]:#.3g}".replace("-", "−")
    readout = film(page).locator(".readout")
    cell.hover()
    expect(readout).to_have_text(f"q of it·7, dimension 3: {number}")
    page.mouse.move(0, 0)
    expect(readout).to_contain_text("Hover over")
    cell.click()
    expect(readout).to_have_text(f"q of it·7, dimension 3: {number}")


@pytest.mark.nightly
def test_on_a_phone(visitors, server):
    page = visitors(width=400, height=800, colours="dark", motion=False)
    open_film(page, server)
    film(page).get_by_role("button", name="e. Softmax").click()
    stage(page, 5)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for element in film(page).locator("button").all():
        box = element.bounding_box()
        assert box["width"] >= 32 and box["height"] >= 32
    height = film(page).bounding_box()["height"]
    inside = picture(page).evaluate("""svg => {
        const outer = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('text[visibility=visible]')].every(text => {
            const box = text.getBoundingClientRect();
            return box.left >= outer.left - 1 && box.right <= outer.right + 1 && parseFloat(getComputedStyle(text).fontSize) >= 12;
        });
    }""")
    for number in range(1, 8):
        film(page).get_by_role("button", name=re.compile(rf"^{'abcdefg'[number - 1]}\. ")).click()
        stage(page, number)
        assert film(page).bounding_box()["height"] == height
        words = film(page).locator(".live")
        assert words.evaluate("element => element.scrollHeight <= element.clientHeight + 1"), number
    assert inside


@pytest.mark.nightly
def test_its_look_is_in_its_attributes(page, server):
    """Saved as it is, with no style sheet, it looks the same."""
    open_film(page, server)
    copied = picture(page).evaluate("""svg => {
        const copy = new DOMParser().parseFromString(new XMLSerializer().serializeToString(svg), 'image/svg+xml');
        const texts = [...copy.querySelectorAll('text')];
        const wanted = [...copy.querySelectorAll('use')].map(use => use.getAttribute('href').slice(1));
        return {
            root: copy.documentElement.tagName,
            black: texts.filter(text => !text.getAttribute('fill')).length,
            lost: wanted.filter(id => !copy.getElementById(id)).length,
            flying: wanted.length,
        };
    }""")
    assert copied == {"root": "svg", "black": 0, "lost": 0, "flying": 22}


@pytest.mark.nightly
def test_hostile_tokens_are_text(page, server):
    open_film(page, server, model="hostile", text="the <b> $x^2$ door", layer=2, head=1, query=2, key=3)
    film(page).get_by_role("button", name="c. Products").click()
    stage(page, 3)
    assert "<b>·2" in texts(page)
    expect(film(page).locator(".live")).to_contain_text("q · k of “<b>” and “$x^2$” = ")
    expect(film(page).locator(".live").locator("b")).to_have_count(1)  # the stage's name
