"""The viewer's band, heads, ranking and arcs alone in Chromium: what they draw of matrices written by hand, and what they tell their viewer."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnviz.figures.theme import FONT, THEMES, TOKEN_FONT, ThemeName, weight_scale
from attnviz.heads.flow import above_share, strongest_lines
from attnviz.viewer import joined, style

MODULES = (
    "svg",
    "html",
    "renew",
    "rove",
    "remember",
    "measure",
    "numbers",
    "cells",
    "words",
    "band",
    "flow",
    "matrix",
    "heads",
    "ranking",
)
HARNESS = """
{modules}
const calls = (window.calls = []);
const tell = (name) => (told) => calls.push([name, told]);
const entriesOf = (side) => ({{
  labels: side.labels, positions: side.labels.map((_, at) => at), spans: side.labels.map((_, at) => [at, at + 1]), side, isWhole: true,
  special: side.labels.map((_, at) => side.special.includes(at)), resting: side.labels.map((_, at) => side.resting.includes(at)), segment: side.segment,
}});
window.flowLines = flowLines;
window.load = (stage, heads, isMaskable) => {{
  window.stage = stage;
  const [queries, keys] = [entriesOf(stage.queries), entriesOf(stage.keys ?? stage.queries)];
  window.patterns = new Map(heads?.map(([name, weights]) => [name, {{
    measure: "weights", kind: stage.kind, queries, keys, isRenormalised: false, layer: Number(name.split(".")[0]), head: Number(name.split(".")[1]),
    weights: Float64Array.from(weights, (number) => number ?? NaN), hidden: new Float64Array(queries.labels.length),
  }}]));
  if (window.parts) return;
  const given = {{ pick: tell("pick"), preview: tell("preview"), mask: isMaskable ? tell("mask") : undefined, cellsOf: (layer, head) => patterns.get(`${{layer}}.${{head}}`) ?? null }};
  window.parts = {{ band: new Band(given), heads: new Heads(given), ranking: new Ranking(given), flow: new Flow(given) }};
  for (const [name, part] of Object.entries(parts)) document.querySelector(`#${{name}}`).append(part.root);
}};
window.show = (selection, preview, look) => {{
  if (look) window.look = look;
  setColours(document.body, {{ ...window.look.colours, font: window.look.font, "token-font": window.look.tokenFont }});
  const shown = {{ ...selection, ...preview?.place, ...(preview?.query === undefined ? {{}} : {{ query: preview.query }}) }};
  const whole = patterns.get(`${{shown.layer}}.${{shown.head}}`) ?? null;
  const scene = {{ stage, selection, shown, pattern: whole, told: whole, whole, look: window.look, isPreview: Boolean(preview) }};
  const took = {{}};
  for (const [name, part] of Object.entries(parts)) {{
    const start = performance.now();
    part.draw(scene);
    took[name] = performance.now() - start;
  }}
  return took;
}};
"""
PAGE = """<!doctype html><meta charset=utf-8><style>
body {{ margin: 8px; background: var(--background); width: {width}px; --room: 420px }}
#heads, #ranking {{ width: {side}px; max-width: 100% }}
{style}</style><div id=band></div><div id=flow></div><div id=heads></div><div id=ranking></div><script type=module>{script}</script>"""

LABELS = ["[CLS]", "the", "door", "it", "[SEP]"]
WEIGHTS = np.array(
    [
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [0.1, 0.3, 0.4, 0.1, 0.1],
        [0.475, 0.0, 0.5, 0.01, 0.015],
        [0.9, 0.1, 0.0, 0.0, 0.0],
    ]
)


def look_of(theme: ThemeName) -> dict[str, Any]:
    palette = THEMES[theme]
    colours = {field.name: getattr(palette, field.name) for field in fields(palette)}
    return {
        "colours": {name: colour for name, colour in colours.items() if isinstance(colour, str)},
        "scale": weight_scale(palette),
        "font": FONT,
        "tokenFont": TOKEN_FONT,
    }


def side_of(labels: Sequence[str], **more: Any) -> dict[str, Any]:
    special = [at for at, label in enumerate(labels) if label.startswith("[")]
    empty: dict[str, Any] = {"joined": [], "words": None, "cut": {}, "was": {}}
    return (
        {"labels": list(labels), "special": special, "resting": special, "segment": [0] * len(labels)}
        | empty
        | more
    )


def stage_of(
    counts: Sequence[int], queries: dict[str, Any], keys: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A document without its numbers."""
    names = [
        [f"Layer {layer}, head {head}: a name" for head in range(count)] for layer, count in enumerate(counts)
    ]
    rest = {
        "kind": "cross" if keys else "encoder",
        "maskLabel": "[MASK]",
        "specialMeans": "",
        "cells": {"measure": "weights", "heads": "all"},
    }
    return (
        {"text": "a", "counts": list(counts), "queries": queries, "keys": keys, "names": names} | rest | more
    )


def open_parts(
    page: Page,
    stage: dict[str, Any],
    heads: dict[tuple[int, int], np.ndarray],
    *,
    width: int = 1000,
    side: int = 240,
    theme: ThemeName = "light",
    **selected: Any,
) -> None:
    """A page with the four parts, drawn of these heads."""
    script = HARNESS.format(modules=joined(*MODULES))
    css = style("band", "heads", "ranking", "flow")
    page.set_content(PAGE.format(width=width, side=side, style=css, script=script))
    page.wait_for_function("Boolean(window.load)")
    load(page, stage, heads)
    show(page, look=look_of(theme), **selected)


def load(page: Page, stage: dict[str, Any], heads: dict[tuple[int, int], np.ndarray]) -> None:
    sent = [
        [
            f"{layer}.{head}",
            [None if np.isnan(number) else round(float(number), 6) for number in weights.ravel()],
        ]
        for (layer, head), weights in heads.items()
    ]
    page.evaluate(f"load({json.dumps(stage)}, {json.dumps(sent)}, true)")


def show(
    page: Page, *, preview: dict[str, Any] | None = None, look: dict[str, Any] | None = None, **selected: Any
) -> dict[str, float]:
    """Draws all parts; milliseconds that each has taken."""
    selection = {"layer": 0, "head": 0, "query": 3, "key": 2, "clip": True} | selected
    took: dict[str, float] = page.evaluate(
        f"show({json.dumps(selection)}, {json.dumps(preview)}, {json.dumps(look)})"
    )
    return took


def calls(page: Page) -> list[Any]:
    """What has been told since this was asked last."""
    told: list[Any] = page.evaluate("calls.splice(0)")
    return told


def texts(found: Locator) -> list[str]:
    return [text.replace("\xa0", " ") for text in found.all_inner_texts()]


def random_heads(
    counts: Sequence[int], n_query: int, n_key: int | None = None
) -> dict[tuple[int, int], np.ndarray]:
    random = np.random.default_rng(7)
    size = (n_query, n_key or n_query)
    return {
        (layer, head): random.dirichlet(np.full(size[1], 0.15), size=size[0])
        for layer, count in enumerate(counts)
        for head in range(count)
    }


@pytest.fixture
def small(page: Page) -> Page:
    """Five tokens of two layers with 2 and 1 heads; the first head has `WEIGHTS`, the others their reverse."""
    heads = {(0, 0): WEIGHTS, (0, 1): WEIGHTS[:, ::-1], (1, 0): WEIGHTS[:, ::-1]}
    open_parts(page, stage_of([2, 1], side_of(LABELS)), heads)
    return page


def test_the_band_has_an_arc_as_wide_as_each_weight_from_the_query(small):
    arcs = small.locator("#band svg path")
    found = {
        int(arc.get_attribute("data-key")): (float(arc.get_attribute("stroke-width")), arc.get_attribute("d"))
        for arc in arcs.all()
    }
    assert {key: width for key, (width, _) in found.items()} == {0: pytest.approx(5.275, abs=0.01), 2: 5.5}
    middles = [
        box["x"] + box["width"] / 2
        for box in (token.bounding_box() for token in small.locator("#band .token").all())
    ]
    starts = small.locator("#band svg").bounding_box()["x"]
    for key, (_, path) in found.items():
        start, end = float(path[1:].split(" ")[0]), float(path.split(" ")[-2])
        np.testing.assert_allclose([start, end], [middles[3] - starts, middles[key] - starts], atol=1)
    assert texts(small.locator("#band .share")) == ["47.5%", "", "50.0%", "1.0%", "1.5%"]
    expect(small.locator("#band .token").nth(1)).to_have_attribute(
        "aria-label", "token 1: the, 0.0% of the attention of “it”"
    )


def test_a_head_that_is_shown_on_the_way_changes_numbers_but_no_place(small):
    def places():
        return [token.bounding_box() for token in small.locator("#band .token").all()]

    before = places()
    show(small, preview={"place": {"layer": 1, "head": 0}})
    assert texts(small.locator("#band .share")) == ["1.5%", "1.0%", "50.0%", "", "47.5%"]
    assert places() == before
    assert small.locator("#heads [aria-selected=true]").get_attribute("data-layer") == "0"


def test_tokens_are_picked_and_previewed_by_mouse_and_keyboard(small):
    tokens = small.locator("#band .token")
    tokens.nth(2).hover()
    assert calls(small) == [["preview", {"query": 2}]]
    tokens.nth(2).click()
    assert ["pick", {"query": 2}] in calls(small)
    show(small, query=2)
    expect(tokens.nth(2)).to_have_class("token query")
    small.mouse.move(900, 700)
    calls(small)
    tokens.nth(2).focus()
    small.keyboard.press("End")
    small.keyboard.press("ArrowLeft")
    small.keyboard.press("Enter")
    told = calls(small)
    assert ["preview", {"query": 3}] in told
    assert told[-1] == ["pick", {"query": 3}]
    assert small.locator("#band button[tabindex='0']").count() == 1


def test_the_selected_token_says_what_masking_does(page):
    stage = stage_of([1], side_of(LABELS, was={"2": "window"}, cut={"3": "cut here: 5 more tokens not read"}))
    open_parts(page, stage, {(0, 0): WEIGHTS})
    mask = page.locator("#band .mask")
    assert mask.inner_text().split() == ["replace", "with", "[MASK]"]
    assert "cannot read it" in mask.get_attribute("title")
    mask.click()
    assert calls(page)[-1] == ["mask", 3]
    expect(page.locator("#band .cut")).to_have_text("cut here: 5 more tokens not read")
    show(page, query=2)
    assert mask.inner_text().split() == ["bring", "back", "window"]
    show(page, query=0)
    expect(mask).to_have_count(0)


def test_cross_attention_has_a_line_of_keys(page):
    keys = ["[CLS]", "la", "porte"]
    weights = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
    open_parts(
        page, stage_of([1], side_of(["the", "door"]), side_of(keys)), {(0, 0): weights}, query=0, key=1
    )
    assert texts(page.locator("#band .others .share")) == ["50.0%", "25.0%", "25.0%"]
    assert page.locator("#band svg path").count() == 3
    expect(page.locator("#band .others .token").first).to_be_disabled()


def test_a_long_line_is_pushed_to_its_query_and_says_that_it_goes_on(page):
    labels = [f"token{at}" for at in range(40)]
    open_parts(page, stage_of([1], side_of(labels)), random_heads([1], 40), width=360, query=20, key=0)
    expect(page.locator("#band .token").nth(20)).to_be_in_viewport()
    expect(page.locator("#band .more.before")).to_be_visible()
    expect(page.locator("#band .more.after")).to_be_visible()
    page.locator("#band .scroller").evaluate("line => { line.scrollLeft = 0; }")
    expect(page.locator("#band .more.before")).to_be_hidden()


def test_a_text_of_more_than_64_tokens_has_chips_with_bars(page):
    labels = ["word" if at % 3 else "antidisestablishment" for at in range(65)]
    weights = np.zeros((65, 65))
    weights[:, 1] = 1
    open_parts(page, stage_of([1], side_of(labels)), {(0, 0): weights}, width=400, query=0, key=1)
    assert page.locator("#band svg").is_hidden()
    bars = page.locator("#band .token").evaluate_all(
        "tokens => tokens.map((token) => parseFloat(getComputedStyle(token, '::after').width))"
    )
    assert bars[1] > 30
    assert set(bars[2:]) == {0}
    shown = page.locator("#band .beyond").inner_text()
    assert shown.startswith("More tokens: ")
    assert shown.endswith(" below. Scroll.")


def test_heads_are_walked_in_order_and_framed(small):
    frame = small.locator("#heads .frame")

    def framed(cell):
        inner, outer = cell.locator(".edge").bounding_box(), frame.bounding_box()
        return (
            abs(inner["x"] + inner["width"] / 2 - outer["x"] - outer["width"] / 2) < 1
            and abs(inner["y"] + inner["height"] / 2 - outer["y"] - outer["height"] / 2) < 1
        )

    cells = small.locator("#heads [role=gridcell]")
    assert [(cell.get_attribute("data-layer"), cell.get_attribute("data-head")) for cell in cells.all()] == [
        ("0", "0"),
        ("0", "1"),
        ("1", "0"),
    ]
    assert [framed(cell) for cell in cells.all()] == [True, False, False]
    show(small, layer=1)
    assert [framed(cell) for cell in cells.all()] == [False, False, True]
    small.get_by_label("Next head").click()
    small.get_by_label("Previous head").click()
    assert [told for told in calls(small) if told[0] == "pick"] == [
        ["pick", {"layer": 0, "head": 0}],
        ["pick", {"layer": 0, "head": 1}],
    ]
    cells.nth(1).hover()
    assert calls(small)[-1] == ["preview", {"place": {"layer": 0, "head": 1}}]
    expect(small.locator("#heads .live")).to_have_text("Layer 0, head 1: a name")
    small.mouse.move(900, 700)
    cells.nth(2).focus()
    small.keyboard.press("ArrowUp")
    small.keyboard.press("ArrowRight")
    small.keyboard.press("ArrowDown")  # layer 1 has one head
    small.keyboard.press("Enter")
    assert calls(small)[-1] == ["pick", {"layer": 1, "head": 0}]


@pytest.mark.parametrize("clip", [True, False])
def test_pictures_of_heads_end_where_ordinary_cells_do(small, clip):
    show(small, clip=clip)
    side = small.evaluate("parts.heads.side")
    tone = """([row, column]) => {
      const { canvas, side } = parts.heads, ratio = canvas.width / parseFloat(canvas.style.width), { x, y } = parts.heads.placed({ layer: 0, head: 0 });
      return [...canvas.getContext("2d").getImageData((x + ((column + 0.5) * side) / 5) * ratio, (y + ((row + 0.5) * side) / 5) * ratio, 1, 1).data].slice(0, 3);
    }"""
    assert side >= 14
    scale = weight_scale(THEMES["light"])
    strongest = [int(scale[-1][1][at : at + 2], 16) for at in (1, 3, 5)]
    assert small.evaluate(tone, [1, 1]) == strongest  # "the" on itself: the largest of all
    background = [255, 255, 255]
    assert small.evaluate(tone, [1, 0]) == background
    # With all weights of ordinary tokens halved, those of special tokens lie beyond the end of the colours.
    halved = WEIGHTS.copy()
    halved[1] = [0.55, 0.45, 0, 0, 0]
    halved[4] = [0.9, 0.1, 0, 0, 0]
    load(small, stage_of([2, 1], side_of(LABELS)), {(0, 0): halved, (0, 1): halved, (1, 0): halved})
    show(small, clip=clip)
    assert (small.evaluate(tone, [3, 2]) == strongest) == clip


def test_heads_without_weights_are_numbered_and_can_be_selected(page):
    stage = stage_of([9] * 30, side_of(LABELS), cells={"measure": "weights", "heads": [[0, 0]]})
    open_parts(page, stage, {(0, 0): WEIGHTS})
    expect(page.locator("#heads .note")).to_have_text(
        "Pictures for short texts; All heads draws them for up to 1,024 tokens."
    )
    page.locator("#heads [data-layer='29'][data-head='8']").click()
    assert calls(page)[-1] == ["pick", {"layer": 29, "head": 8}]


def test_another_head_costs_its_picture_no_time(page):
    open_parts(page, stage_of([9] * 30, side_of([f"t{at}" for at in range(32)])), random_heads([9] * 30, 32))
    took = [show(page, layer=layer)["heads"] for layer in range(20)]
    assert np.median(took) < 2


def test_the_ranking_lists_the_strongest_keys_of_the_query(page):
    labels = [*LABELS[:4], "the", "cat", "sat", "on", "mat", "[SEP]"]
    row = np.array([0.3, 0.01, 0.25, 0.02, 0.15, 0.03, 0.04, 0.06, 0.09, 0.05])
    open_parts(page, stage_of([1], side_of(labels)), {(0, 0): np.tile(row, (10, 1))}, query=4, key=2)
    rows = page.locator("#ranking button")
    assert [" ".join(text.split()) for text in texts(rows)] == [
        *["[CLS]·0 30.0%", "door·2 25.0%", "the·4 15.0%", "mat·8 9.0%"],
        *["on·7 6.0%", "[SEP]·9 5.0%", "sat·6 4.0%", "cat·5 3.0%"],
    ]
    expect(page.locator("#ranking .told")).to_have_text(
        "Keys of “the” (token 4), largest weight first; 2 weaker ones are not listed."
    )
    expect(page.locator("#ranking [aria-pressed=true]")).to_contain_text("door·2")
    longest, second = (rows.nth(at).locator(".length").bounding_box()["width"] for at in (0, 1))
    assert second / longest == pytest.approx(25 / 30, abs=0.02)
    rows.nth(3).click(position={"x": 150, "y": 4})
    assert calls(page) == [["pick", {"key": 8}]]


@pytest.mark.parametrize("n_token", [5, 30, 64])
def test_lines_are_those_of_the_library(page, n_token):
    weights = random_heads([1], n_token)[0, 0].round(6)
    open_parts(
        page, stage_of([1], side_of([f"t{at}" for at in range(n_token)])), {(0, 0): weights}, query=3, key=1
    )
    matrices = weights[None]
    for most in (2000, 12):
        flow = strongest_lines(matrices, above_share(matrices, 0.7), whole_row=3, most=most)
        found = page.evaluate(
            f"flowLines(patterns.get('0.0'), 3, 0.7, {most}).map(({{ query, key }}) => [query, key])"
        )
        assert sorted(map(tuple, found)) == sorted(zip(flow.query.tolist(), flow.key.tolist(), strict=True))
    drawn = {
        (int(line.get_attribute("data-query")), int(line.get_attribute("data-key")))
        for line in page.locator("#flow path").all()
    }
    flow = strongest_lines(matrices, above_share(matrices, 0.7), whole_row=3)
    lines = set(zip(flow.query.tolist(), flow.key.tolist(), strict=True))
    assert drawn == {(query, key) for query, key in lines if n_token <= 48 or query == 3 or key == 1}
    told = page.locator("#flow .told").inner_text()
    assert f"{len(lines):,} lines, {flow.share * 100:.1f}% of the attention weight" in told
    assert ("are hidden" in told) == (n_token > 48)


def test_arcs_of_all_tokens_show_numbers_and_select(small):
    def numbers():
        return {
            int(number.get_attribute("data-of")): number.text_content()
            for number in small.locator("#flow .number").all()
        }

    assert numbers() == {0: "47.5%", 2: "50.0%"}
    keys = small.locator("#flow [data-side=key]")
    keys.nth(1).hover()
    assert numbers() == {
        0: "20.0%",
        1: "100.0%",
        2: "30.0%",
    }  # of the queries that look at "the", by the lines drawn
    keys.nth(1).click()
    queries = small.locator("#flow [data-side=query]")
    queries.nth(2).hover()
    queries.nth(2).click()
    told = calls(small)
    assert ["pick", {"key": 1}] in told
    assert told[-2:] == [["preview", {"query": 2}], ["pick", {"query": 2}]]
    small.mouse.move(900, 5)
    queries.nth(3).focus()
    small.keyboard.press("ArrowDown")
    small.keyboard.press("ArrowRight")
    small.keyboard.press("Enter")
    assert calls(small)[-1] == ["pick", {"key": 4}]


def test_hostile_tokens_stay_text(page):
    hostile = "<img src=x onerror=document.title='hacked'>"
    labels = [hostile, "<b>", "&lt;i&gt;", "it", "$x^2$"]
    open_parts(
        page,
        stage_of([2], side_of(labels, was={"3": hostile}), maskLabel="<script>"),
        {(0, 0): WEIGHTS, (0, 1): WEIGHTS},
    )
    page.locator("#flow [data-side=key]").first.hover()
    assert page.locator("img, b, i").count() == 0
    assert page.title() == ""
    assert page.locator("#band .label").first.inner_text() == hostile
    assert page.locator("#ranking .what").all_inner_texts()[0] == "&lt;i&gt;·2"


def test_nothing_of_another_text_stays_and_what_waits_is_dim(small):
    load(small, stage_of([2, 1], side_of(LABELS)) | {"text": "a"}, {})
    show(small)
    for name in ("band", "ranking", "flow"):
        expect(small.locator(f"#{name} > .waits")).to_have_count(1)
    assert small.locator("#ranking button").count() == 5  # the last numbers, dimmed
    load(small, stage_of([2, 1], side_of(["other", *LABELS])) | {"text": "b"}, {})
    show(small)
    assert small.locator("#band svg path").count() == 0
    assert small.locator("#flow path").count() == 0
    assert small.locator("#ranking button").count() == 0
    assert set(texts(small.locator("#band .share"))) == {""}
