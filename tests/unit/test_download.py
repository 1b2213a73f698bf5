import hashlib
import json
import os
import resource
import subprocess
import sys
import threading

import huggingface_hub.constants
import pytest
import torch
from huggingface_hub.utils import close_session
from safetensors.torch import load_file, save_file

import attnviz
from attnviz.errors import DownloadError, ModelNotAvailableError
from attnviz.model.catalogue import locate, offers, resolve
from attnviz.model.download import download_model, download_size
from tests.hub import COMMIT, LoopbackHub, save_tiny_bert, with_pickle_weights

pytestmark = pytest.mark.slow

NAME = "tiny/bert"
TEXT = "I was watching the door when it opened."


@pytest.fixture
def tiny_bert(tmp_path):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    return save_tiny_bert(folder)


@pytest.fixture
def hub(tiny_bert, tmp_path, monkeypatch):
    with LoopbackHub({NAME: tiny_bert}) as started:
        point_to(started.url, tmp_path, monkeypatch)
        yield started
        close_session()


def point_to(url, tmp_path, monkeypatch):
    """huggingface_hub on this address, with a cache and a token of this test's own."""
    monkeypatch.setenv("HF_ENDPOINT", url)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for name, value in {
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_CACHE": str(tmp_path / "home" / "hub"),
        "HF_TOKEN_PATH": str(tmp_path / "home" / "token"),
        "HF_HUB_DISABLE_TELEMETRY": True,  # asks the address that was set when the library was imported
    }.items():
        monkeypatch.setattr(huggingface_hub.constants, name, value)


def weights(hub):
    return (hub.repositories[NAME] / "model.safetensors").read_bytes()


def before_weights(hub):
    """Bytes that are fetched before the weights; files are listed, and fetched, by name."""
    files = hub.repositories[NAME].iterdir()
    return sum(file.stat().st_size for file in files if file.name < "model.safetensors")


def test_a_downloaded_model_loads_traces_and_verifies(hub):
    seen = []
    folder = download_model(NAME, on_progress=lambda done, total: seen.append((done, total)))
    model = attnviz.load_model(NAME)
    trace = model.trace(TEXT)
    assert folder == locate(resolve(NAME)).folder
    assert (trace.n_layers(), trace.n_heads(0)) == (3, 2)
    assert attnviz.verify(model, trace).passed
    assert model.provenance.revision == COMMIT
    done = [n_done for n_done, _ in seen]
    assert done == sorted(done)
    assert done[0] == 0
    size = sum(file.stat().st_size for file in hub.repositories[NAME].iterdir())
    assert seen[-1] == (size, size)
    assert {total for _, total in seen} == {size}


def test_the_token_goes_to_the_hub_and_not_to_its_storage(hub):
    download_model(NAME)
    assert hub.storage_authorization
    assert set(hub.storage_authorization) == {None}


def test_each_file_is_fetched_once_and_a_second_call_asks_nothing(hub):
    download_model(NAME)
    assert sorted(request.file for request in hub.served) == sorted(
        p.name for p in hub.repositories[NAME].iterdir()
    )
    before = hub.requests.total()
    download_model(NAME, on_progress=lambda *_: pytest.fail("nothing to report"))
    assert hub.requests.total() == before


def test_reports_come_at_most_ten_times_a_second(hub, monkeypatch):
    monkeypatch.setattr("attnviz.model.download.REPORT_INTERVAL", 1e6)
    seen = []
    download_model(NAME, on_progress=lambda done, total: seen.append(done))
    assert len(seen) == 2  # the start and the end


def test_progress_within_a_file_is_reported(hub, monkeypatch):
    monkeypatch.setattr("attnviz.model.download.REPORT_INTERVAL", 0.0)
    half = len(weights(hub)) // 2
    hub.break_after["model.safetensors"] = [half]
    first = before_weights(hub)
    seen = []
    download_model(NAME, on_progress=lambda done, total: seen.append(done))
    assert any(first < done < first + len(weights(hub)) for done in seen)


def test_connection_refused(hub, tmp_path, monkeypatch):
    with LoopbackHub({}) as gone:
        url = gone.url
    monkeypatch.setenv("HF_ENDPOINT", url)
    for call in (lambda: download_model(NAME), lambda: download_size(resolve(NAME))):
        with pytest.raises(DownloadError) as caught:
            call()
        message = str(caught.value)
        assert message.startswith(f"tiny/bert was not downloaded: {url} cannot be reached (")
        assert message.endswith("Check the connection, then try again.")
    assert locate(resolve(NAME)) is None


def test_a_lost_connection_is_taken_up_by_the_next_call(hub):
    content = weights(hub)
    half = len(content) // 2
    hub.break_after["model.safetensors"] = [half, 0]  # and gone again before the first byte
    with pytest.raises(DownloadError, match=r"connection .* was lost. \d.* have arrived and are kept"):
        download_model(NAME)
    assert locate(resolve(NAME)) is None
    with pytest.raises(ModelNotAvailableError, match="not on this disk"):
        attnviz.load_model(NAME)
    others = [request.file for request in hub.served if request.file != "model.safetensors"]
    seen = []
    hub.served.clear()
    folder = download_model(NAME, on_progress=lambda done, total: seen.append(done))
    (rest,) = [request for request in hub.served if request.file == "model.safetensors"]
    start = int(rest.range.removeprefix("bytes=").removesuffix("-"))
    assert 0 < start <= half
    assert rest.n_byte == len(content) - start
    assert not {request.file for request in hub.served} & set(others)
    assert seen[0] == start + sum((hub.repositories[NAME] / other).stat().st_size for other in others)
    assert (folder / "model.safetensors").read_bytes() == content


def test_a_connection_that_breaks_now_and_then_is_taken_up_in_the_same_call(hub):
    content = weights(hub)
    hub.break_after["model.safetensors"] = [len(content) // 3] * 2
    folder = download_model(NAME)
    assert [request.range is None for request in hub.served if request.file == "model.safetensors"] == [
        True,
        False,
        False,
    ]
    assert (folder / "model.safetensors").read_bytes() == content


def test_a_server_that_knows_no_ranges_sends_the_whole_file_again(hub, monkeypatch):
    monkeypatch.setattr("attnviz.model.download.REPORT_INTERVAL", 0.0)
    content = weights(hub)
    hub.break_after["model.safetensors"] = [len(content) // 2, 0]
    with pytest.raises(DownloadError):
        download_model(NAME)
    hub.ignore_range = True
    seen = []
    folder = download_model(NAME, on_progress=lambda done, total: seen.append(done))
    assert (folder / "model.safetensors").read_bytes() == content
    assert min(seen) < seen[0]  # what was kept is given up, and no longer counted


def test_what_the_caller_raises_ends_the_download_and_keeps_the_bytes(hub, monkeypatch):
    class PersonLeft(BaseException):
        pass

    def leave(done, total):
        if hub.bytes_served("model.safetensors"):
            raise PersonLeft

    monkeypatch.setattr("attnviz.model.download.REPORT_INTERVAL", 0.0)
    with pytest.raises(PersonLeft):
        download_model(NAME, on_progress=leave)
    assert locate(resolve(NAME)) is None
    hub.served.clear()
    download_model(NAME)
    assert "config.json" not in {request.file for request in hub.served}
    assert all(request.range is not None for request in hub.served if request.file == "model.safetensors")


def test_content_other_than_announced_is_deleted(hub):
    hub.corrupt.add("model.safetensors")
    with pytest.raises(DownloadError, match=r"model\.safetensors arrived with other content"):
        download_model(NAME)
    assert locate(resolve(NAME)) is None
    hub.corrupt.clear()
    assert (download_model(NAME) / "model.safetensors").read_bytes() == weights(hub)


def test_a_missing_tensor_is_named(hub):
    path = hub.repositories[NAME] / "model.safetensors"
    tensors = load_file(path)
    del tensors["encoder.layer.1.attention.self.query.weight"]
    save_file(tensors, path, metadata={"format": "pt"})
    download_model(NAME)
    with pytest.raises(
        ModelNotAvailableError, match=r"lacks 1 of .* encoder\.layer\.1\.attention\.self\.query\.weight"
    ):
        attnviz.load_model(NAME)


class _Touch:
    """A pickle of this creates a file when it is loaded by whoever runs its code."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_pickle_with_code_is_refused_and_its_code_not_run(hub, tmp_path):
    marker = tmp_path / "the code ran"
    with_pickle_weights(hub.repositories[NAME], extra=_Touch(marker))
    download_model(NAME)
    with pytest.raises(
        ModelNotAvailableError, match=r"pickle with code in it \(.*open\), which attnviz does not run"
    ):
        attnviz.load_model(NAME)
    assert not marker.exists()
    torch.load(hub.repositories[NAME] / "pytorch_model.bin", weights_only=False)["extra"].close()
    assert marker.exists()  # the trap works


def test_a_pickle_without_code_loads(hub):
    with_pickle_weights(hub.repositories[NAME])
    folder = download_model(NAME)
    assert (folder / "pytorch_model.bin").exists()
    model = attnviz.load_model(NAME)
    assert attnviz.verify(model, model.trace(TEXT)).passed


def test_a_pickle_is_left_where_it_is_when_there_are_safetensors(hub):
    (hub.repositories[NAME] / "pytorch_model.bin").write_bytes(b"\x80")
    (hub.repositories[NAME] / "training.py").write_text("raise SystemExit")
    folder = download_model(NAME)
    assert not (folder / "pytorch_model.bin").exists()
    assert not (folder / "training.py").exists()


def test_no_such_repository(hub):
    for call in (download_model, lambda name: download_size(resolve(name))):
        with pytest.raises(ModelNotAvailableError, match="has no model called tiny/nobody, or shows it only"):
            call("tiny/nobody")


@pytest.mark.parametrize(
    ("refusal", "kind", "words"),
    [
        ((401, ""), ModelNotAvailableError, "log in with `hf auth login`"),
        ((403, "GatedRepo"), ModelNotAvailableError, "open only to users whom its owner admits"),
        ((404, "RevisionNotFound"), ModelNotAvailableError, "but not its commit"),
        ((503, ""), DownloadError, "answered with status 503. Try again later."),
    ],
)
def test_refusals(hub, refusal, kind, words):
    hub.refuse[NAME] = refusal
    with pytest.raises(kind) as caught:
        download_model(NAME)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_repository_without_weights(hub):
    path = hub.repositories[NAME] / "model.safetensors"
    path.rename(path.with_name("flax_model.msgpack"))
    with pytest.raises(ModelNotAvailableError, match=r"tiny/bert holds Flax weights \(flax_model.msgpack\)"):
        download_model(NAME)
    path.with_name("flax_model.msgpack").unlink()
    with pytest.raises(ModelNotAvailableError, match="no weights that attnviz reads"):
        download_model(NAME)
    assert not hub.served


def test_a_repository_of_an_adapter(hub):
    (hub.repositories[NAME] / "adapter_config.json").write_text("{}")
    with pytest.raises(
        ModelNotAvailableError, match=r"tiny/bert holds a PEFT adapter \(adapter_config.json\)"
    ):
        download_model(NAME)
    assert not hub.served


def test_a_damaged_model_of_the_hub_is_to_be_downloaded_again(hub):
    weights = download_model(NAME) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(
        ModelNotAvailableError, match="Delete it with `hf cache rm model/tiny/bert` and download it again"
    ):
        attnviz.load_model(NAME)


def test_a_repository_without_config(hub):
    (hub.repositories[NAME] / "config.json").unlink()
    with pytest.raises(ModelNotAvailableError, match=r"has no config\.json"):
        download_model(NAME)


def test_an_incomplete_snapshot_is_not_on_disk(hub):
    folder = download_model(NAME)
    (folder / "model.safetensors").unlink()
    assert locate(resolve(NAME)) is None
    with pytest.raises(ModelNotAvailableError, match="attnviz download tiny/bert"):
        attnviz.load_model(NAME)
    download_model(NAME)
    assert locate(resolve(NAME)) is not None


def test_a_snapshot_without_its_settings_for_generation_is_on_disk(hub, tiny_bert):
    """What was downloaded before attnviz read that file, or by others, stays."""
    (tiny_bert / "generation_config.json").write_text("{}")
    folder = download_model(NAME)
    (folder / "generation_config.json").unlink()
    assert locate(resolve(NAME)) is not None


def test_a_disk_without_room_is_said_before_anything_is_fetched(hub):
    hub.listed_size["model.safetensors"] = 10**18
    with pytest.raises(DownloadError, match=r"needs another 1,000,000,000,000\.\d MB, and the disk .* left"):
        download_model(NAME)
    assert not hub.served


def test_a_disk_that_takes_no_more(hub):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(weights(hub)) // 2, hard))
    try:
        with pytest.raises(DownloadError, match=r"cannot be written to the Hub's cache \(File too large\)"):
            download_model(NAME)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    download_model(NAME)


def test_a_disk_that_becomes_full_is_named_and_the_next_call_goes_on(hub, tmp_path):
    """The partial file is /dev/full, which takes no bytes, as a full disk does."""
    blobs = tmp_path / "home" / "hub" / "models--tiny--bert" / "blobs"
    blobs.mkdir(parents=True)
    partial = blobs / f"{hashlib.sha256(weights(hub)).hexdigest()}.attnviz-partial"
    partial.symlink_to("/dev/full")
    with pytest.raises(DownloadError) as caught:
        download_model(NAME)
    message = str(caught.value)
    assert message.startswith("tiny/bert was not downloaded: the disk is full.")
    assert message.endswith(
        "Free some space, or set HF_HOME to a folder on another disk, then download it again."
    )
    partial.unlink()
    assert locate(resolve(NAME)) is None
    download_model(NAME)
    assert locate(resolve(NAME)) is not None


KILLED = """if True:
    import sys, time
    import huggingface_hub.constants
    from attnviz.model import download

    download.REPORT_INTERVAL = 0.0

    def tell(done, total):
        if done > int(sys.argv[1]):
            print("within the weights", flush=True)
            time.sleep(600)

    download.download_model("tiny/bert", on_progress=tell)
"""


def test_a_download_whose_process_is_killed_is_taken_up_by_the_next(hub, tmp_path):
    half = len(weights(hub)) // 2
    hub.break_after["model.safetensors"] = [half]
    home = str(tmp_path / "home")
    environment = os.environ | {
        "HF_HOME": home,
        "HF_HUB_CACHE": f"{home}/hub",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(before_weights(hub))],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout.readline() == "within the weights\n"
        running.kill()
    hub.served.clear()
    download_model(NAME)
    [again] = [request for request in hub.served if request.file == "model.safetensors"]
    start = int(again.range.removeprefix("bytes=").removesuffix("-"))
    assert 0 < start <= half
    assert again.n_byte == len(weights(hub)) - start
    assert (locate(resolve(NAME)).folder / "model.safetensors").read_bytes() == weights(hub)
    model = attnviz.load_model(NAME)
    assert attnviz.verify(model, model.trace(TEXT)).passed


def test_another_download_of_the_same_model_is_said(hub, monkeypatch):
    monkeypatch.setattr("attnviz.model.download.LOCK_TIMEOUT", 0.1)
    waiting, done = threading.Event(), threading.Event()

    def hold(n_byte, n_total):
        waiting.set()
        done.wait(30)

    monkeypatch.setattr("attnviz.model.download.REPORT_INTERVAL", 0.0)
    hub.break_after["config.json"] = [10]  # so that the first report comes with a file half fetched

    def first():
        download_model(NAME, on_progress=lambda n_byte, n_total: hold(n_byte, n_total) if n_byte else None)

    other = threading.Thread(target=first)
    other.start()
    assert waiting.wait(30)
    try:
        with pytest.raises(DownloadError, match="another download of it is running"):
            download_model(NAME)
    finally:
        done.set()
        other.join()
    assert locate(resolve(NAME)) is not None


def test_offline_mode(hub, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DownloadError, match="HF_HUB_OFFLINE is set"):
        download_model(NAME)


def test_a_log_in_page_in_place_of_the_hub(hub):
    hub.log_in_page = True
    with pytest.raises(DownloadError, match="a network's log-in page"):
        download_model(NAME)


@pytest.mark.parametrize("address", ["no address", "http://127.0.0.1:port", "ftp://127.0.0.1"])
def test_an_endpoint_that_is_no_address(hub, monkeypatch, address):
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(DownloadError, match="is not a web address"):
        download_model(NAME)


def test_sizes(hub):
    pinned, embedded = offers()[2], offers()[0]
    assert download_size(pinned) == pinned.download_bytes
    assert download_size(embedded) == 0
    assert not hub.requests
    assert download_size(resolve(NAME)) == sum(p.stat().st_size for p in hub.repositories[NAME].iterdir())
    assert not hub.served


def test_a_model_that_is_not_on_the_hub_is_where_it_is(hub, tiny_bert):
    assert download_model(str(tiny_bert)) == tiny_bert
    assert not hub.requests


def test_neither_torch_nor_transformers_is_imported():
    code = "import sys, attnviz.model.download; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert json.loads(done.stdout) == []
