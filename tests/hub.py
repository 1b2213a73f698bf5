"""A Hub on loopback, and a tiny checkpoint for it to serve.

It speaks what huggingface_hub 2.4.0 asks of https://huggingface.co: the listing of a repository with
sizes and hashes, its tree, and the files, where large ones (weights) are redirected to another host as
the Hub does. Faults are switched on by a test: break off after some bytes, refuse, close for good.
"""

import hashlib
import json
import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WORDS = ("i", "was", "watching", "the", "door", "when", "it", "opened", ".", "open", "##ed", "a")


def save_tiny_bert(folder: Path) -> Path:
    """A random BERT of 3 layers, 2 heads and d_model 24 with its tokenizer, in safetensors."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=40,
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=40,
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    return folder


def with_pickle_weights(folder: Path, extra: object = None) -> Path:
    """The checkpoint in this folder with its safetensors turned into a pickle, and one object more in it."""
    from safetensors.torch import load_file

    weights: dict[str, object] = dict(load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").unlink()
    if extra is not None:
        weights["extra"] = extra
    torch.save(weights, folder / "pytorch_model.bin")
    return folder


@dataclass(frozen=True)
class Served:
    """One answer with a file's bytes: the range asked for, and how many bytes went out."""

    file: str
    range: str | None
    n_byte: int


@dataclass
class LoopbackHub:
    """The Hub, as a context manager: ``with LoopbackHub({"org/name": folder}) as hub``."""

    repositories: dict[str, Path]
    refuse: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Repository to (status, X-Error-Code) that is answered instead of its listing and files."""
    break_after: dict[str, list[int]] = field(default_factory=dict)
    """File to bytes after which its connection is reset, for one request after another."""
    listed_size: dict[str, int] = field(default_factory=dict)
    """File to a size that the listing gives in place of the true one."""
    corrupt: set[str] = field(default_factory=set)
    """Files that are served with their first byte changed."""
    ignore_range: bool = False
    log_in_page: bool = False
    """Answer everything with a page of HTML, as a hotel's network does."""
    served: list[Served] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    storage_authorization: list[str | None] = field(default_factory=list)
    """Authorization header of each request to the storage host, which must never see a token."""

    def __enter__(self) -> "LoopbackHub":
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def storage_url(self) -> str:
        return f"http://localhost:{self._server.server_port}/storage"

    def bytes_served(self, file: str) -> int:
        return sum(answer.n_byte for answer in self.served if answer.file == file)


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests[f"{self.command} {path}"] += 1
        if self.hub.log_in_page:
            return self._send(200, b"<html>Welcome to our hotel</html>", {"Content-Type": "text/html"})
        if path.startswith("/storage/"):
            _, _, repository, file = path.split("/", 3)
            self.hub.storage_authorization.append(self.headers.get("Authorization"))
            return self._send_file(self.hub.repositories[repository.replace("--", "/")] / file)
        repository = next((name for name in self.hub.repositories if f"/{name}" in path), None)
        if repository in self.hub.refuse:
            status, code = self.hub.refuse[repository]
            return self._send(status, b"{}", {"X-Error-Code": code} if code else {})
        if repository is None:
            return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        folder = self.hub.repositories[repository]
        rest = path.split(f"/{repository}", 1)[1]
        if rest.startswith("/resolve/"):
            return self._resolve(repository, folder / rest.split("/", 3)[3])
        if rest.startswith("/tree/"):
            return self._send_json([self._entry(file) for file in sorted(folder.iterdir())])
        if (asked := rest.removeprefix("/revision/")) and asked not in ("main", COMMIT):
            return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        files = [self._entry(file) for file in sorted(folder.iterdir())]
        siblings = [
            {
                "rfilename": file["path"],
                "size": file["size"],
                "blobId": file["oid"],
                **({"lfs": {**file["lfs"], "sha256": file["lfs"]["oid"]}} if "lfs" in file else {}),
            }
            for file in files
        ]
        return self._send_json(
            {
                "id": repository,
                "modelId": repository,
                "sha": COMMIT,
                "private": False,
                "tags": [],
                "downloads": 0,
                "likes": 0,
                "siblings": siblings,
            }
        )

    def _entry(self, file: Path) -> dict:
        """A file as the tree lists it."""
        content = file.read_bytes()
        size = self.hub.listed_size.get(file.name, len(content))
        oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        entry = {"type": "file", "path": file.name, "size": size, "oid": oid}
        if _is_large(file):
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": size, "pointerSize": 134}
        return entry

    def _resolve(self, repository: str, file: Path) -> None:
        if not file.exists():
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        entry = self._entry(file)
        if not _is_large(file):
            return self._send_file(file, {"ETag": f'"{entry["oid"]}"', "X-Repo-Commit": COMMIT})
        headers = {
            "X-Repo-Commit": COMMIT,
            "X-Linked-Etag": f'"{entry["lfs"]["oid"]}"',
            "X-Linked-Size": str(entry["size"]),
            "Location": f"{self.hub.storage_url}/{repository.replace('/', '--')}/{file.name}",
        }
        return self._send(302, b"", headers)

    def _send_file(self, file: Path, headers: dict[str, str] | None = None) -> None:
        content = file.read_bytes()
        if file.name in self.hub.corrupt:
            content = bytes([content[0] ^ 1]) + content[1:]
        asked = self.headers.get("Range")
        headers = {"Accept-Ranges": "bytes", **(headers or {})}
        status = 200
        if asked is not None and not self.hub.ignore_range:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            content, status = content[start:], 206
        breaks = self.hub.break_after.get(file.name) if self.command == "GET" else None
        cut = breaks.pop(0) if breaks else None
        if self.command == "GET":
            self.hub.served.append(Served(file.name, asked, len(content) if cut is None else cut))
        self._send(status, content, headers, cut=cut)

    def _send_json(self, answer: object) -> None:
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _send(
        self, status: int, content: bytes, headers: dict[str, str] | None = None, *, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(content[:cut])
        if cut is not None:
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
            self.close_connection = True


def _is_large(file: Path) -> bool:
    return file.suffix in (".safetensors", ".bin", ".msgpack")
