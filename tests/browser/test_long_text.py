"""A text at the model's limit: an overview in which nothing strong is lost, and the way from there to single cells."""

import re
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOAD_MS
from tests.browser.screen import (
    chip,
    chips,
    click_cell,
    expect_soon,
    finding,
    hover_cell,
    hover_label,
    open_screen,
    plot,
    readout,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)

LONG = "the river flooded an old market twice; Paris reported 17 bridges, and nobody was surprised. " * 40
_CHART = "document.querySelector('.st-key-matrix .js-plotly-plot:has(.cartesianlayer)')"

# Red, green and blue of a picture's pixels added up, decoded by the browser itself.
PIXELS = """async () => {
    const image = document.querySelector('.st-key-matrix .layer-above image');
    const bitmap = await createImageBitmap(await (await fetch(image.getAttribute('href'))).blob());
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    canvas.drawImage(bitmap, 0, 0);
    const {data} = canvas.getImageData(0, 0, bitmap.width, bitmap.height);
    const sums = Array.from({length: data.length / 4}, (_, at) => data[4 * at] + data[4 * at + 1] + data[4 * at + 2]);
    return [bitmap.height, bitmap.width, sums];
}"""

# The largest weight of every 3 x 3 cells; taken in the browser, for 512 x 512 numbers take half a minute to fetch.
LARGEST = (
    "() => { const z = "
    + _CHART
    + """._fullData[0].z, largest = [];
    for (let row = 0; row < z.length; row += 3) {
        largest.push([]);
        for (let column = 0; column < z.length; column += 3) {
            const block = [0, 1, 2].flatMap(down => Array.from(z[row + down] ?? []).slice(column, column + 3));
            largest.at(-1).push(Math.max(...block));
        }
    }
    return largest;
}"""
)

# Middle, width, height and angle of every label, from what the browser has laid out.
LABELS = """axis => [...document.querySelectorAll(`.st-key-matrix .${axis}tick text`)].map(label => {
    const {x, y, width, height} = label.getBBox(), at = label.getScreenCTM();
    const middle = new DOMPoint(x + width / 2, y + height / 2).matrixTransform(at);
    return [middle.x, middle.y, width, height, Math.atan2(at.b, at.a)];
})"""


def shown_part(page):
    """Rows and columns that are shown, each [first, last]; once what was asked for is drawn."""
    x, y = page.evaluate(f"[{_CHART}._fullLayout.xaxis.range, {_CHART}._fullLayout.yaxis.range]")
    return sorted(y), sorted(x)


def wait_for_part(page, condition):
    page.wait_for_function(
        f"() => {{ const {{xaxis, yaxis}} = {_CHART}._fullLayout; return {condition}; }}", timeout=LOAD_MS
    )


def wait_for_this_part(page, part):
    """Waits until these rows and columns are shown."""
    page.wait_for_function(
        f"""part => [{_CHART}._fullLayout.yaxis, {_CHART}._fullLayout.xaxis].every(({{range}}, side) => {{
            const shown = [...range].sort((first, second) => first - second);
            return shown.every((limit, end) => Math.abs(limit - part[side][end]) < 0.1);
        }})""",
        arg=part,
        timeout=LOAD_MS,
    )


def weight_of(page, row, column):
    """The number of one cell, as Plotly has it."""
    return page.evaluate(f"([row, column]) => {_CHART}._fullData[0].z[row][column]", [row, column])


def overview_words(page):
    return page.locator(".st-key-matrix .annotation").filter(visible=True)


def zoom(page, name="Zoom in"):
    return page.get_by_role("button", name=name, exact=True)


# The picture is the same in every window, but not in every theme.
@pytest.mark.nightly
@pytest.mark.parametrize(("width", "colours"), [(400, "light"), (1400, "dark")])
def test_the_overview_shows_the_strongest_cell_of_every_block_and_labels_have_room(
    visitors, server, width, colours
):
    page = visitors(width=width, colours=colours)
    open_screen(page, server, text=LONG, cut=1)
    expect(overview_words(page)).to_have_text(
        re.compile("^Overview: each dot is the largest weight ?of 3 × 3 cells.")
    )

    largest = np.array(page.evaluate(LARGEST))
    rows, columns, data = page.evaluate(PIXELS)
    assert largest.shape == (rows, columns) == (171, 171)  # 512 tokens in threes
    pixels = np.array(data).reshape(rows, columns)
    order = np.argsort(largest, axis=None)
    shades = pixels.ravel()[order]  # from the faintest to the strongest
    steps = np.diff(shades) if colours == "dark" else -np.diff(shades)
    assert (steps >= 0).all() and len(np.unique(shades)) > 50
    dot = page.locator(".st-key-matrix .layer-above image").bounding_box()
    assert dot["width"] / columns >= 1  # no dot is lost either
    width_of_page = page.evaluate("document.scrollingElement.scrollWidth")
    assert width_of_page <= width

    assert_labels_do_not_lie_on_each_other(page)
    for step in range(3):
        zoom(page).click()
        wait_for_part(page, f"xaxis.range[1] - xaxis.range[0] < {512 / 2**step - 1}")
    assert_labels_do_not_lie_on_each_other(page)


def assert_labels_do_not_lie_on_each_other(page):
    for axis in "xy":
        labels = page.evaluate(LABELS, axis)
        assert len(labels) >= 5
        for (x0, y0, _, height, angle), (x1, y1, _, _, _) in pairwise(
            sorted(labels, key=lambda at: at[axis == "y"])
        ):
            apart = abs((y1 - y0) * np.cos(angle) - (x1 - x0) * np.sin(angle))  # across the writing
            assert apart >= 0.75 * height  # a line's height, less what no letter uses


# Of the chips that are seen, the share of each that is.
SEEN = """strip => {
    const list = strip.getBoundingClientRect();
    return [...strip.querySelectorAll('.chip')].map(chip => {
        const {top, bottom, height} = chip.getBoundingClientRect();
        return Math.max(Math.min(bottom, list.bottom) - Math.max(top, list.top), 0) / height;
    });
}"""


def whole_rows_and_the_rest_is_counted(page, strip):
    seen = strip.evaluate(SEEN)
    shown = np.flatnonzero(seen)
    above, below = shown[0], len(seen) - 1 - shown[-1]
    parts = [f"{above} above"] * bool(above) + [f"{below} below"] * bool(below)
    words = page.locator(".beyond").inner_text()
    return set(np.round(seen, 2).tolist()) == {0, 1} and words == f"More tokens: {', '.join(parts)}. Scroll."


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "colours"), [(400, "dark"), (1366, "light")])
def test_chips_are_seen_in_whole_rows_and_it_is_said_how_many_follow(visitors, server, width, colours):
    page = visitors(width=width, colours=colours)
    open_screen(page, server, text=LONG, cut=1, query=300, key=299)
    strip = page.get_by_role("group", name="Tokens; select one as the query")
    for from_top in (None, 0, 500, 10**6):
        if from_top is not None:
            strip.evaluate("(strip, top) => strip.scrollTo(0, top)", from_top)
        # The browser moves on to the next whole row.
        expect_soon(page, lambda page: whole_rows_and_the_rest_is_counted(page, strip), True)
        assert page.locator(".beyond").bounding_box()["height"] <= 20  # one line, on a phone too
        if from_top is None:
            assert strip.evaluate(SEEN)[300] == 1  # the selected one
    open_screen(page, server)
    expect(page.locator(".beyond")).to_be_hidden()


@pytest.mark.nightly
def test_the_way_from_all_cells_to_one_and_to_another_text(page, server):
    open_screen(page, server, text=LONG, cut=1)
    assert_hover_gives_the_exact_weight_of_one_cell(page)
    assert_a_box_is_zoomed_to_and_a_double_click_shows_all(page)
    assert_a_chart_that_hears_of_a_change_last_stays_zoomed(page)
    assert_another_text_is_shown_whole(page)


def assert_hover_gives_the_exact_weight_of_one_cell(page):
    hover_cell(page, 301, 299)
    expect(hover_label(page)).to_contain_text("weight 0.")
    hover_match = re.fullmatch(
        r"query \S+·(\d+)key \S+·(\d+)weight (\d\.\d+)", hover_label(page).text_content()
    )
    written = re.compile(r"query \S+·(\d+) → key \S+·(\d+): weight (\d\.\d+), score .+")
    expect(readout(page)).to_have_text(written)
    for match in (hover_match, written.fullmatch(readout(page).text_content())):  # read one after the other
        row, column = int(match[1]), int(match[2])
        assert abs(row - 301) <= 4 and abs(column - 299) <= 4  # two pixels: a cell is half of one
        assert float(match[3]) == pytest.approx(weight_of(page, row, column), abs=5.1e-5)


def assert_a_box_is_zoomed_to_and_a_double_click_shows_all(page):
    box = plot(page, "matrix").locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 90, steps=4)
    page.mouse.move(box["x"] + 120, box["y"] + 120, steps=4)
    page.mouse.up()
    wait_for_part(page, "xaxis.range[1] - xaxis.range[0] < 200")
    expect(overview_words(page)).to_have_count(0)
    expect(page.locator(".st-key-matrix .layer-above image")).to_have_count(0)
    (first_row, last_row), (first_column, last_column) = shown_part(page)
    row, column = round((first_row + last_row) / 2), round((first_column + last_column) / 2)
    hover_cell(page, row, column)
    weight = weight_of(page, row, column)
    expect(hover_label(page)).to_have_text(re.compile(rf"·{row}key \S+·{column}weight {weight:.3g}"))

    page.mouse.dblclick(box["x"] + 100, box["y"] + 100)
    wait_for_part(page, "xaxis.range[1] - xaxis.range[0] > 511")
    expect(overview_words(page)).to_be_visible()


def test_the_zoom_stays_while_the_tokens_do(page, server):
    open_screen(page, server, text=LONG, cut=1, layer=3, head=1)
    for _ in range(4):
        zoom(page).focus()
        page.keyboard.press("Enter")
    wait_for_part(page, "xaxis.range[1] - xaxis.range[0] < 33")
    part = shown_part(page)
    page.get_by_role("button", name="Next").click()
    expect(finding(page)).to_contain_text("Layer 3, head 2:", timeout=LOAD_MS)
    wait_until_drawn(page)
    wait_for_this_part(page, part)

    row, column = round(part[0][0]) + 5, round(part[1][0]) + 3
    click_cell(page, row, column)
    wait_for_link(page, query=row, key=column)
    wait_until_drawn(page)
    wait_for_this_part(page, part)

    chip(page, 400).click()  # far outside
    wait_for_link(page, query=400)
    wait_until_drawn(page)
    wait_for_part(
        page, "yaxis.range[1] < 400 && 400 < yaxis.range[0] && yaxis.range[0] - yaxis.range[1] < 33"
    )

    zoom(page, "All cells").click()
    wait_for_part(page, "xaxis.range[1] - xaxis.range[0] > 511")
    expect(zoom(page, "Zoom out")).to_be_disabled()


def assert_a_chart_that_hears_of_a_change_last_stays_zoomed(page):
    zoom(page).click()
    wait_for_part(page, "xaxis.range[1] - xaxis.range[0] < 257")
    part = shown_part(page)
    page.evaluate(f"""() => {{
        const chart = {_CHART}, {{xaxis, yaxis, ...layout}} = chart.layout;
        return Plotly.react(chart, chart.data, {{
            ...layout, xaxis: {{...xaxis, range: [-0.5, 511.5]}}, yaxis: {{...yaxis, range: [511.5, -0.5]}}
        }}, chart._context);
    }}""")
    np.testing.assert_allclose(shown_part(page), part, atol=0.1)


def assert_another_text_is_shown_whole(page):
    expect(zoom(page, "Zoom out")).to_be_enabled()
    page.get_by_role("textbox", name="Sentence", exact=True).fill(LONG[300:1300])
    page.keyboard.press("Enter")
    wait_for_link(page, text=LONG[300:1300])
    wait_until_drawn(page)
    expect(zoom(page, "Zoom out")).to_be_disabled()
    assert shown_part(page) == ([-0.5, 197.5], [-0.5, 197.5])


@pytest.mark.nightly
def test_the_chips_are_one_stop_and_the_matrix_takes_a_wide_screen(visitors, server):
    page = visitors(width=1920, height=1080)
    open_screen(page, server, text=LONG, cut=1)
    expect(chips(page)).to_have_count(512)
    buttons = page.get_by_role("group", name="Tokens").locator("button")
    stops = buttons.evaluate_all("all => all.filter(element => element.tabIndex >= 0).length")
    assert stops == 1
    chip(page, 511).focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("group", name="Tokens").locator(":focus")).to_have_count(0)

    page.get_by_role("button", name="Matrix", exact=True).first.click()  # which fills the stage
    wait_for_link(page, filled="matrix")
    wait_until_still(page)
    drawn = plot(page, "matrix").locator(".nsewdrag").first.bounding_box()
    column = page.locator(".st-key-matrix").first.bounding_box()
    assert drawn["width"] == pytest.approx(drawn["height"], abs=1)  # square cells
    assert drawn["width"] > 0.75 * column["width"] > 0.75 * 700  # labels have the rest


@pytest.mark.nightly
def test_a_sentence_has_nothing_to_zoom(page, server):
    open_screen(page, server)
    expect(readout(page)).to_be_visible()
    expect(zoom(page)).to_have_count(0)


@pytest.mark.nightly
def test_a_long_token_does_not_take_the_room_of_the_cells(visitors, server):
    token = "x" * 40
    page = visitors(width=400)
    open_screen(page, server, text=f"The password {token}y opened.", unit="words")
    box = plot(page, "matrix").locator(".nsewdrag").first.bounding_box()
    assert box["width"] > 180
    labels = plot(page, "matrix").locator(".ytick text").all_text_contents()
    assert "xxxxxxxxx…xxxy·3" in labels
    wait_until_drawn(page)
    hover_cell(page, labels.index("xxxxxxxxx…xxxy·3"), 1)
    expect(readout(page)).to_contain_text(f"query {token}y·3")


@pytest.mark.nightly
def test_hover_has_a_long_token_whole(visitors, server):
    page = visitors(width=400, height=800)
    open_screen(
        page, server, text="an antidisestablishmentarianism " + "ab" * 30, unit="words", layer=3, head=1
    )
    ticks = page.locator(".st-key-matrix .xtick text")
    expect(ticks.nth(2)).to_have_text("antidises…nism·2")
    hover_cell(page, 1, 2)
    expect(hover_label(page)).to_contain_text("key antidisestablishmentarianism·2")
    hover_cell(page, 3, 3)
    expect(hover_label(page)).to_contain_text("ab" * 17 + "a…abab·")
    box = hover_label(page).bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 400


@pytest.mark.nightly
def test_the_colour_bar_follows_the_matrix_on_a_phone(visitors, server):
    page = visitors(width=400)
    open_screen(page, server, text=LONG[:93])
    cells_box = plot(page, "matrix").locator(".nsewdrag").first.bounding_box()
    bar = plot(page, "matrix").locator(".colorbar .cbfills").bounding_box()
    assert 0 < bar["y"] - (cells_box["y"] + cells_box["height"]) < cells_box["height"] / 3
