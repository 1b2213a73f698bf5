"""Builds the image with Docker or Podman, whichever works here: `make image`.

On a Debian without one, root gets Podman; if the base image cannot be pulled, root gets one made from Debian's
packages.
"""

import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy import apt

ROOT = Path(__file__).parents[1]
IMAGE = "attnviz"
BASE = "localhost/attnviz-base"
"""The base image that is made here if none can be pulled."""
SUITE = "bookworm"
RUN_OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("--runtime", "runc", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"),
)
"""Options to start containers with; the second are for a machine that is a container itself, which may not raise its own limits."""
NOTHING = """\
There is no Docker and no Podman that works here: {found}. Do one of these, then try again:
  start Docker, or add yourself to its group
  apt-get install podman runc        on Debian"""


class NoEngineError(Exception):
    """Nothing here can build or run a container; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Docker or Podman."""

    command: str

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end.

        Raises:
            RuntimeError: the command failed, and ``check`` is true.
        """
        made = subprocess.run([self.command, *arguments], capture_output=True, text=True, check=False)
        if check and made.returncode:
            raise RuntimeError(f"{self.command} {' '.join(arguments)}: {made.stderr.strip()[-2000:]}")
        return made

    @property
    def is_podman(self) -> bool:
        """Whether it is Podman, which builds without a server, on this machine's file system."""
        return self.command == "podman"

    def run_options(self, image: str) -> tuple[str, ...]:
        """The options that start a container here.

        Raises:
            NoEngineError: none do.
        """
        message = ""
        for options in RUN_OPTIONS:
            tried = self("run", "--rm", "--network", "none", *options, image, "true", check=False)
            if tried.returncode == 0:
                return options
            message = tried.stderr.strip().splitlines()[-1]
        raise NoEngineError(f"{self.command} starts no container here: {message}")


def find_engine() -> Engine:
    """Docker, or Podman, or a Podman installed for this.

    Raises:
        NoEngineError: there is none, and none could be installed.
    """
    engines = {}
    for command in ("docker", "podman"):
        if shutil.which(command) is None:
            engines[command] = "not installed"
            continue
        asked = Engine(command)("info", check=False)
        if asked.returncode == 0 and "Cannot connect" not in asked.stderr + asked.stdout:
            return Engine(command)
        engines[command] = (asked.stderr.strip() or asked.stdout.strip()).splitlines()[-1]
    if engines["podman"] == "not installed" and apt.can_install():
        apt.install("podman", "runc", "crun")
        return find_engine()
    raise NoEngineError(
        NOTHING.format(found="; ".join(f"{engine}: {why}" for engine, why in engines.items()))
    )


def base_image(engine: Engine) -> str:
    """BASE_IMAGE, the Dockerfile's own base image, or one that is made here.

    Raises:
        NoEngineError: the Dockerfile's cannot be pulled, and none can be made.
    """
    if named := os.environ.get("BASE_IMAGE"):
        return named
    usual = next(
        line.partition("=")[2]
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("ARG BASE_IMAGE=")
    )
    if engine("image", "inspect", usual, check=False).returncode == 0:
        return usual
    if engine("image", "inspect", BASE, check=False).returncode == 0:
        return BASE
    pulled = engine("pull", "--quiet", usual, check=False)
    if pulled.returncode == 0:
        return usual
    message = pulled.stderr.strip().splitlines()[-1]
    if not apt.can_install():
        raise NoEngineError(
            f"{usual} cannot be pulled ({message}). Name a base image: BASE_IMAGE=... make image"
        )
    print(f"{usual} cannot be pulled ({message}); a base is made of Debian's packages.", flush=True)
    if shutil.which("debootstrap") is None:
        apt.install("debootstrap")
    with tempfile.TemporaryDirectory() as folder:
        included = "--include=python3,python3-venv,ca-certificates"
        _run("debootstrap", "--variant=minbase", included, SUITE, folder)
        for cache in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"):
            shutil.rmtree(Path(folder, cache))
        Path(folder, "var/cache/apt/archives/partial").mkdir(parents=True)
        archive = Path(folder, "base.tar")
        _run("tar", "--create", "--file", str(archive), "--directory", folder, "--exclude=./base.tar", ".")
        engine("import", str(archive), BASE)
    return BASE


def build(engine: Engine, image: str = IMAGE, **arguments: str) -> None:
    """Builds an image of the checked-out files.

    Args:
        image: its name.
        arguments: those of the Dockerfile.

    Raises:
        subprocess.CalledProcessError: the build failed; its output says why.
    """
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    version = re.search(r'__version__ = "(.+)"', (ROOT / "attnviz" / "__init__.py").read_text())
    arguments = {
        "REVISION": revision.stdout.strip(),
        "VERSION": version[1] if version else "",
        "BASE_IMAGE": base_image(engine),
    } | arguments
    command = [engine.command, "build", "--tag", image, "--network", "host"]
    for name, value in arguments.items():
        command += ["--build-arg", f"{name}={value}"]
    if engine.is_podman:
        command += ["--format", "docker"]  # the other format has no health check
        if os.geteuid() == 0:
            command += ["--isolation", "chroot"]  # which works within a container, too
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as configuration:
        local = _write_pip_configuration(configuration.name)
        command += ["--secret", f"id=pip.conf,src={configuration.name}"]
        if engine.is_podman:
            for path in local:
                command += ["--volume", f"{path}:{path}:ro"]
        subprocess.run([*command, str(ROOT)], check=True, env=os.environ | {"DOCKER_BUILDKIT": "1"})


def _write_pip_configuration(path: str) -> list[str]:
    """Writes this machine's settings of pip for where packages are; returns the local files and folders that they name."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    written = configparser.RawConfigParser()
    written.add_section("global")
    local = set()
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        name, value = name.rpartition(".")[2], value.strip("'\"")
        if name in ("index-url", "extra-index-url", "find-links", "cert", "no-index"):
            written.set("global", name, value)
            paths = (place.removeprefix("file://") for place in value.split())
            local |= {path for path in paths if path.startswith("/") and Path(path).exists()}
    with Path(path).open("w") as file:
        written.write(file)
    # An index is a folder whose pages link to files beside it.
    return sorted({str(Path(place).parent) if place.endswith("/simple") else place for place in local})


def _run(*command: str) -> None:
    print("+", " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, stdout=sys.stderr, check=True)


def main(arguments: Sequence[str] = sys.argv[1:]) -> int:
    """Builds the image; arguments are NAME=VALUE for the Dockerfile. Exit code 1 if it cannot be built."""
    try:
        engine = find_engine()
        build(engine, **dict(argument.split("=", 1) for argument in arguments if argument.partition("=")[2]))
    except NoEngineError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(
            f"The image was not built: {Path(error.cmd[0]).name} ended with {error.returncode}.",
            file=sys.stderr,
        )
        return 1
    megabytes = int(engine("image", "inspect", "--format", "{{.Size}}", IMAGE).stdout) / 1e6
    print(f"{IMAGE}: {megabytes:,.0f} MB. Try it: {engine.command} run --rm --publish 8501:8501 {IMAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
