"""The viewer's matrix alone in Chromium: its colours, labels, frames, zoom, keyboard and pointer."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import FloatRect, Page, expect

from attnviz.figures.labels import label_at, shortened
from attnviz.figures.numbers import share_text
from attnviz.figures.theme import FONT, THEMES, TOKEN_FONT, ThemeName, weight_scale
from attnviz.viewer import joined, style

MODULES = ("svg", "html", "renew", "measure", "numbers", "cells", "words", "matrix")
HARNESS = """
{modules}
const calls = (window.calls = []);
const tell = (name) => (told) => calls.push([name, told]);
const matrix = new Matrix({{ pick: tell("pick"), preview: tell("preview"), open: tell("open") }});
window.matrix = matrix;
document.querySelector("#place").append(matrix.root);
window.show = (scene) => {{
  setColours(document.body, {{ ...scene.look.colours, font: scene.look.font, "token-font": scene.look.tokenFont }});
  const {{ pattern }} = scene;
  if (pattern) {{
    pattern.weights = Float64Array.from(pattern.weights, (number) => number ?? NaN);
    pattern.hidden = Float64Array.from(pattern.hidden);
  }}
  matrix.draw(scene);
}};
"""
CELL = """([row, column]) => {
  const canvas = document.querySelector("canvas.cells"), box = canvas.getBoundingClientRect(), { at } = matrix;
  const x = ((column + 0.5 - at.column) * at.side), y = ((row + 0.5 - at.row) * at.side);
  const ratio = canvas.width / box.width;
  const { data } = canvas.getContext("2d").getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1);
  return { colour: [...data], x: box.left + x, y: box.top + y };
}"""


def open_matrix(page: Page, *, width: int = 700, room: int = 520) -> None:
    """A page with an empty matrix in a box of this size, px."""
    script = HARNESS.format(modules=joined(*MODULES))
    page.set_content(
        f"<!doctype html><meta charset=utf-8><style>body {{ margin: 8px; background: var(--background) }} {style('matrix')}</style>"
        f'<div id="place" style="width: {width}px; --room: {room}px"></div><script type="module">{script}</script>'
    )
    page.wait_for_function("Boolean(window.show)")


def look_of(theme: ThemeName) -> dict[str, Any]:
    palette = THEMES[theme]
    colours = {field.name: getattr(palette, field.name) for field in fields(palette)}
    return {
        "colours": {name: colour for name, colour in colours.items() if isinstance(colour, str)},
        "scale": weight_scale(palette),
        "font": FONT,
        "tokenFont": TOKEN_FONT,
    }


def scene_of(
    weights: np.ndarray,
    labels: Sequence[str],
    *,
    query: int = 0,
    key: int | None = 0,
    positions: Sequence[int] | None = None,
    theme: ThemeName = "light",
    measure: str = "weights",
    **more: Any,
) -> dict[str, Any]:
    """What the viewer would have the matrix draw."""
    entries = {
        "labels": list(labels),
        "positions": list(range(len(labels)) if positions is None else positions),
        "segment": more.pop("segment", [0] * len(labels)),
    }
    hidden = more.pop("hidden", [0.0] * len(labels))
    pattern = {
        **{"measure": measure, "queries": entries, "keys": entries, "hidden": hidden},
        "weights": [None if np.isnan(number) else float(number) for number in weights.ravel()],
    }
    selection = {"query": query, "key": key, "colour": more.pop("colour", "linear")}
    look = look_of(theme)
    return {
        "stage": {"text": "a"},
        **{"selection": selection, "shown": selection, "pattern": pattern, "look": look, "end": None},
        **more,
    }


def show(page: Page, weights: np.ndarray, labels: Sequence[str], **choices: Any) -> None:
    page.evaluate(f"show({json.dumps(scene_of(weights, labels, **choices))})")


def random_weights(n_token: int, *, causal: bool = False) -> np.ndarray:
    """Rows that sum to 1, shape (n_token, n_token); NaN where a causal query may not see the key."""
    numbers = np.random.default_rng(n_token).dirichlet(np.full(n_token, 0.3), size=n_token)
    return np.where(np.tri(n_token, dtype=bool), numbers, np.nan) if causal else numbers


def tone(share: float, theme: ThemeName = "light") -> np.ndarray:
    """The colour of this share of the scale, RGB."""
    places, colours = zip(*weight_scale(THEMES[theme]), strict=True)
    channels = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in colours])
    return np.array([np.interp(share, places, channel) for channel in channels.T])


def cell(page: Page, row: int, column: int) -> dict[str, Any]:
    """The colour in the middle of a cell, and where that is in the window."""
    found: dict[str, Any] = page.evaluate(CELL, [row, column])
    return found


def calls(page: Page, name: str) -> list[Any]:
    """What the matrix has told its host by this name."""
    return [told for called, told in page.evaluate("calls") if called == name]


def words(n_token: int) -> list[str]:
    return [f"token{at % 7}" for at in range(n_token)]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("n_token", [22, 150])
def test_pixels_have_the_colour_of_their_number(page, theme, n_token):
    weights = random_weights(n_token)
    open_matrix(page)
    show(page, weights, words(n_token), theme=theme)
    for row, column in np.random.default_rng(0).integers(n_token, size=(200, 2)).tolist():
        found = cell(page, row, column)["colour"]
        exact = tone(weights[row, column] / weights.max(), theme)
        np.testing.assert_allclose(found, [*exact, 255], atol=0.51)


def test_logarithmic_colours_span_four_decades(page):
    weights = np.array([[0.5, 0.05, 0.005], [0.0005, 0.00005, 0.000001], [0.0, 0.2, 0.8]])
    open_matrix(page)
    show(page, weights, words(3), colour="logarithmic")
    for at, number in np.ndenumerate(weights):
        share = np.clip(1 + np.log10(max(number, 1e-30) / 0.8) / 4, 0, 1)
        np.testing.assert_allclose(cell(page, *at)["colour"][:3], tone(share), atol=0.51)
    assert page.locator(".bar text").all_text_contents() == ["0.01%", "0.1%", "1%", "10%", "weight"]


def test_scores_span_from_the_lowest_to_the_highest(page):
    scores = np.array([[-4.0, 0.0], [np.nan, 6.0]])
    open_matrix(page)
    show(page, scores, words(2), measure="scores")
    for at, share in {(0, 0): 0.0, (0, 1): 0.4, (1, 1): 1.0}.items():
        np.testing.assert_allclose(cell(page, *at)["colour"][:3], tone(share), atol=0.51)
    texts = page.locator(".bar text").all_text_contents()
    assert texts[-1] == "score"
    assert texts[:-1] == ["0", "5"]
    expect(page.locator(".live")).to_have_text("“token0”·0 → “token0”·0: −4.00")


@pytest.mark.parametrize("n_token", [9, 200])
def test_masked_cells_are_background(page, n_token):
    open_matrix(page)
    show(page, random_weights(n_token, causal=True), words(n_token))
    for row, column in [(0, 1), (0, n_token - 1), (n_token - 2, n_token - 1)]:
        assert cell(page, row, column)["colour"] == [255, 255, 255, 255]
    assert cell(page, 0, 0)["colour"] != [255, 255, 255, 255]


def test_labels_are_those_of_figures(page):
    labels = ["door", "antidisestablishmentarianism", "שלום", "<img src=x onerror=alert(1)>", "."]
    open_matrix(page)
    show(page, random_weights(5), labels)
    expected = [label_at(shortened(label), at) for at, label in enumerate(labels)]
    for group in (".rows", ".columns"):
        assert page.locator(f"{group} text").all_text_contents() == expected
    assert page.locator("#place img").count() == 0
    page.mouse.move(*_at(page, 3, 3))
    expect(page.locator(".live")).to_contain_text("<img src=x onerror=alert(1)>")


def _at(page: Page, row: int, column: int) -> tuple[float, float]:
    found = cell(page, row, column)
    return found["x"], found["y"]


def test_the_selected_row_and_column_are_labelled_where_others_give_way(page):
    open_matrix(page)
    show(page, random_weights(300), words(300), query=151, key=77)
    for group, picked in ((".rows", "token4·151"), (".columns", "token0·77")):
        texts = page.locator(f"{group} text").all_text_contents()
        assert picked in texts
        assert 10 < len(texts) < 60
        marked = page.locator(f"{group} text[font-weight='700']")
        assert marked.all_text_contents() == [picked]
        assert marked.get_attribute("fill") == THEMES["light"].picked
    boxes = [text.bounding_box() for text in page.locator(".rows text").all()]
    tops = sorted(box["y"] for box in boxes if box)
    assert np.diff(tops).min() > 12.9

    page.mouse.move(*_at(page, 153, 200))
    assert {"token4·151", "token6·153"} <= set(page.locator(".rows text").all_text_contents())
    assert "token4·200" in page.locator(".columns text").all_text_contents()


def test_all_labels_are_there_where_all_fit(page):
    open_matrix(page)
    show(page, random_weights(22), words(22), query=3, key=4)
    assert page.locator(".rows text").count() == page.locator(".columns text").count() == 22


@pytest.mark.parametrize(("width", "room"), [(384, 400), (700, 520), (1800, 900)])
@pytest.mark.parametrize("n_token", [3, 11, 64, 300])
def test_it_fits_into_its_box(page, width, room, n_token):
    page.set_viewport_size({"width": width + 40, "height": room + 60})
    open_matrix(page, width=width, room=room)
    show(page, random_weights(n_token), [*words(n_token - 1), "a_long_last_token"], query=1, key=n_token - 1)
    sheet = _box(page, ".sheet")
    for name in ("canvas.cells", ".rows text", ".columns text", ".bar text"):
        for part in page.locator(name).all():
            box = part.bounding_box()
            assert box is not None
            assert box["x"] >= sheet["x"] - 1
            assert box["x"] + box["width"] <= sheet["x"] + sheet["width"] + 1
            assert box["y"] >= sheet["y"] - 1
            assert box["y"] + box["height"] <= sheet["y"] + sheet["height"] + 1
    canvas = _box(page, "canvas.cells")
    assert canvas["width"] == pytest.approx(canvas["height"])
    assert canvas["width"] <= 46 * n_token + 0.01
    assert canvas["width"] >= min(46 * n_token, 0.5 * min(width, room))


def _box(page: Page, name: str) -> FloatRect:
    box = page.locator(name).bounding_box()
    assert box is not None
    return box


def test_cells_beyond_the_colours_are_hatched_and_the_bar_says_so(page):
    weights = random_weights(11)
    weights[2, 3], weights[4, 5] = 0.704, 0.249
    weights = np.minimum(weights, np.where(weights == 0.704, 1, 0.249))
    open_matrix(page)
    show(page, weights, words(11))
    expect(page.locator(".told")).to_have_text("weight")
    assert _shades(page, 2, 3) == 1
    show(page, weights, words(11), end=0.249)
    expect(page.locator(".told")).to_have_text("weight; hatched: above 24.9%")
    assert _shades(page, 2, 3) == 2  # of the cell and of its hatching
    assert _shades(page, 4, 5) == 1


def _shades(page: Page, row: int, column: int) -> int:
    """The number of colours in a cell."""
    count: int = page.evaluate(
        """([row, column]) => {
            const { side } = matrix.at;
            const { data } = document.querySelector("canvas").getContext("2d").getImageData(column * side + 2, row * side + 2, side - 6, side - 6);
            return new Set(new Uint32Array(data.buffer)).size;
        }""",
        [row, column],
    )
    return count


def test_hidden_weight_stands_behind_the_queries(page):
    open_matrix(page)
    show(page, random_weights(3), words(3), hidden=[0.98, 0.0, 0.004])
    texts = page.locator(".rows text").all_text_contents()
    assert texts == ["token0·0, 98% hidden", "token1·1, 0% hidden", "token2·2, under 1% hidden"]
    show(page, random_weights(3), words(3), hidden=[0.98, 0.0, 0.004], measure="norms")
    assert page.locator(".rows text").all_text_contents() == ["token0·0", "token1·1", "token2·2"]


def test_borders_and_frames(page):
    open_matrix(page)
    show(page, random_weights(6), words(6), segment=[0, 0, 1, 1, 1, 1], query=4, key=1)
    assert page.locator(".borders line").count() == 2
    side = page.evaluate("matrix.at.side")
    canvas = _box(page, "canvas")
    frame = page.locator(".frames .picked").evaluate(
        "frame => [frame.getBoundingClientRect().x, frame.getBoundingClientRect().y]"
    )
    assert frame == pytest.approx([canvas["x"] + side, canvas["y"] + 4 * side], abs=2)
    assert page.locator(".frames .row").count() == page.locator(".frames .column").count() == 1


def test_keys_walk_through_cells_and_select(page):
    weights = random_weights(12)
    open_matrix(page)
    positions = [at + 1 for at in range(12)]  # as where the first token is hidden
    show(page, weights, words(12), positions=positions, query=3, key=4)
    page.keyboard.press("Tab")
    expect(page.get_by_role("application")).to_be_focused()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    said = f"“token3”·4 → “token5”·6: {share_text(weights[3, 5])}"
    expect(page.locator(".live")).to_have_text(said)
    assert calls(page, "preview")[-1] == {"query": 4}
    page.keyboard.press("Enter")
    assert calls(page, "pick") == [{"query": 4, "key": 6}]
    assert calls(page, "open") == []

    show(page, weights, words(12), positions=positions, query=4, key=6)
    page.keyboard.press("Enter")
    assert calls(page, "open") == [{"query": 4, "key": 6}]
    for key, place in {
        "End": "→ “token4”·12",
        "Home": "→ “token0”·1",
        "PageDown": "“token4”·12 →",
        "PageUp": "“token1”·2 →",
    }.items():
        page.keyboard.press(key)
        expect(page.locator(".live")).to_contain_text(place)
    page.keyboard.press("Tab")
    assert calls(page, "preview")[-1] is None


def test_clicks_pick_cells_rows_and_columns_and_two_open(page):
    open_matrix(page)
    show(page, random_weights(11), words(11), query=1, key=1)
    page.mouse.click(*_at(page, 6, 8))
    row, column = _box(page, ".rows [data-row='4']"), _box(page, ".columns [data-column='9']")
    page.mouse.click(row["x"] + 10, row["y"] + 7)
    page.mouse.click(column["x"] + 30, column["y"] + 15)  # the label leans to the right
    assert calls(page, "pick") == [{"query": 6, "key": 8}, {"query": 4}, {"key": 9}]
    page.mouse.dblclick(*_at(page, 2, 5))
    assert calls(page, "pick")[3:] == [{"query": 2, "key": 5}]
    assert calls(page, "open") == [{"query": 2, "key": 5}]


def test_a_row_is_previewed_once_while_the_pointer_is_over_it(page):
    weights = random_weights(11)
    open_matrix(page)
    show(page, weights, words(11))
    for column in (2, 3, 4):
        page.mouse.move(*_at(page, 7, column))
    expect(page.locator(".live")).to_have_text(f"“token0”·7 → “token4”·4: {share_text(weights[7, 4])}")
    assert calls(page, "preview") == [{"query": 7}]
    page.locator(".sheet").dispatch_event("pointerleave")
    assert calls(page, "preview")[-1] is None


def test_the_wheel_zooms_only_with_control_or_once_zoomed(page):
    open_matrix(page)
    show(page, random_weights(64), words(64))
    side = page.evaluate("matrix.at.side")
    page.mouse.move(*_at(page, 40, 20))
    page.mouse.wheel(0, -200)
    assert page.evaluate("matrix.at.side") == side
    page.keyboard.down("Control")
    for _ in range(4):
        page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.wait_for_function(f"matrix.at.side > {3 * side}")
    expect(page.locator(".live")).to_contain_text("·40 →")  # which stays under the pointer
    page.mouse.move(*_at(page, 41, 22))
    expect(page.locator(".live")).to_contain_text("·41 → “token1”·22")
    page.mouse.click(*_at(page, 42, 21))
    assert calls(page, "pick") == [{"query": 42, "key": 21}]
    zoomed = page.evaluate("matrix.at.side")
    page.mouse.wheel(0, 100)
    page.wait_for_function(f"matrix.at.side < {zoomed}")

    before = page.evaluate("[matrix.at.row, matrix.at.column]")
    x, y = _at(page, 42, 21)
    page.mouse.down()
    page.mouse.move(x - 40, y - 60, steps=4)
    page.mouse.up()
    after = page.evaluate("[matrix.at.row, matrix.at.column]")
    assert after[0] > before[0]
    assert after[1] > before[1]
    assert len(calls(page, "pick")) == 1  # a drag is no click
    page.get_by_role("button", name="Whole matrix").click()
    assert page.evaluate("matrix.at.side") == side


def test_a_box_zooms_into_a_long_text(page):
    weights = random_weights(300)
    open_matrix(page)
    show(page, weights, words(300), query=110, key=215)
    page.mouse.move(*_at(page, 100, 200))
    page.mouse.down()
    page.mouse.move(*_at(page, 120, 220), steps=5)
    page.mouse.up()
    at = page.evaluate("matrix.at")
    assert at["row"] == pytest.approx(100, abs=1)
    assert at["column"] == pytest.approx(200, abs=1)
    assert at["wide"] / at["side"] == pytest.approx(20, abs=1)
    for row, column in [(105, 203), (110, 215), (117, 218)]:
        np.testing.assert_allclose(
            cell(page, row, column)["colour"][:3], tone(weights[row, column] / weights.max()), atol=0.51
        )
    assert page.locator(".rows text").count() >= 19
    page.mouse.click(*_at(page, 107, 211))
    assert calls(page, "pick") == [{"query": 107, "key": 211}]


def test_numbers_that_have_not_come_leave_the_last_picture(page):
    weights = random_weights(11)
    open_matrix(page)
    show(page, weights, words(11), query=5, key=6)
    before = cell(page, 5, 6)["colour"]
    page.evaluate(f"show({json.dumps(scene_of(weights, words(11)) | {'pattern': None})})")
    assert cell(page, 5, 6)["colour"] == before
    expect(page.locator(".sheet")).to_have_css("opacity", "0.25")
    expect(page.locator(".live")).to_have_text("…")
    show(page, weights, words(11))
    expect(page.locator(".sheet")).to_have_css("opacity", "1")


def test_more_cells_than_pixels_show_the_largest_of_each_block(page):
    weights = np.zeros((1024, 1024))
    weights[500, 301] = 1.0
    open_matrix(page, width=500, room=420)
    show(page, weights, words(1024))
    width, height = page.evaluate("[matrix.canvas.width, matrix.canvas.height]")
    dark = page.evaluate(
        """() => { const { width, height } = matrix.canvas;
        const pixels = new Uint32Array(matrix.canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer);
        return [...pixels.keys()].filter((at) => pixels[at] !== 0xffffffff).map((at) => [Math.floor(at / width), at % width]); }"""
    )
    assert len(dark) == 1
    assert dark[0] == pytest.approx([500 / 1024 * height, 301 / 1024 * width], abs=1.1)
    expect(page.locator(".told")).to_contain_text("largest in each block of")
