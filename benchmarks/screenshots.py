"""The pictures of README and docs/parts.md, taken in a real Chromium: the first screen, and a strip of five pages.

``python -m benchmarks.screenshots`` writes them into ``docs/screens``.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from tests.browser.conftest import LAUNCH, running_server
from tests.browser.find_chromium import chromium_path
from tests.browser.screen import wait_until_drawn

FOLDER = Path(__file__).parents[1] / "docs" / "screens"
WINDOW = {"width": 1366, "height": 840}
REST_MS = 2500  # for what is drawn after the server has sent everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """What one picture shows."""

    path: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    top: str = ".st-key-sentence"
    """Selector of what is at the top of the picture."""
    pressed: str = ""
    """Name of a button that is pressed first."""


SCREENS = {
    "attention": Screen(),
    "all-heads": Screen(path="all_heads"),
    "token-flow": Screen(path="token_flow", top=".st-key-place"),
    "query-key-map": Screen(path="query_key_map", top=".st-key-place"),
    "step-by-step": Screen(
        path="step_by_step", params={"step": 4}, top=".st-key-finding", pressed="f. Weighted values"
    ),
    "door-experiment": Screen(path="door_experiment"),
}


def main() -> None:
    """Takes all pictures again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder) / "app.log") as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(LAUNCH))
        for name, screen in SCREENS.items():
            page = browser.new_context(
                viewport=WINDOW, color_scheme="light", reduced_motion="reduce"
            ).new_page()
            page.goto(f"{server}/{screen.path}?{urlencode(screen.params)}")
            wait_until_drawn(page, screen.path)
            if screen.pressed:
                page.get_by_role("button", name=screen.pressed).click()
            page.wait_for_timeout(REST_MS)
            page.locator(screen.top).first.evaluate("(part) => part.scrollIntoView()")
            page.wait_for_timeout(REST_MS)
            page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
