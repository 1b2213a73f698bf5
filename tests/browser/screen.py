"""What a person sees and does on a page, in words of attnviz instead of the browser's."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import LOAD_MS
from ui.part import Part, room_of
from ui.rooms import ROOMS

DOOR = "I was watching the door when it opened."
SOON_SECONDS = 30  # for what takes a moment, on a slow machine
POLL_MS = 50

T = TypeVar("T")

_PLOT = "document.querySelector(`.st-key-${key} .js-plotly-plot:has(.cartesianlayer)`)"


def open_screen(page: Page, server: str, path: str = "", **params: object) -> None:
    """Opens a link and waits until all of it is drawn."""
    page.goto(f"{server}/{path}" + (f"?{urlencode(params)}" if params else ""))
    wait_until_drawn(page, path)


PLACES = {"step_by_step": {"step": 4}}
"""What a page is opened with where it would begin without a chart."""
POINTS = {"many_sentences": "joint_map"}
"""Keys of the charts that WebGL draws."""


def wait_until_drawn(page: Page, path: str | None = None) -> None:
    """Waits until the page says that its newest run is drawn, and where a path is given, until what that part begins with is there,
    and nothing is under way. After something that leads to a run, use `answered`: a click may still be on its way."""
    if path is not None:
        keys = ["viewer"] if path == "" else [*part_at(path).pictures]
        if keys:
            drawn = ", ".join(f".st-key-{key}[data-stale=false] :is(svg, canvas)" for key in keys)
            expect(page.locator(drawn).filter(visible=True)).not_to_have_count(0, timeout=LOAD_MS)
        expect(page.locator(".stProgress")).to_have_count(0, timeout=LOAD_MS)
        if path in POINTS:
            wait_for_points(page, POINTS[path])
    _wait_for_a_run(page)


@contextmanager
def answered(page: Page) -> Iterator[None]:
    """After the block, waits until a later run is drawn than before it."""
    before = _wait_for_a_run(page)
    yield
    _wait_for_a_run(page, other_than=before)


_DRAWN = """before => {
    const drawn = document.querySelector("[data-testid=stApp]")?.dataset.drawn;
    return drawn && drawn !== before ? drawn : false;
}"""


def _wait_for_a_run(page: Page, *, other_than: str | None = None) -> str:
    """The number of the newest run, once it is drawn; `expect` would poll again only after a second."""
    newest: str = page.wait_for_function(
        _DRAWN, arg=other_than, polling=POLL_MS, timeout=LOAD_MS
    ).json_value()
    return newest


def part_at(path: str) -> Part:
    """The part at this address."""
    return next(part for room in ROOMS for part in room.parts if part.address == path)


def expect_its_one_name(page: Page, path: str) -> None:
    """The room's name as heading, part and room as title, and both marked as current in the row and in the menu."""
    part = part_at(path)
    room = room_of(part)
    expect(page.get_by_role("heading", level=1)).to_have_text(room.name)
    expect(page).to_have_title(part.title)
    expect(row(page)).to_have_text([part.name for part in room.parts] if len(room.parts) > 1 else [])
    is_hidden = not room.in_menu
    expect(current(page)).to_contain_text([room.name] * (not is_hidden) + [part.name] * (len(room.parts) > 1))


def row(page: Page) -> Locator:
    """The parts of the room: links, and buttons where the stage is open and changes itself."""
    return page.locator(".st-key-parts :is(a, button)").filter(visible=True)


def current(page: Page) -> Locator:
    """The links that are marked as leading to what is shown: of the menu, and of the row."""
    marked = page.locator(".st-key-menu [aria-current=page], .st-key-parts [aria-current=page]")
    return marked.filter(visible=True)


def wait_for_points(page: Page, key: str) -> None:
    """Waits until WebGL has drawn the points of a chart, and a click on one is heard."""
    expect(page.locator(f".st-key-{key}[data-stale=false] .gl-canvas-context")).to_be_visible(timeout=LOAD_MS)
    expect(page.locator(f".st-key-{key} .js-plotly-plot[data-linked]")).to_be_visible(timeout=LOAD_MS)


_RESTS = """() => {
    const inside = root => [...root.querySelectorAll("*")].flatMap(
        element => [
            ...(element.localName === "svg" ? [element] : []),
            ...(element.shadowRoot ? inside(element.shadowRoot) : []),
        ]);
    const {scrollWidth, scrollHeight} = document.querySelector("[data-testid=stMain]");
    const seen = [innerWidth, scrollWidth, scrollHeight, ...inside(document).flatMap(element => {
        const {x, y, width, height} = element.getBoundingClientRect();
        return [x, y, width, height].map(Math.round);
    })].join();
    const moves = document.getAnimations().some(
        animation => animation.playState === "running" && animation.effect.getComputedTiming().endTime !== Infinity);
    if (moves || window.lastSeen !== seen) [window.lastSeen, window.nSeen] = [seen, 0];
    window.nSeen += 1;
    return window.nSeen > 6;
}"""
"""What a change of the window's size moves: the page, its charts, and the pictures of its components."""


def wait_until_still(page: Page) -> None:
    """Waits until nothing has moved for several polls, each after the page has done what was due."""
    page.evaluate("delete window.lastSeen")  # of the wait before this one
    page.wait_for_function(_RESTS, polling=POLL_MS, timeout=LOAD_MS)


def wait_for_a_frame(page: Page) -> None:
    """Waits until the browser has drawn what it has."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def expect_soon(page: Page, read: Callable[[Page], T], wanted: T) -> None:
    """Waits until what is read of a page is this: a chart or component is drawn a moment after the page is idle."""
    end = time.monotonic() + SOON_SECONDS
    while (value := read(page)) != wanted and time.monotonic() < end:
        wait_for_a_frame(page)
    assert value == wanted, value


def once_changed(page: Page, read: Callable[[Page], T], before: T) -> T:
    """What is read of a page as soon as it is no longer what it was."""
    end = time.monotonic() + SOON_SECONDS
    while (value := read(page)) == before and time.monotonic() < end:
        wait_for_a_frame(page)
    assert value != before
    return value


def plot(page: Page, key: str) -> Locator:
    """A drawn chart; while a new one is made, the old one is still there."""
    return page.locator(f".st-key-{key}[data-stale=false] .js-plotly-plot:has(.cartesianlayer)")


def finding(page: Page) -> Locator:
    """The line in words, of the stage or of another page; while the next one is drawn, the one before may still be there."""
    drawn = page.locator(".viewer .headline, [data-testid=stElementContainer][data-stale=false] strong")
    return drawn.filter(has_text=re.compile(r"^Layer \d+, head \d+: "))


def stage(page: Page, read: str) -> Any:
    """What is read of the stage's viewer, as JavaScript."""
    return page.evaluate(f"() => {{ const viewer = document.attnvizStage.viewer; return {read}; }}")


def verdict(page: Page) -> Locator:
    """The verdict, or what a bundle records; Streamlit draws its label once for wide and once for narrow windows."""
    wording = re.compile(
        "weights within|weights bit-identical|weights differ by|Recorded when the bundle was made"
    )
    return page.get_by_text(wording).filter(visible=True).first


def chips(page: Page) -> Locator:
    return page.get_by_role("group", name="Tokens; select one as the query").locator("[data-position]")


def chip(page: Page, position: int) -> Locator:
    return page.get_by_role("button", name=re.compile(rf"^token {position}: "))


def picked_chips(page: Page) -> list[int]:
    pressed = page.get_by_role("group", name="Tokens").locator("[aria-pressed=true]")
    return [
        int(position)
        for position in pressed.evaluate_all("all => all.map(element => element.dataset.position)")
    ]


def readout(page: Page) -> Locator:
    """The line below the matrix that says what a cell holds."""
    return page.locator(".viewer .matrix .live, .heatmap_events[aria-live]")


def sentence(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Sentence", exact=True)


def show_attention(page: Page, text: str) -> None:
    sentence(page).fill(text)
    sentence(page).press("Enter")


def link(page: Page) -> dict[str, str]:
    """The parameters in the address."""
    return dict(parse_qsl(urlsplit(page.url).query, keep_blank_values=True))


def wait_for_link(page: Page, **params: object) -> None:
    """Waits until the address says this."""
    wanted = {name: str(value) for name, value in params.items()}
    page.wait_for_url(
        lambda url: wanted.items() <= dict(parse_qsl(urlsplit(url).query)).items(),
        wait_until="commit",
        timeout=LOAD_MS,
    )


def cells(page: Page) -> Any:
    """Numbers of the attention matrix on the stage, row by row; None where a query may not see a key."""
    return stage(
        page,
        "(({weights, keys: {labels}}) => Array.from({length: weights.length / labels.length}, (_, row) => "
        "Array.from(weights.subarray(row * labels.length, (row + 1) * labels.length), x => Number.isFinite(x) ? x : null)))"
        "(viewer.scene().pattern)",
    )


def point_of_cell(page: Page, row: int, column: int) -> tuple[float, float]:
    """Where a cell's middle is in the window."""
    page.locator(".viewer .matrix canvas").first.scroll_into_view_if_needed()
    x, y = stage(
        page,
        "(matrix => { const box = matrix.sheet.getBoundingClientRect(); "
        f"return [box.x + matrix.xOf({column + 0.5}), box.y + matrix.yOf({row + 0.5})]; }})(viewer.parts.matrix)",
    )
    return x, y


def click_cell(page: Page, row: int, column: int) -> None:
    page.mouse.click(*point_of_cell(page, row, column))


def hover_cell(page: Page, row: int, column: int) -> None:
    page.mouse.move(*point_of_cell(page, row, column))


def head(page: Page, layer: int, number: int) -> Locator:
    """The small picture of a head."""
    return page.locator(f".viewer .heads [data-layer='{layer}'][data-head='{number}']")


def bars(page: Page) -> list[str]:
    """Keys of the ranking, strongest first."""
    return page.locator(".viewer .ranking .what").all_inner_texts()


def line_starts(page: Page) -> list[list[float]]:
    """Where the lines of the map start: the picked query's point, once for each line."""
    starts: list[list[float]] = page.evaluate(
        "key => "
        + _PLOT
        + "._fullData.filter(trace => trace.mode === 'lines').map(trace => [trace.x[0], trace.y[0]])",
        "map",
    )
    return starts


def map_point(page: Page, role: str, position: int) -> list[float]:
    """Where the point of a query or key lies on the map."""
    point: list[float] = page.evaluate(
        "([key, role, position]) => { const points = "
        + _PLOT
        + "._fullData.find(trace => trace.name === role); return [points.x[position], points.y[position]]; }",
        ["map", role, position],
    )
    return point


def screen(page: Page) -> dict[str, Any]:
    """Everything that two people must see alike who open the same link."""
    expect(chips(page).first).to_be_visible()  # drawn apart from the charts, like the line that is read out
    return {
        "finding": finding(page).inner_text(),
        "chips": chips(page).all_inner_texts(),
        "picked": picked_chips(page),
        "readout": readout(page).inner_text(),
        "cells": cells(page),
        "bars": bars(page),
        "lines": line_starts(page),
        "link": link(page),
        "sentence": sentence(page).input_value(),
    }
