"""Every address shows attnviz or is none: what is below a page's leads to the page that its last part names."""

import re
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import running_server

PAGES = {
    "foo": "foo",
    "foo.txt": "foo.txt",
    "all_heads.html": "all_heads.html",
    "foo/bar": "bar",
    "attnviz/all_heads": "all_heads",
    "app/all_heads": "all_heads",
    "static/all_heads": "all_heads",
    "a/b.c/d/all_heads": "all_heads",
    "foo//bar": "bar",
    "foo/bar/": "bar",
    "a%2Fall_heads": "all_heads",
    "a/b%20c": "b%20c",
    "a/%C3%BC": "%C3%BC",
    "foo/bar.txt": "bar.txt",
    "a/javascript:alert(1)": "javascript%3Aalert%281%29",
    "a/%0d%0aSet-Cookie:x": "%0D%0ASet-Cookie%3Ax",
    "foo/bar?text=a+%26%20b&layer=2": "bar?text=a+%26%20b&layer=2",
}
"""Where an address leads to, both below the server's own."""
NONE = ("foo/_stcore/health", "component/none/x.js", "media/none.png")


def resolved(url, to):
    """An address relative to another one, as browsers resolve it; urllib drops empty parts first."""
    parts = urlsplit(url)
    path = [] if to.startswith("/") else parts.path.split("/")[1:-1]
    for part in to.removeprefix("/").split("/"):
        if part == "..":
            path = path[:-1]
        elif part != ".":
            path = [*path, part]
    return f"http://{parts.netloc}/{'/'.join(path)}"


def get(url):
    """Address, status and content of what a browser ends at."""
    for _ in range(5):
        parts = urlsplit(url)
        connection = HTTPConnection(parts.netloc, timeout=20)
        connection.request("GET", url.removeprefix(f"http://{parts.netloc}"))
        answer = connection.getresponse()
        content = answer.read().decode("utf-8", "replace")
        connection.close()
        if (to := answer.headers["Location"]) is None:
            return url, answer.status, content
        url = resolved(url, to)
    raise AssertionError(f"{url} leads on and on")


def assert_leads(server, old, new):
    url, status, content = get(f"{server}/{old}")
    assert (url, status) == (f"{server}/{new}", 200)
    [title] = re.findall("<title>(.*)</title>", content)
    assert title.endswith(" · attnviz")
    assert title.startswith("Pictures and numbers") == (new == "all_heads")


@pytest.mark.parametrize(("old", "new"), PAGES.items(), ids=PAGES)
def test_an_address_leads_to_a_page_of_attnviz(old, new, server):
    assert_leads(server, old, new)


@pytest.mark.parametrize("address", NONE)
def test_what_is_no_page_is_none(address, server):
    assert get(f"{server}/{address}")[1] == 404


def test_what_streamlit_serves_is_left_to_it(server):
    _, status, content = get(f"{server}/")
    assert status == 200
    scripts = re.findall(r'src="\./(static/js/[^"]+)"', content)
    for address in (*scripts, "favicon.png", "manifest.json", "_stcore/health", "_stcore/host-config"):
        url, status, asset = get(f"{server}/{address}")
        assert (url, status) == (f"{server}/{address}", 200)
        assert "<title>" not in asset
    assert scripts


@pytest.mark.nightly
def test_pages_below_a_path_stay_there(tmp_path):
    with running_server(tmp_path / "log.txt", STREAMLIT_SERVER_BASE_URL_PATH="class/attention") as below:
        for old, new in {**PAGES, "/bar": "bar"}.items():
            assert_leads(below, old, new)
        assert get(f"{below.removesuffix('/class/attention')}/foo/bar")[1] == 404
