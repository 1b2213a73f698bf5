"""Export, in a real browser: what is saved is opened and read, and what is opened is compared."""

import io
import re
import struct
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Download, Page, expect

import attnviz
from attnviz.bundle.bounds import LARGEST_BUNDLE
from attnviz.bundle.reading import read_bundle
from attnviz.figures.numbers import number_text
from attnviz.figures.theme import THEMES
from tests.browser import pdf
from tests.browser.conftest import LAPTOP, LOAD_MS
from tests.browser.screen import (
    DOOR,
    bars,
    cells,
    chip,
    expect_soon,
    finding,
    open_screen,
    readout,
    screen,
    wait_for_link,
    wait_until_drawn,
    wait_until_still,
)
from tests.tiers import first_gates

SVG = "{http://www.w3.org/2000/svg}"


def open_popover(page: Page) -> None:
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()


def saved(page: Page, name: str) -> Download:
    """What a button of the popover saves; pictures by their whole title."""
    with page.expect_download(timeout=LOAD_MS) as waiting:
        page.get_by_role("button", name=name).click()
    return waiting.value


def picture(page: Page, name: str, kind: str) -> Download:
    words = "as pixels" if kind == "PNG" else "as lines"
    with page.expect_download(timeout=LOAD_MS) as waiting:
        page.locator(f'.save_picture button[title^="{name} {words}"]').click()
    return waiting.value


def choose(page: Page, width: str) -> None:
    [option] = [text for text in page.locator(".save_picture option").all_text_contents() if width in text]
    page.get_by_label("Width").select_option(option)


def content(download: Download) -> bytes:
    return Path(download.path()).read_bytes()


def open_bundle(page: Page, path: Path) -> None:
    page.get_by_role("button", name="More input").click()
    page.locator("input[type=file][accept*=zip]").set_input_files(path)


def svg_words(content: bytes) -> list[str]:
    return ["".join(text.itertext()).strip() for text in ElementTree.fromstring(content).iter(f"{SVG}text")]


class TestPictures:
    @pytest.mark.parametrize("colours", first_gates("light", "dark"))
    def test_as_svg_hold_the_words_on_the_themes_background(self, colours, visitors, server):
        page = visitors(colours=colours)
        open_screen(page, server, text=DOOR, query=7)
        open_popover(page)
        for name, words in (
            ("Attention matrix", {"door·5", "[CLS]·0", "query", "key (token·position)"}),
            ("Map of queries and keys", {"door·5", "queries"}),
        ):
            saved_svg = picture(page, name, "SVG")
            assert re.fullmatch(r"attnviz-layer3-head1-(matrix|map)\.svg", saved_svg.suggested_filename)
            root = ElementTree.fromstring(content(saved_svg))
            assert words <= set(svg_words(content(saved_svg)))
            assert b"non-scaling-stroke" not in content(
                saved_svg
            )  # lines as thick as on screen in every size
            ground = root.find(f"{SVG}rect")
            assert ground is not None
            assert ground.get("fill") == {"light": "#ffffff", "dark": "#0e1117"}[colours]
            assert (ground.get("width"), ground.get("height")) == (root.get("width"), root.get("height"))
            [below] = [group for group in root.iter(f"{SVG}g") if group.get("class") == "caption"]
            assert int(below.get("font-size", "0")) >= 12
            caption = " ".join("".join(line.itertext()) for line in below)
            assert f"“{DOOR}” {name} · all-MiniLM-L6-v2 · layer 3, head 1 · " in caption
            assert caption.endswith(f"attnviz {attnviz.__version__}")
            lowest = max(float(line.get("y", "0")) for line in below)
            assert lowest + 4 < int(root.get("height", "0"))
        expect(page.get_by_text("Saved as attnviz-layer3-head1-map.svg.")).to_be_visible()

    @pytest.mark.nightly
    def test_as_png_are_four_times_the_size_and_what_is_on_screen(self, page, server):
        open_screen(page, server, text=DOOR)
        wait_until_still(page)
        box = page.locator(".viewer .matrix svg").bounding_box()
        open_popover(page)
        png = content(picture(page, "Attention matrix", "PNG"))
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", png[16:24])
        assert width == 4 * np.ceil(box["width"])
        assert 4 * 30 < height - 4 * np.ceil(box["height"]) < 4 * 120  # the caption
        shown = page.evaluate(
            """async (bytes) => {
                const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
                const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
                canvas.drawImage(image, 0, 0);
                const {matrix} = document.attnvizStage.viewer.parts;
                const at = (row, column) => [...canvas.getImageData(
                    4 * matrix.xOf(column + 0.5), 4 * matrix.yOf(row + 0.5), 1, 1).data];
                return {first: at(0, 0), empty: at(0, 10), corner: [...canvas.getImageData(1, 1, 1, 1).data]};
            }""",
            list(png),
        )
        assert shown["corner"] == [255, 255, 255, 255]
        assert shown["first"][3] == 255
        assert max(shown["first"][:3]) < 120  # weight .995: almost the strongest tone
        assert min(shown["empty"][:3]) > 240  # weight .001

    @pytest.mark.nightly
    def test_as_pdf_are_a_page_of_the_width_of_a_column_with_words(self, page, server, visitors):
        open_screen(page, server, text=DOOR, query=7)
        open_popover(page)
        choose(page, "One column")
        page.locator('.save_picture button[title^="Attention matrix as a page"]').click()
        expect(page.get_by_text("Choose “Save as PDF” where the browser asks for a printer.")).to_be_visible(
            timeout=LOAD_MS
        )
        printed = (
            page.locator("iframe.printed").content_frame.locator("html").evaluate("page => page.outerHTML")
        )
        paper = visitors(alone=True)  # a page without a window of a printer prints itself
        paper.set_content(f"<!doctype html>{printed}")
        paper.evaluate("document.fonts.ready")
        made = paper.pdf(prefer_css_page_size=True)
        [(width, height)] = pdf.page_sizes(made)
        assert width == pytest.approx(3.5, abs=0.01)
        assert 3 < height < 5
        for words in ("door·5", "[SEP]·10", "key (token·position)", f"“{DOOR}”", "all-MiniLM-L6-v2"):
            assert words in pdf.words(made)
        assert b"SourceSans3" in made and b"SourceCodeVF" in made

    @pytest.mark.nightly
    def test_as_svg_of_a_column_have_its_width_its_fonts_and_no_frame_of_the_selection(self, page, server):
        open_screen(page, server, text=DOOR, query=7)
        wait_until_still(page)
        before = screen(page)
        ranges = "Object.values(document.charts.get('map')._fullLayout).filter(axis => axis?.range).map(axis => axis.range)"
        seen = page.evaluate(ranges)
        open_popover(page)
        choose(page, "Two columns")
        page.get_by_label("Caption below").uncheck()
        for name in ("Attention matrix", "Map of queries and keys"):
            root = ElementTree.fromstring(content(picture(page, name, "SVG")))
            assert root.get("width") == "7.2in"
            [style] = [
                element.text
                for element in root.iter(f"{SVG}style")
                if element.text and "@font-face" in element.text
            ]
            assert set(re.findall(r'font-family:"([^"]+)"', style)) == {"Source Sans", "Source Code Pro"}
            assert not [group for group in root.iter(f"{SVG}g") if group.get("class") == "caption"]
        picked = THEMES["light"].picked
        for framed in (False, True):
            page.get_by_label("Frame of the selection").set_checked(framed)
            svg = ElementTree.fromstring(content(picture(page, "Attention matrix", "SVG")))
            frames = [frame.get("class") for frame in svg.iter(f"{SVG}rect") if frame.get("stroke") == picked]
            assert frames == (["row", "column", "picked"] if framed else [])
        assert screen(page) == before
        assert page.evaluate(ranges) == seen  # a map that was drawn in another size is as it was

    @pytest.mark.nightly
    def test_as_png_of_a_column_have_600_dots_per_inch_and_letters(self, page, server):
        open_screen(page, server, text=DOOR, query=7)
        open_popover(page)
        choose(page, "One column")
        with Image.open(io.BytesIO(content(picture(page, "Attention matrix", "PNG")))) as image:
            assert image.width == 2100
            assert image.info["dpi"] == pytest.approx((600, 600), abs=0.1)
            # Left of the cells there is nothing but the words of the queries: a fifth of the width.
            words = np.asarray(image.convert("L"))[image.height // 3 : image.height // 2, 120:420]
        assert words.min() < 90

    @pytest.mark.nightly
    def test_of_a_component_come_out_of_its_shadow(self, page, server):
        page.goto(f"{server}/all_heads?text={DOOR}")
        expect(page.get_by_role("grid").first).to_be_visible(timeout=LOAD_MS)
        wait_until_drawn(page)
        open_popover(page)
        button = page.locator('.save_picture button[title*="as lines"]').first
        with page.expect_download(timeout=LOAD_MS) as waiting:
            button.click()
        words = svg_words(content(waiting.value))
        assert {"head", "layer", "11"} <= set(words)

    @pytest.mark.nightly
    def test_hostile_tokens_stay_words(self, page, server):
        open_screen(page, server, model="hostile", text="a b c d e f", layer=0, head=0)
        open_popover(page)
        made = content(picture(page, "Attention matrix", "SVG"))
        assert b"<script" not in made
        assert any(words.startswith("“a b c d e f”") for words in svg_words(made))
        assert not list(ElementTree.fromstring(made).iter(f"{SVG}foreignObject"))


class TestCopies:
    @pytest.mark.nightly
    def test_link_leads_back_and_python_is_the_views(self, visitors, server):
        page = visitors(alone=True)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
        open_screen(page, server, text=DOOR, layer=2, head=5, query=3)
        open_popover(page)
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_text("Link copied.")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.url
        page.get_by_role("button", name="Copy as Python").click()
        expect(page.get_by_text("Python copied.")).to_be_visible()
        lines = page.evaluate("navigator.clipboard.readText()")
        assert "pattern = trace.pattern(2, 5)" in lines
        before = screen(page)
        page.goto(copied)
        wait_until_drawn(page)
        expect_soon(page, screen, before)

    @pytest.mark.nightly
    def test_by_keyboard(self, visitors, server):
        page = visitors(alone=True)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
        open_screen(page, server, text=DOOR)
        page.get_by_role("button", name="Export").focus()
        page.keyboard.press("Enter")
        first = page.locator(".save_picture button").first
        expect(first).to_be_visible()
        for _ in range(20):
            if (
                page.evaluate("""() => {
                let at = document.activeElement;
                while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
                return at?.textContent;
            }""")
                == "Copy as Python"
            ):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Python copied.")).to_be_visible()


def without_bundle(page: Page) -> dict[str, Any]:
    """What is on screen, with a link that does not name the bundle."""
    shown = screen(page)
    shown["link"].pop("bundle", None)
    return shown


SAID_OF_CELLS = """side => {
    const sheet = document.querySelector(".viewer .matrix .sheet"), live = document.querySelector(".viewer .matrix .live");
    const said = key => {
        sheet.dispatchEvent(new KeyboardEvent("keydown", {key}));
        return live.textContent;
    };
    for (let row = 0; row < side; row++) said("ArrowUp");
    const rows = [];
    for (let row = 0; row < side; row++) {
        rows.push([said("Home"), ...Array.from({length: side - 1}, () => said("ArrowRight"))]);
        said("ArrowDown");
    }
    return rows;
}"""
"""What is read out of every cell, from key to key."""


class TestBundle:
    @pytest.fixture
    def bundle(self, page, server, tmp_path):
        """The bundle of a view, saved from the browser, and what was on screen."""
        open_screen(page, server, text=DOOR, layer=4, head=7, query=8, key=5, show="norms", seed=3)
        before = screen(page)
        open_popover(page)
        download = saved(page, "Download bundle (.zip)")
        assert download.suggested_filename == "attnviz-layer4-head7.zip"
        path = tmp_path / "bundle.zip"
        download.save_as(path)
        return path, before

    def test_opened_again_shows_the_same_numbers(self, bundle, visitors, server):
        path, before = bundle
        other = visitors()
        open_screen(other, server, text="Something else.")
        open_bundle(other, path)
        wait_for_link(other, layer=4, head=7)
        expect(other.get_by_text("From a bundle, as recorded")).to_be_visible()
        recorded = other.get_by_text("Recorded when the bundle was made").filter(visible=True).first
        expect(recorded).to_be_visible()
        wait_until_drawn(other)
        wait_until_still(other)
        assert recorded.evaluate("label => label.scrollWidth <= label.clientWidth")
        expect_soon(other, without_bundle, before)

    @pytest.mark.nightly
    def test_its_field_is_whole_on_a_tablet_and_one_row_says_what_is_shown(self, bundle, visitors, server):
        path, _ = bundle
        other = visitors(width=768, height=1024)
        open_screen(other, server, text="Something else.")
        other.get_by_role("button", name="More input").click()
        field = other.get_by_test_id("stPopoverBody").filter(visible=True)
        expect(field).to_be_in_viewport(ratio=1)
        field.locator("input[type=file][accept*=zip]").set_input_files(path)
        expect(other.get_by_text("From a bundle, as recorded")).to_be_visible()
        close = other.get_by_role("button", name="Close the bundle")
        expect(close).to_be_in_viewport(ratio=1)
        wait_until_still(other)
        row = other.locator(".st-key-bundle_banner").bounding_box()
        assert row["height"] <= 1.5 * close.bounding_box()["height"]

    @pytest.mark.nightly
    def test_is_compared_on_a_click(self, bundle, visitors, server):
        path, before = bundle
        other = visitors()
        open_screen(other, server, text="Something else.")
        open_bundle(other, path)
        button = other.get_by_role("button", name="Run and compare")
        expect(button).to_have_count(1)  # it is open, so that its field may be closed
        other.keyboard.press("Escape")
        button.click()
        expect(other.get_by_text("13 comparisons, weights within").filter(visible=True).first).to_be_visible(
            timeout=LOAD_MS
        )
        expect(button).to_have_count(0)
        wait_until_drawn(other)
        expect_soon(other, cells, before["cells"])

    @pytest.mark.nightly
    def test_masking_closes_it(self, bundle, page):
        path, _ = bundle
        page.keyboard.press("Escape")
        open_bundle(page, path)
        expect(page.get_by_text("From a bundle, as recorded")).to_be_visible()
        page.keyboard.press("Escape")
        page.get_by_role("button", name=re.compile("mask", re.I)).first.click()
        expect(page.get_by_text("The bundle is closed")).to_be_visible()
        expect(chip(page, 8)).to_contain_text("[MASK]")
        page.wait_for_url(lambda url: "bundle=" not in url)

    @pytest.mark.nightly
    def test_a_damaged_one_is_explained_and_the_view_stays(self, bundle, page, tmp_path):
        path, before = bundle
        damaged = tmp_path / "damaged.zip"
        damaged.write_bytes(path.read_bytes()[:-100_000])
        page.keyboard.press("Escape")
        open_bundle(page, damaged)
        expect(page.get_by_text("This file is not a bundle of attnviz, or it is damaged")).to_be_visible()
        wait_until_drawn(page)
        expect_soon(page, cells, before["cells"])

    @pytest.mark.nightly
    def test_its_page_needs_no_network(self, bundle, visitors, tmp_path):
        path, before = bundle
        with zipfile.ZipFile(path) as archive:
            archive.extract("view.html", tmp_path)
        offline = visitors(alone=True)
        requests: list[str] = []
        offline.on("request", lambda request: requests.append(request.url))
        offline.context.set_offline(True)
        offline.goto((tmp_path / "view.html").as_uri())
        expect(finding(offline)).to_contain_text(
            "Layer 4, head 7: the norm-based weight from “opened” to “door”"
        )
        assert bars(offline) == before["bars"]
        recorded = [
            [number_text(float(cell)) for cell in row]
            for row in read_bundle(path.read_bytes()).pattern.weights
        ]
        assert [[number_text(cell) for cell in row] for row in before["cells"]] == recorded
        said = offline.evaluate(SAID_OF_CELLS, len(recorded))
        assert [[words.split(": ")[-1] for words in row] for row in said] == recorded
        for words in (
            "13 of 13 checks passed. This page cannot check that again.",
            "all-MiniLM-L6-v2, revision 0.1.0",
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ):
            expect(offline.get_by_text(words)).to_be_visible()
        assert {url.split(":")[0] for url in requests} <= {"file", "data", "blob"}

    @pytest.mark.nightly
    def test_its_page_can_ask_for_nothing(self, bundle, visitors, tmp_path, server):
        """Even a script in it, with the network there, is refused every address."""
        path, _ = bundle
        with zipfile.ZipFile(path) as archive:
            page_text = archive.read("view.html").decode()
        (tmp_path / "asks.html").write_text(
            page_text.replace(
                "</body>",
                f"<script>fetch('{server}/_stcore/health').catch(() => document.title = 'refused')</script></body>",
            )
        )
        curious = visitors(alone=True)
        curious.goto((tmp_path / "asks.html").as_uri())
        curious.wait_for_function("document.title === 'refused'")
        visitors.wrong.clear()  # Chromium reports what it refused as errors

    @pytest.mark.nightly
    def test_uploader_says_its_limit(self, page, server):
        open_screen(page, server, text=DOOR)
        page.get_by_role("button", name="More input").click()
        expect(page.get_by_text(f"{LARGEST_BUNDLE // 10**6}MB per file")).to_be_visible()


@pytest.mark.nightly
class TestLooks:
    @pytest.mark.parametrize("width", [400, LAPTOP["width"]])
    def test_the_button_is_at_the_top_right_and_covers_nothing(self, width, visitors, server):
        page = visitors(width=width)
        open_screen(page, server, text=DOOR)
        wait_until_still(page)
        box = page.get_by_role("button", name="Export").bounding_box()
        assert box["x"] + box["width"] > width - 60
        assert box["height"] >= 32
        assert box["y"] < 110
        first = chip(page, 0).bounding_box()
        assert first["y"] >= box["y"] + box["height"]
        expect(finding(page)).to_be_visible()
        open_popover(page)
        wait_until_still(page)
        popover = page.get_by_test_id("stPopoverBody").filter(visible=True).bounding_box()
        assert popover["x"] >= 0
        assert popover["x"] + popover["width"] <= width
        expect(readout(page)).to_be_attached()
