"""The first screen in a real Chromium: a sentence changed, until its heatmap is drawn."""

import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import attnviz
from attnviz.figures import draw_heatmap
from attnviz.model.catalogue import EMBEDDED
from benchmarks.measurement import Measurement
from tests.browser.conftest import LAUNCH, running_server
from tests.browser.find_chromium import chromium_path

SUBJECTS = ["cat", "dog", "man", "girl", "bird", "king", "child", "nurse", "judge", "clerk", "guard", "monk"]
# From the click on the button until the drawn axis shows the new sentence's token.
CLICK_UNTIL_DRAWN = """
([button, label]) => new Promise((resolve) => {
  const start = performance.now();
  const look = () => {
    const ticks = document.querySelectorAll('.st-key-matrix .js-plotly-plot .xtick text');
    if ([...ticks].some((tick) => tick.textContent === label)) resolve(performance.now() - start);
    else requestAnimationFrame(look);
  };
  [...document.querySelectorAll('button')].find((one) => one.textContent.includes(button)).click();
  look();
})
"""


def measure() -> Iterator[Measurement]:
    """Ratio of the app to a page with ready-made figures, sentence by sentence in turns."""
    sentences = {
        f"The {subject} was watching the old door when it opened.": f"{subject}·2" for subject in SUBJECTS
    }
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        model = attnviz.load_model(EMBEDDED)
        figures = {text: draw_heatmap(model.trace(text), 3, 1).to_json() for text in sentences}
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
                    taken = page.evaluate(CLICK_UNTIL_DRAWN, ["Show attention", label])
                    if number:  # the first is warm-up
                        times[name].append(taken)
                    page.wait_for_function("!document.querySelector('[data-stale=true]')")
            browser.close()
    app_ms, plain_ms = statistics.median(times["app"]), statistics.median(times["plain"])
    yield Measurement(
        what="sentence to heatmap / ready-made figure",
        found=app_ms / plain_ms,
        budget=1.5,
        detail=f"in Chromium; app {app_ms:.0f} ms, ready-made {plain_ms:.0f} ms",
    )


def _open(page: Page, url: str) -> Page:
    page.goto(url)
    page.wait_for_selector(".st-key-matrix .js-plotly-plot .xtick", timeout=120_000)
    page.wait_for_function("!document.querySelector('[data-stale=true]')")
    return page
