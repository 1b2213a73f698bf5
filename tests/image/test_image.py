"""The image as an operator meets it: what it may, what it cannot, and that it ends. `make image-test`."""

import asyncio
import json
import socket
import threading
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect
from websockets.exceptions import ConnectionClosed

import attnviz
from tests.browser.screen import cells, finding, open_screen, verdict
from tests.image.conftest import BAKED
from tests.visitor import visit
from ui.rooms import PAGES

SERVER = "http://127.0.0.1:8501"


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_it_is_smaller_than_1600_mb(engine, image):
    assert (
        int(engine("image", "inspect", "--format", "{{.Size}}", image).stdout) < 1.6e9
    )  # 93 MB of it are the language model


def test_it_says_what_it_is(engine, image):
    labels = json.loads(engine("image", "inspect", image).stdout)[0]["Config"]["Labels"]
    about = {name.rpartition(".")[2]: value for name, value in labels.items() if "opencontainers" in name}
    assert about["title"] == "attnviz" and about["licenses"] == "Apache-2.0"
    assert len(about["revision"]) == 40 and about["version"] == attnviz.__version__


def test_it_is_healthy(container):
    assert container.is_healthy()
    assert container("python", "-c", "import sys; sys.exit(3)")[0] == 3  # what says no is heard


def test_no_process_is_root_or_can_become_so(container):
    pids = container.pids
    assert len(pids) >= 1
    for pid in pids:
        of = status(pid)
        assert set(of["Uid"].split()) == {"1000"}
        assert int(of["CapEff"], 16) == int(of["CapBnd"], 16) == 0
        assert of["NoNewPrivs"] == "1"


@pytest.mark.parametrize("folder", ["/app", "/venv", "/models", "/tmp", "/etc", "/"])
def test_nothing_can_be_written(container, folder):
    code, output = container("touch", f"{folder}/written")
    assert code != 0 and ("Read-only" in output or "Permission denied" in output)


def test_but_to_one_folder(container):
    assert container("touch", "/data/written")[0] == 0


def test_pages_never_ask_for_what_is_outside(container):
    """Before Chromium starts, which asks its network for things of its own."""
    before = container.without_route()

    async def through_all_pages() -> list[str]:
        wrong = []
        for page in PAGES:
            async with visit(SERVER, page.address, text="I was watching the door when it opened.") as visitor:
                await visitor.settle(300)
                wrong += visitor.exceptions
        async with visit(SERVER, "", model=BAKED, text="i was watching") as visitor:
            await visitor.settle(300)
            wrong += visitor.exceptions
        return wrong

    assert container.inside(lambda: asyncio.run(through_all_pages())) == []
    assert container.without_route() == before == 0

    def ask() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as udp:
            udp.sendto(b"", ("192.0.2.53", 53))

    with pytest.raises(OSError, match="unreachable"):
        container.inside(ask)
    assert container.without_route() == 1  # so that a question would have been seen


def test_the_first_screen_has_the_door_example(browser, container):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    open_screen(page, SERVER)
    expect(finding(page)).to_contain_text("“it” looks mostly at “[CLS]” (48.4%) and “door” (47.5%)")
    expect(verdict(page)).to_contain_text("weights within")
    assert round(cells(page)[7][5], 3) == 0.475
    page.close()


def test_a_baked_model_needs_no_network(browser, container):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    open_screen(page, SERVER, model=BAKED, text="i was watching the door")
    expect(finding(page)).to_contain_text("Layer ")
    expect(verdict(page)).to_contain_text("weights within")
    expect(page.get_by_role("combobox", name="Model").first).to_have_value(BAKED)
    page.close()


def test_a_umap_map_is_drawn(browser, container):
    """Numba keeps what it has compiled, for which it needs a folder that it may write to."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    open_screen(page, SERVER, "query_key_map", method="umap")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert container("sh", "-c", "ls /data/numba | head -1")[1].strip()
    page.close()


def test_sigterm_ends_it_at_once_with_a_page_open(container):
    """The last test: the container is gone afterwards."""
    left = threading.Event()

    async def stay() -> None:
        async with visit(SERVER, "all_maps") as visitor:
            await visitor.until(lambda: visitor.n_run > 0)
            there.set()
            await visitor.until(lambda: False, 60)

    def visitor() -> None:
        try:
            container.inside(lambda: asyncio.run(stay()))
        except (ConnectionError, ConnectionClosed):
            left.set()

    there = threading.Event()
    thread = threading.Thread(target=visitor)
    thread.start()
    assert there.wait(120)
    pids = container.pids
    assert len(pids) > 1  # the workers are at the maps

    start = time.monotonic()
    container.engine("kill", "--signal", "TERM", container.name)
    while container.state("Running") == "true" and time.monotonic() - start < 20:
        time.sleep(0.1)
    took = time.monotonic() - start
    thread.join(10)

    print(f"It ended in {took:.1f} s.")
    assert took < 10
    assert container.state("ExitCode") in ("0", "143")
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert left.is_set()
    assert "Traceback" not in container.log()
