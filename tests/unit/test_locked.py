"""What is installed is what the requirements files ask for, every package with its hashes. Where it fails: `make lock`."""

import re
from pathlib import Path

import pytest

from tests.findings import assert_none

ROOT = Path(__file__).parents[2]
FROM = {
    "app": ("requirements.txt", "requirements-corpus.txt"),
    "dev": ("requirements-dev.txt",),
    "nightly": ("requirements-nightly.txt",),
    "bench": ("requirements-bench.txt",),
    "audit": ("requirements-audit.txt",),
    "docs": ("requirements-docs.txt",),
}
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
SHA256 = re.compile(r"--hash=sha256:[0-9a-f]{64}( \\)?$")


def same(name: str) -> str:
    """A package's name in the one form that the lock uses."""
    return re.sub(r"[-_.]+", "-", name).lower()


def asked(file: str) -> dict[str, str]:
    """Package to version, with those of the files that it includes."""
    text = (ROOT / file).read_text()
    versions = {same(name): version for name, version in PIN.findall(text)}
    for included in re.findall(r"^-r (\S+)", text, re.MULTILINE):
        versions |= asked(included)
    return versions


def locked(text: str) -> dict[str, list[str]]:
    """Package and version to its hashes."""
    pins: dict[str, list[str]] = {}
    for line in text.splitlines():
        if pin := PIN.match(line):
            hashes = pins.setdefault(f"{pin[1]}=={pin[2]}", [])
        elif line.lstrip().startswith("--"):
            assert SHA256.search(line), line
            hashes.append(line.strip(" \\"))
        else:
            assert not line.strip() or line.lstrip().startswith("#"), line
    return pins


def read(file: str) -> dict[str, list[str]]:
    return locked((ROOT / "locked" / file).read_text())


def not_safe(text: str) -> list[str]:
    """Packages of a lock without a hash, and lines that say where to get them from."""
    return [f"{package} has no hash" for package, hashes in locked(text).items() if not hashes] + [
        f"{line!r} names an index"
        for line in text.splitlines()
        if "://" in line or "index" in line.replace("PyTorch's index", "")
    ]


def test_the_lock_has_what_is_asked_for():
    wanted = {
        file: {
            f"{name}=={version}"
            for requirements in sources
            for name, version in asked(requirements).items()
            if name != "torch"
        }
        for file, sources in FROM.items()
    }
    assert all(wanted.values())
    assert_none(
        f"locked/{file}.txt has no {package}"
        for file, packages in wanted.items()
        for package in sorted(packages - set(read(f"{file}.txt")))
    )


def test_every_package_has_hashes_and_no_index_is_named():
    texts = {path.name: path.read_text() for path in sorted((ROOT / "locked").glob("*.txt"))}
    assert texts and all(locked(text) for text in texts.values())
    assert_none(f"locked/{name}: {finding}" for name, text in texts.items() for finding in not_safe(text))


def test_torch_is_the_same_version_in_both_builds_and_no_other_lock_has_it():
    version = asked("requirements.txt")["torch"]
    cpu = read("torch-cpu.txt")
    assert set(cpu) == {f"torch=={version}", f"torch=={version}+cpu"}
    assert len(cpu[f"torch=={version}+cpu"]) >= 8  # Python 3.11 to 3.14, on x86-64 and ARM
    assert f"torch=={version}" in read("torch-cuda.txt")
    for file in FROM:
        assert [text for text in read(f"{file}.txt") if re.match("torch|nvidia|triton|cuda", text)] == []


def test_locks_agree():
    """Installed one after the other, they change no version."""
    seen: dict[str, set[str]] = {}
    for file in FROM:
        for text in read(f"{file}.txt"):
            name, _, version = text.partition("==")
            seen.setdefault(f"{file} {name}", set()).add(version)
    of = {file: {key.split()[1]: seen[key] for key in seen if key.startswith(file)} for file in FROM}
    for first, second in (
        ("app", "dev"),
        ("dev", "bench"),
        ("bench", "audit"),
        ("app", "docs"),
        ("dev", "docs"),
    ):
        both = set(of[first]) & set(of[second])
        assert {name: of[second][name] for name in both} == {name: of[first][name] for name in both}


def test_checks_can_fail():
    assert locked("a==1 \\\n    --hash=sha256:" + "0" * 64 + "\n") == {"a==1": ["--hash=sha256:" + "0" * 64]}
    with pytest.raises(AssertionError):
        locked("a==1 \\\n    --hash=sha256:0\n")
    with pytest.raises(AssertionError):
        locked("https://example.org/a.whl\n")
    hashed = "a==1 \\\n    --hash=sha256:" + "0" * 64 + "\n"
    assert not_safe(hashed + "# with PyTorch's index\n") == []
    assert not_safe(hashed + "b==2\n# an index\n# http://example.org\n") == [
        "b==2 has no hash",
        "'# an index' names an index",
        "'# http://example.org' names an index",
    ]
