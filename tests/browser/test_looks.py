"""Narrow windows and the dark theme: nothing overlaps, leaves the window or cannot be read."""

import re
from itertools import combinations, pairwise

import pytest
from playwright.sync_api import expect

from tests.browser.screen import (
    PLACES,
    chip,
    chips,
    expect_its_one_name,
    expect_soon,
    finding,
    open_screen,
    plot,
    point_of_cell,
    stage,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)
from tests.browser.test_pages import grave
from ui.rooms import PAGES

SIZES = {"wide": (1400, 900), "laptop": (1366, 768), "tablet": (768, 1024), "phone": (400, 800)}
SMALLEST_TEXT = 12  # px
LEAST_CONTRAST = 3.0  # of text and background, WCAG 2.2, success criterion 1.4.3, for large text and figures

TEXTS = """() => {
    const texts = [];
    const rgba = colour => { // "rgb(14, 17, 23)"; of a mixed colour "color(srgb 0.05 0.07 0.09 / 0.5)"
        const [r, g, b, a = 1] = colour.match(/[\\d.e-]*\\d/g).map(Number), most = colour.startsWith("color(srgb ") ? 255 : 1;
        return [most * r, most * g, most * b, a];
    };
    const over = (top, below) => [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * below[i]);
    const parent = element => element.parentElement ?? element.getRootNode().host;
    const background = element => {
        const layers = [];
        for (let at = element; at; at = parent(at)) layers.push(rgba(getComputedStyle(at).backgroundColor));
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const opacity = element => {
        let product = 1;
        for (let at = element; at; at = parent(at)) product *= Number(getComputedStyle(at).opacity);
        return product;
    };
    const light = rgb => {
        const [r, g, b] = rgb.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const readTexts = root => {
        const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
        for (let element = walker.currentNode; element; element = walker.nextNode()) {
            if (element.shadowRoot) readTexts(element.shadowRoot);
            const own = [...(element.childNodes ?? [])].filter(n => n.nodeType === 3).map(n => n.data).join("").trim();
            if (!own || !(element instanceof Element) || element.closest("style, script, annotation")) continue;
            const style = getComputedStyle(element), box = element.getBoundingClientRect();
            if (!box.width || !box.height || style.visibility === "hidden") continue;
            if (element.closest("[aria-hidden=true]")) continue;
            // On a picture, whose colours are not the page's: tests/unit/test_ink.py has those.
            if (element.closest(".textpoint") && element.closest(".js-plotly-plot")?.querySelector(".heatmaplayer image")) continue;
            if (element.closest("[data-testid=stSliderThumbValue]")) continue; // it hangs above the knob that it is in
            const svg = element instanceof SVGElement, plate = element.previousElementSibling;
            const fill = svg && plate?.localName === "rect" ? getComputedStyle(plate) : {fill: "none"};
            const plated = () => { const [r, g, b, a] = rgba(fill.fill); return [r, g, b, a * fill.fillOpacity]; };
            const behind = fill.fill === "none" ? background(element) : over(plated(), background(element));
            const colour = rgba(svg ? style.fill : style.color);
            colour[3] *= opacity(element);
            if (colour[3] === 0) continue; // what Streamlit shows only while a slider is held
            const [a, b] = [light(over(colour, behind)), light(behind)].sort((x, y) => y - x);
            texts.push({text: own.slice(0, 40), size: parseFloat(style.fontSize), svg,
                        contrast: (a + 0.05) / (b + 0.05)});
        }
    };
    readTexts(document.body);
    return texts;
}"""


def resize(page, size):
    """Changes the window and waits until nothing moves."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.wait_for_function("width => innerWidth === width", arg=size[0])
    wait_until_drawn(page)
    wait_until_still(page)


def assert_fits_and_can_be_read(page, path):
    width, window = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
    assert width <= window
    main = page.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
    expect_soon(page, lambda page: page.evaluate(SCROLLED_CHARTS), [])
    expect_soon(page, lambda page: what_cannot_be_read(page, path), [])


SCROLLED_CHARTS = """() => [...document.querySelectorAll(".plotly_figure")]
    .map(figure => figure.closest(".stElementContainer"))
    .filter(place => place.scrollHeight > place.clientHeight + 1)
    .map(place => place.className)"""
"""What is in a place too low for its figure and the lines below that."""


def what_cannot_be_read(page, path):
    """Texts that are too small or too faint; charts take on another theme a moment after the page."""
    texts = page.evaluate(TEXTS)
    assert len(texts) > 20
    assert any(text["svg"] for text in texts) or path in ("glossary", "generation")
    small = [text for text in texts if text["size"] < SMALLEST_TEXT and text["svg"]]
    faint = [text for text in texts if text["contrast"] < LEAST_CONTRAST]
    return small + faint


NOTE_SHIFTS = """window.shifted = 0;
new PerformanceObserver(list => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({type: "layout-shift", buffered: true});"""


PATHS = [part.address for part in PAGES]
SMOLLM2 = "SmolLM2-135M-Instruct"
FIRST_VISITS = (
    *((path, {}) for path in PATHS),
    *(
        (path, {"model": SMOLLM2})
        for path in ("", "all_heads", "effects", "patching", "lens", "inputs", "generation")
    ),
)


@pytest.mark.nightly  # how much moves depends on how quickly the parts of a page come
@pytest.mark.parametrize(("path", "params"), FIRST_VISITS)
def test_little_moves_on_a_first_visit(visitors, server, path, params):
    """In a window of a laptop that has drawn nothing yet, not even Streamlit's own parts."""
    page = visitors(width=SIZES["laptop"][0], height=SIZES["laptop"][1], alone=True)
    page.add_init_script(NOTE_SHIFTS)
    open_screen(page, server, path, **PLACES.get(path, {}), **params)
    assert page.evaluate("window.shifted") < 0.1  # a good score: web.dev, "Cumulative Layout Shift"


def assert_its_heading_says_whether_its_numbers_are_the_model_s(page):
    verdict_link = page.locator("[class*=st-key-page_head]").first.get_by_role("link", name="weights within")
    expect(verdict_link).to_contain_text("Checked: 13 comparisons, weights within")


def assert_joined_buttons_and_the_fields_beside_them_are_on_a_line(page):
    main = page.get_by_test_id("stMain")
    joined = main.locator("[role=radio]:not(.st-key-preset_choice *)").first.bounding_box()
    more = main.get_by_role("button", name="More", exact=False).first.bounding_box()
    assert joined["y"] == pytest.approx(more["y"], abs=1)
    assert joined["height"] == pytest.approx(more["height"], abs=1)


def assert_no_space_stands_between_a_number_and_its_percent_sign(page):
    written = page.get_by_test_id("stMain").inner_text()
    assert re.search(r"\d%", written)
    assert re.findall(r".*\d\s%.*", written) == []


def change_theme(page, colours):
    """Changes what the browser prefers, and waits until the page is drawn in it."""
    page.emulate_media(color_scheme=colours)
    expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", colours)
    expect(page.locator(f".page[data-theme={colours}]")).to_be_attached()
    wait_until_drawn(page)
    wait_until_still(page)


@pytest.mark.nightly
@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_its_name_fits_every_window_and_can_be_read_in_both_themes(visitors, server, path):
    """Opened on a laptop and made smaller in the light; on a phone and made larger in the dark."""
    page = visitors(width=SIZES["wide"][0], height=SIZES["wide"][1])
    open_screen(page, server, path, **PLACES.get(path, {}))
    wait_until_still(page)
    assert_fits_and_can_be_read(page, path)
    assert grave(page) == []
    expect_its_one_name(page, path)
    if path in ("all_heads", "find_a_head", "token_flow", "compare"):
        assert_its_heading_says_whether_its_numbers_are_the_model_s(page)
    if path in ("query_key_map", "token_flow", "all_maps", "kinds_of_attention"):
        assert_joined_buttons_and_the_fields_beside_them_are_on_a_line(page)
    for size in ("laptop", "tablet", "phone"):
        resize(page, SIZES[size])
        assert_fits_and_can_be_read(page, path)
    if path in ("", "token_flow", "claims", "history"):
        assert_no_space_stands_between_a_number_and_its_percent_sign(page)
    change_theme(page, "dark")
    assert_fits_and_can_be_read(page, path)
    assert grave(page) == []
    resize(page, SIZES["laptop"])
    assert_fits_and_can_be_read(page, path)


POPOVERS = {
    "Reading and map": ("stage_more", "Perplexity"),
    "More input": ("more_input_0", "Second sentence"),
    "Export": ("take_popover", "Download bundle (.zip)"),
}
"""Key of each popover of the first screen, and something that is written in it."""


@pytest.mark.nightly
def test_the_tour_and_every_open_popover_pass_axe_in_both_themes(visitors, server):
    page = visitors(width=1366, height=768)
    open_screen(page, server, tour=2)
    for colours in ("light", "dark"):
        if colours == "dark":
            change_theme(page, colours)
        expect(page.get_by_role("region", name="Tour")).to_contain_text("2 of 6")
        assert grave(page) == []
        for name, (key, written) in POPOVERS.items():
            page.locator(f".st-key-{key}").get_by_role("button").first.click()
            body = page.get_by_test_id("stPopoverBody")
            expect(body).to_contain_text(written)
            wait_until_still(page)  # it fades in, and what is half there is faint
            assert grave(page) == [], name
            page.keyboard.press("Escape")
            expect(body).to_be_hidden()
        page.get_by_role("button", name="Options").click()
        expect(page.get_by_role("region", name="Options")).to_be_visible()
        assert grave(page) == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("region", name="Options")).to_be_hidden()


def assert_nothing_lies_over_the_chips_and_headings(page, size):
    boxes = {
        "header": page.get_by_test_id("stHeader").bounding_box(),
        "selected token": chip(page, 7).bounding_box(),  # the others are scrolled to
        "finding": finding(page).bounding_box(),
        "matrix": page.locator(".viewer .matrix").bounding_box(),
        "ranking": page.locator(".viewer .ranking").bounding_box(),
        "map": plot(page, "map").bounding_box(),
    }

    for name, box in boxes.items():
        assert box["width"] > 20, name
        assert box["x"] >= 0 and box["x"] + box["width"] <= size[0] + 0.5, name
    if boxes["header"]["width"] > 300 and size[0] <= 768:  # a bar that lies over the page
        assert boxes["selected token"]["y"] >= boxes["header"]["y"] + boxes["header"]["height"]
    assert boxes["finding"]["y"] >= boxes["selected token"]["y"] + boxes["selected token"]["height"]
    assert boxes["matrix"]["y"] >= boxes["finding"]["y"] + boxes["finding"]["height"]
    matrix, ranking = boxes["matrix"], boxes["ranking"]
    is_beside = ranking["x"] >= matrix["x"] + matrix["width"]
    assert is_beside or ranking["y"] >= matrix["y"] + matrix["height"]


def assert_labels_of_the_axes_do_not_lie_on_each_other(page):
    boxes = page.locator(".viewer .matrix .rows text").evaluate_all(
        "all => all.map(element => element.getBoundingClientRect()).map(box => [box.top, box.bottom])"
    )
    boxes.sort()
    assert len(boxes) == 11
    for (_, bottom), (top, _) in pairwise(boxes):
        assert top >= bottom - 2


@pytest.mark.nightly
def test_nothing_lies_over_anything_on_the_first_screen(visitors, server):
    first, *others = reversed(SIZES.values())
    page = visitors(width=first[0], height=first[1])
    open_screen(page, server)
    for size in (first, *others):
        resize(page, size)
        assert_nothing_lies_over_the_chips_and_headings(page, size)
        assert_labels_of_the_axes_do_not_lie_on_each_other(page)


def test_chips_can_be_tapped_and_cells_clicked_on_a_phone(visitors, server):
    page = visitors(width=400, height=800)
    open_screen(page, server)
    expect(chips(page)).to_have_count(11)
    wait_until_still(page)
    for element in chips(page).all():
        box = element.bounding_box()
        assert box["height"] >= 32 and box["width"] >= 32
    x, y = point_of_cell(page, 8, 5)
    page.mouse.click(x, y)
    wait_for_link(page, query=8, key=5)
    expect(finding(page)).to_contain_text(": “opened” ")


@pytest.mark.nightly
def test_the_buttons_of_a_table_cover_nothing_on_a_phone(visitors, server):
    page = visitors(width=400, height=800, alone=True)
    page.context.new_cdp_session(page).send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    open_screen(page, server, "kinds_of_attention")
    assert page.evaluate("matchMedia('(hover: none)').matches")
    table = page.get_by_test_id("stDataFrame").first
    buttons = page.get_by_test_id("stElementToolbar").filter(visible=True).last
    expect(buttons).to_be_visible()
    wait_until_still(page)
    field = page.get_by_role("spinbutton", name="Tiles read").bounding_box()
    assert buttons.bounding_box()["y"] >= field["y"] + field["height"]
    assert table.bounding_box()["y"] > buttons.bounding_box()["y"]


LABELS = """key => [...document.querySelectorAll(`.st-key-${key} .textpoint text`)]
    .filter(element => element.textContent)
    .map(element => [element.textContent, element.getBoundingClientRect(), getComputedStyle(element).visibility === "visible"])
    .map(([text, {left, right, top, bottom}, isShown]) => ({text, left, right, top, bottom, isShown}))"""
MARKS = """key => [...document.querySelectorAll(`.st-key-${key} .points path.point`)]
    .map(element => element.getBoundingClientRect())
    .map(({left, right, top, bottom}) => ({left, right, top, bottom}))"""
ENDS = {"it·7", "[CLS]·0", "door·5", ".·9", "[SEP]·10"}  # labels at the ends of lines
WIDEST = {"it·7", "[CLS]·0"}  # those of the widest line stay


def shares(label, other, across, down):
    """Whether a box shares more than so many px with another, in both directions; negative where they are apart."""
    width = min(label["right"], other["right"]) - max(label["left"], other["left"])
    return width > across and min(label["bottom"], other["bottom"]) - max(label["top"], other["top"]) > down


def misplaced(shown, frame):
    """Labels that leave the chart, and pairs that lie on each other."""
    wrong = [
        value
        for value in shown
        if value["left"] < frame["x"] - 1.1 or value["right"] > frame["x"] + frame["width"] + 1.1
    ]
    for first, second in combinations(shown, 2):
        if {first["text"], second["text"]} <= ENDS:
            continue
        across = min(first["right"], second["right"]) - max(first["left"], second["left"])
        down = min(first["bottom"], second["bottom"]) - max(first["top"], second["top"])
        sizes = [(at["right"] - at["left"]) * (at["bottom"] - at["top"]) for at in (first, second)]
        if max(across, 0) * max(down, 0) > 0.101 * min(sizes):
            wrong.append((first, second))
    return wrong


@pytest.mark.nightly
def test_labels_of_a_map_do_not_lie_on_each_other_nor_leave_it(visitors, server):
    for width in (400, 1400):
        page = visitors(width=width)
        for path, key in (("", "map"), ("query_key_map", "space_map")):
            open_screen(page, server, path)
            # Labels find their room after the chart is drawn.
            expect_soon(page, lambda page, key=key: wrong_labels(page, key), [])


def wrong_labels(page, key):
    """What is wrong with the labels of a map, and with the note that says whether some are hidden."""
    labels, frame = page.evaluate(LABELS, key), plot(page, key).bounding_box()
    shown = [label for label in labels if label["isShown"]]
    wrong = misplaced(shown, frame)
    named = {value["text"] for value in shown}
    if missing := WIDEST - named:
        wrong.append(missing)
    marks = page.evaluate(MARKS, key)
    for label in labels:  # others at the ends of lines stay where they have room
        lies_on = any(shares(label, mark, 3, 3) for mark in marks)
        has_room = not lies_on and not any(shares(label, other, -4, 1.5) for other in shown)
        if label["text"] in ENDS - named and has_room:
            wrong.append(f"{label['text']} is hidden and has room")
    if len(shown) <= 10:
        wrong.append(f"only {len(shown)} labels")
    n_note = page.get_by_text(
        "Overlapping labels are hidden; hover over a point or tap it to see its label."
    ).count()
    if n_note != int(len(shown) < 22):
        wrong.append(f"{len(shown)} labels, and {n_note} notes")
    return wrong


@pytest.mark.nightly
def test_the_themes_are_two(visitors, server):
    """A page that is opened in one, and one that is open when the browser changes to it."""
    wanted = {
        "light": ["rgb(255, 255, 255)", "255,255,255,255"],
        "dark": ["rgb(14, 17, 23)", "14,17,23,255"],
    }
    for opened_in, changed_to in (("light", "dark"), ("dark", "light")):
        page = visitors(colours=opened_in)
        open_screen(page, server)
        expect_soon(page, shades, wanted[opened_in])
        change_theme(page, changed_to)
        expect_soon(page, shades, wanted[changed_to])


def shades(page):
    """The background of the page, and what stands between the cells of its matrix."""
    return [
        page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor"),
        stage(
            page,
            "(canvas => canvas.getContext('2d').getImageData(canvas.width - 1, 0, 1, 1).data.join())(viewer.parts.matrix.canvas)",
        ),
    ]
