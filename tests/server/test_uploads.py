"""Files that are sent to Streamlit directly, past its uploaders: as large as the operator allows, while there is room for them."""

import asyncio
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.browser.conftest import running_server
from tests.visitor import LONG, Visitor, run, visit

pytestmark = pytest.mark.nightly

BOUNDARY = "a-line-between-parts"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def put(server: str, session: str, name: str, n_byte: int, **headers: str) -> int:
    """The status with which a file of so many bytes is answered."""
    with OPENER.open(f"{server}/_stcore/health") as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    body = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.zip"\r\n\r\n'.encode()
        + bytes(n_byte)
        + f"\r\n--{BOUNDARY}--\r\n".encode()
    )
    request = urllib.request.Request(
        f"{server}/_stcore/upload_file/{session}/{name}",
        data=body,
        method="PUT",
        headers={
            "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
            "Cookie": cookie,
            "X-Xsrftoken": cookie.partition("=")[2],
            **headers,
        },
    )
    try:
        with OPENER.open(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


async def session_of(visitor: Visitor) -> str:
    await visitor.settle()
    return visitor.session


@pytest.fixture
def server(tmp_path: Path):
    log = tmp_path / "log.txt"
    with running_server(log, ATTNVIZ_UPLOAD_MB="3", ATTNVIZ_UPLOADS_MB="8") as address:
        yield address
    written = log.read_text()
    assert "Traceback" not in written, written


def test_visitors_bring_no_more_than_there_is_room_for(server):
    def sent(session: str, name: str, n_byte: int) -> int:
        return put(server, session, name, n_byte)

    async def all_of_it() -> None:
        async with visit(server) as visitor, visit(server) as other:
            first, second = await session_of(visitor), await session_of(other)
            too_large = {"Content-Length": str(3 * 2**20 + 1)}
            assert await asyncio.to_thread(lambda: put(server, first, "large", 0, **too_large)) == 413
            statuses = [
                await asyncio.to_thread(sent, first, f"file-{number}", 2_500_000) for number in range(3)
            ]
            assert statuses == [204, 204, 204]
            assert await asyncio.to_thread(sent, second, "one-more", 2_500_000) == 503
            assert await asyncio.to_thread(sent, second, "small", 3) == 503
            # the page itself goes on
            n_run = other.n_run
            await other.click("head_next")
            await other.until(lambda: other.n_run > n_run)
            assert visitor.exceptions == other.exceptions == []
        async with visit(server) as later:  # whoever left has taken the files along
            session, status = await session_of(later), 503
            end = time.monotonic() + LONG  # the server learns a moment later that they have left
            while status == 503 and time.monotonic() < end:
                status = await asyncio.to_thread(sent, session, "later", 2_500_000)
            assert status == 204
        assert await asyncio.to_thread(sent, "nobody", "file", 3) == 400

    run(all_of_it())
