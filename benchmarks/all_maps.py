"""All maps at once: time from the click on the page's link until the last map is drawn, and bytes sent.

`python -m benchmarks.all_maps` prints this part alone.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, sync_playwright

import attnviz
from attnviz.model.catalogue import EMBEDDED
from benchmarks.all_heads import LARGE, TWO_FRAMES, open_browser, received_lengths, save_large
from benchmarks.core import text_of
from benchmarks.measurement import Measurement
from tests.browser.conftest import running_server

N_TOKENS = (32, 128, 512)
N_HEAD = 144
MOST_SECONDS = 20.0
"""For the text with the fewest tokens."""
PATIENCE_MS = 600_000
DRAWN = """
n => {
  const grid = document.querySelector('.st-key-map_grid');
  const roots = grid ? [grid, ...[...grid.querySelectorAll('*')].flatMap(one => one.shadowRoot ?? [])] : [];
  return roots.some(one => one.querySelectorAll('path.keys').length === n);
}
"""


def measure() -> Iterator[Measurement]:
    """144 attention maps of a model of 12 layers of 12 heads, for short and long texts."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        large = save_large(Path(folder) / LARGE)
        model = attnviz.load_model(EMBEDDED)
        with running_server(Path(folder) / "app.log", ATTNVIZ_MODELS=str(large)) as server:
            with open_browser(playwright) as browser:  # the processes start and import what they need
                _shown(browser, server, "Warm up.")
            print(f"\nall maps, {N_HEAD} heads\ntokens   seconds        MB")
            for n_token in N_TOKENS:
                with open_browser(playwright) as browser:
                    seconds, mb = _shown(browser, server, text_of(model, n_token))
                print(f"{n_token:>6}  {seconds:>8.1f}  {mb:>8.2f}", flush=True)
                if n_token == N_TOKENS[0]:
                    yield Measurement(
                        what="all maps, s from click to drawn",
                        value=seconds,
                        budget=MOST_SECONDS,
                        detail=f"{n_token} tokens, 12 x 12 heads, in Chromium",
                    )


def _shown(browser: Browser, server: str, text: str) -> tuple[float, float]:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(f"{server}/find_a_head?{urlencode({'model': LARGE, 'text': text})}")
    page.wait_for_selector(".st-key-head_grid svg", timeout=PATIENCE_MS)
    page.wait_for_selector("[data-test-script-state=notRunning]", timeout=PATIENCE_MS)
    received = received_lengths(page)
    start = time.perf_counter()
    page.get_by_role("link", name="Maps", exact=True).click()
    page.wait_for_function(DRAWN, arg=N_HEAD, timeout=PATIENCE_MS, polling=100)
    page.evaluate(TWO_FRAMES)
    return time.perf_counter() - start, sum(received) / 1e6


if __name__ == "__main__":
    for line in measure():
        print(f"{line.what:40} {line.value:6.1f} of {line.budget:.0f} {line.detail}")
