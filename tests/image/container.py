"""A container of the image as it is to be run: read-only, without rights, without a network; and a way into its network."""

import ctypes
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from deploy.image import Engine

Result = TypeVar("Result")
HARDENED = (
    *("--network", "none", "--read-only", "--tmpfs", "/data:mode=1777,size=1g"),
    *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
)
NO_NAME_SERVER = "nameserver 192.0.2.53\n"
"""An address for documentation (RFC 5737): whoever looks up a name needs a route to it, which is counted."""
CLONE_NEWNET = 0x40000000


class Container:
    """A container that runs."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name

    def state(self, key: str) -> str:
        return self.engine("inspect", "--format", f"{{{{.State.{key}}}}}", self.name).stdout.strip()

    @property
    def pid(self) -> int:
        """Its first process, as this machine counts."""
        return int(self.state("Pid"))

    @property
    def pids(self) -> list[int]:
        """All its processes: those in the first one's PID namespace."""
        own = os.readlink(f"/proc/{self.pid}/ns/pid")
        pids = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(folder / "ns" / "pid") == own:
                    pids.append(int(folder.name))
            except OSError:
                continue
        return pids

    def __call__(self, *command: str) -> tuple[int, str]:
        """Runs a command inside; its exit code and all it says."""
        made = self.engine("exec", self.name, *command, check=False)
        return made.returncode, made.stdout + made.stderr

    def is_healthy(self) -> bool:
        """Whether the image's own health check passes."""
        image = self.engine("inspect", "--format", "{{.Image}}", self.name).stdout.strip()
        asked = json.loads(self.engine("image", "inspect", image).stdout)[0]
        check = (asked.get("Healthcheck") or asked["Config"]["Healthcheck"])["Test"]  # Podman's, Docker's
        assert check[0] == "CMD", check
        return self(*check[1:])[0] == 0

    def log(self) -> str:
        made = self.engine("logs", self.name)
        return made.stdout + made.stderr

    def inside(self, function: Callable[[], Result]) -> Result:
        """What a function returns in the container's network; Linux gives each thread its own."""
        made: list[Result] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                with open(f"/proc/{self.pid}/ns/net") as network:
                    if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "The container's network needs root")
                made.append(function())
            except BaseException as error:  # noqa: BLE001 - raised again, by the thread that asked
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return made[0]

    def without_route(self) -> int:
        """How often anything in its network wanted to reach what is outside, for which there is no route."""
        total = 0
        for file, name in (("snmp", "OutNoRoutes"), ("snmp6", "Ip6OutNoRoutes")):
            lines = Path(f"/proc/{self.pid}/net/{file}").read_text().splitlines()
            if file == "snmp":
                names, values = (line.split() for line in lines if line.startswith("Ip:"))
                total += int(values[names.index(name)])
            else:
                total += sum(int(line.split()[1]) for line in lines if line.split()[0] == name)
        return total


@contextmanager
def running(engine: Engine, image: str, folder: Path) -> Iterator[Container]:
    """A hardened container, healthy; gone afterwards."""
    name = f"attnviz-test-{os.getpid()}"
    names = folder / "resolv.conf"
    names.write_text(NO_NAME_SERVER)
    mount = ("--volume", f"{names}:/etc/resolv.conf:ro")
    options = engine.run_options(image)
    if engine.is_podman:
        options += ("--read-only-tmpfs=false",)  # which would make more folders than ours writable
    engine("run", "--detach", "--name", name, *HARDENED, *mount, *options, image)
    container = Container(engine, name)
    try:
        end = time.monotonic() + 120
        while not container.is_healthy():
            assert container.state("Running") == "true", container.log()
            assert time.monotonic() < end, container.log()
            time.sleep(1)
        yield container
    finally:
        engine("rm", "--force", name, check=False)
