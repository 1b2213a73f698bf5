"""The first screen in a real Chromium, until its heatmap is drawn: a sentence changed, and a first visit."""

import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

import attnviz
from attnviz.figures import draw_heatmap
from attnviz.model.catalogue import EMBEDDED
from benchmarks.measurement import Measurement
from benchmarks.sentences import SUBJECTS
from tests.browser.conftest import LAUNCH, running_server
from tests.browser.find_chromium import chromium_path

# From the moment Enter is pressed until the drawn axis shows the new sentence's token.
UNTIL_DRAWN = """
(label) => {
  window.taken = 0;
  document.addEventListener("keydown", () => {
    const start = performance.now();
    const look = () => {
      const ticks = document.querySelectorAll('.st-key-matrix .js-plotly-plot .xtick text');
      if ([...ticks].some((tick) => tick.textContent === label)) window.taken = performance.now() - start;
      else requestAnimationFrame(look);
    };
    look();
  }, {capture: true, once: true});
}
"""
VISITS = 9
DRAWN = ".st-key-matrix .js-plotly-plot .xtick"
# From the moment the address is opened until the heatmap has its labels.
NOTE_DRAWN = f"""
const look = () => {{
  if (document.querySelector("{DRAWN}")) window.drawnAt = performance.now();
  else requestAnimationFrame(look);
}};
look();
"""


def measure() -> Iterator[Measurement]:
    """Ratio of the app to a page with ready-made figures, sentence by sentence in turns."""
    sentences = {
        f"The {subject} was watching the old door when it opened.": f"{subject}·2" for subject in SUBJECTS
    }
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        model = attnviz.load_model(EMBEDDED)
        figures = {text: [draw_heatmap(model.trace(text), 3, 1).to_json()] for text in sentences}
        ready.write_text(json.dumps(figures), encoding="utf-8")
        with (
            running_server(Path(folder) / "app.log") as app,
            running_server(
                Path(folder) / "plain.log", "benchmarks/ready_made.py", ATTNVIZ_READY_MADE=str(ready)
            ) as plain,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=LAUNCH)
            pages = {name: _open(browser.new_page(), url) for name, url in (("app", app), ("plain", plain))}
            times: dict[str, list[float]] = {name: [] for name in pages}
            for number, (text, label) in enumerate(list(sentences.items())[1:]):
                for name, page in pages.items():
                    page.get_by_label("Sentence", exact=True).fill(text)
                    page.evaluate(UNTIL_DRAWN, label)
                    page.keyboard.press("Control+Enter")
                    page.wait_for_function("window.taken")
                    if number:  # the first is warm-up
                        times[name].append(float(page.evaluate("window.taken")))
                    page.wait_for_function("!document.querySelector('[data-stale=true]')")
            first_visits = _first_visits(browser, {"app": app, "plain": plain}, next(iter(sentences)))
            browser.close()
    for what, (app_ms, plain_ms) in {
        "sentence to heatmap": (statistics.median(times["app"]), statistics.median(times["plain"])),
        "first visit to heatmap": first_visits,
    }.items():
        yield Measurement(
            what=f"{what} / ready-made figure",
            value=app_ms / plain_ms,
            budget=1.5,
            detail=f"in Chromium; app {app_ms:.0f} ms, ready-made {plain_ms:.0f} ms",
        )


def _first_visits(browser: Browser, urls: dict[str, str], text: str) -> tuple[float, float]:
    """Median milliseconds of visits with an empty cache to servers that others have visited, in turns."""
    times: dict[str, list[float]] = {name: [] for name in urls}
    for number in range(VISITS + 1):
        for name, url in urls.items():
            context = browser.new_context()
            page = context.new_page()
            page.add_init_script(NOTE_DRAWN)
            page.goto(f"{url}/?{urlencode({'text': text})}", wait_until="commit")
            page.wait_for_function("window.drawnAt", timeout=120_000)
            if number:  # the first is warm-up
                times[name].append(float(page.evaluate("window.drawnAt")))
            context.close()
    return statistics.median(times["app"]), statistics.median(times["plain"])


def _open(page: Page, url: str) -> Page:
    page.goto(url)
    page.wait_for_selector(DRAWN, timeout=120_000)
    page.wait_for_function("!document.querySelector('[data-stale=true]')")
    return page
