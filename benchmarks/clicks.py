"""Every kind of click on the first screen in a real Chromium, from the moment the button is released to the last picture."""

import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

import attnviz
from attnviz.model.catalogue import EMBEDDED
from benchmarks.measurement import Measurement
from tests.browser.conftest import LAUNCH, running_server
from tests.browser.find_chromium import chromium_path
from tests.browser.screen import chip, click_cell, wait_until_drawn

BUDGETS = {12: 0.5, 128: 1.0}
"""Seconds from a click to its picture, by the number of tokens."""
WINDOW = {"width": 1400, "height": 900}
RUNS = 7
REST_MS = 700  # a picture that has not changed for this long is drawn
WORDS = (
    "The river flooded an old market twice, and nobody was surprised, for it had rained since spring. " * 9
)

# Notes the frame in which each picture last changed. A picture is what Plotly draws, without what follows the pointer, or
# what a component draws in its shadow root.
WATCH = """
(keys) => {
  const shadows = (root) => [root, ...[...root.querySelectorAll("*")].filter((one) => one.shadowRoot)
    .flatMap((one) => shadows(one.shadowRoot))];
  const drawn = ".js-plotly-plot :is(.cartesianlayer, .shapelayer, .imagelayer), svg:not(.main-svg, .js-plotly-plot *)";
  const picture = (key) => [...document.querySelectorAll(`.st-key-${key}`)].flatMap(shadows)
    .flatMap((root) => [...root.querySelectorAll(drawn)]).map((one) => one.innerHTML).join("");
  const watch = {now: 0, released: null, changed: {}};
  const seen = Object.fromEntries(keys.map((key) => [key, picture(key)]));
  const release = () => { watch.released ??= performance.now(); };
  document.addEventListener("pointerup", release, {capture: true, once: true});
  const look = () => {
    watch.now = performance.now();
    for (const key of keys) {
      const found = picture(key);
      if (found && found !== seen[key]) [seen[key], watch.changed[key]] = [found, watch.now];
    }
    if (window.watch === watch) requestAnimationFrame(look);
  };
  window.watch = watch;
  requestAnimationFrame(look);
}
"""
# Milliseconds until each picture, once all have changed and no longer change; null before that.
TIMES = """
([keys, rest]) => {
  const {now, released, changed} = window.watch;
  const isDrawn = keys.every((key) => now - changed[key] > rest) && !document.querySelector("[data-stale=true]")
    && document.querySelector("[data-test-script-state=notRunning]");
  return isDrawn ? keys.map((key) => changed[key] - released) : null;
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """One kind of click, and the pictures that it changes."""

    what: str
    press: Callable[[Page, int], None]
    """Performs the click on a page, in the run of this number."""
    pictures: tuple[str, ...] = ("matrix", "ranking", "map")
    """Keys of the charts or components."""


def _step_layer(page: Page, run: int) -> None:
    page.get_by_test_id(f"stNumberInputStep{('Up', 'Down')[run % 2]}").first.click()


def _press(name: str, role: str = "button") -> Callable[[Page, int], None]:
    return lambda page, run: page.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]


def _open(name: str) -> Callable[[Page, int], None]:
    return lambda page, run: page.locator(".st-key-menu").get_by_role("link", name=name).first.click()


# In this order no head is shown twice, so that no map has been made before.
CLICKS = (
    Click(what="a token's chip", press=lambda page, run: chip(page, 1 + run).click()),
    Click(what="a cell", press=lambda page, run: click_cell(page, (5 + run) % 11, (2 + 3 * run) % 11)),
    Click(what="Next head", press=_press("Next")),
    Click(what="Scores", press=_press("Scores", "radio"), pictures=("matrix",)),
    Click(what="Weights", press=_press("Weights", "radio"), pictures=("matrix",)),
    Click(what="Euclidean", press=_press("Euclidean", "radio"), pictures=("map",)),
    Click(what="Cosine", press=_press("Cosine", "radio"), pictures=("map",)),
    Click(what="the next layer", press=_step_layer),
    Click(what="room All heads", press=_open("All heads"), pictures=("head_grid",)),
    Click(what="room Explore", press=_open("Explore")),
)


def measure() -> Iterator[Measurement]:
    """Median seconds of every kind of click, with 12 tokens and with 128."""
    model = attnviz.load_model(EMBEDDED)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder) / "app.log") as app,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=LAUNCH)
        for n_tokens, budget in BUDGETS.items():
            words = WORDS.split()
            texts = (" ".join(words[:n_words]) for n_words in range(1, len(words)))
            text = next(text for text in texts if len(model.tokenize(text)) == n_tokens)
            page = browser.new_context(viewport=WINDOW).new_page()
            page.goto(f"{app}/?{urlencode({'text': text, 'layer': 2, 'head': 1})}")
            wait_until_drawn(page)
            times: dict[str, list[list[float]]] = {click.what: [] for click in CLICKS}
            for run in range(RUNS + 1):
                for click in CLICKS:
                    page.evaluate(WATCH, click.pictures)
                    click.press(page, run)
                    taken = page.wait_for_function(
                        TIMES, arg=[click.pictures, REST_MS], timeout=120_000, polling=100
                    ).json_value()
                    if run:  # the first is warm-up
                        times[click.what].append([ms / 1e3 for ms in taken])
            page.context.close()
            for click in CLICKS:
                each = [
                    statistics.median(times_of_click)
                    for times_of_click in zip(*times[click.what], strict=True)
                ]
                yield Measurement(
                    what=f"click on {click.what}, {n_tokens} tokens, s",
                    value=statistics.median(max(time) for time in times[click.what]),
                    budget=budget,
                    detail=", ".join(
                        f"{picture} {seconds:.2f}"
                        for picture, seconds in zip(click.pictures, each, strict=True)
                    ),
                )
        browser.close()


if __name__ == "__main__":
    for row in measure():
        print(f"{row.what:44} {row.value:6.3f} of {row.budget} {row.detail}", flush=True)
    sys.exit(0)
