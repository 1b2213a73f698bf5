"""The wheel, installed where there is no checkout: its commands, and the app that it brings."""

import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attnviz import __version__
from tests.browser.conftest import HEALTH, ROOT, START_SECONDS, free_port, wait_for
from tests.log_lines import errors
from tests.visitor import run, visit

OF_THE_BUILD = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
OF_THE_APP = ("app.py", "attention.py", "pages", "ui", ".streamlit")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `pip install` makes of the wheel, beside which the packages of this environment are found."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout, wheels, target = folder / "checkout", folder / "wheels", folder / "installed"
    checkout.mkdir()
    for name in (*OF_THE_BUILD, *OF_THE_APP, "attnviz"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, checkout)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(wheels)]
    subprocess.run([*pip, *build, str(checkout)], check=True)
    (wheel,) = wheels.iterdir()
    place = ["install", "--no-deps", "--no-index", "--no-compile", "--target", str(target)]
    subprocess.run([*pip, *place, str(wheel)], check=True)
    return target


@pytest.fixture(scope="module")
def environment(installed: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(installed), "ATTNVIZ_WARM": "no"}


def answered(
    installed: Path, environment: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=installed.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_has_all_files_of_the_app(installed: Path) -> None:
    def files(folder: Path) -> Iterator[str]:
        for name in OF_THE_APP:
            paths = [folder / name] if (folder / name).is_file() else (folder / name).rglob("*")
            for path in paths:
                if path.is_file() and path.suffix != ".pyc":
                    yield str(path.relative_to(folder))

    assert sorted(files(installed / "attnviz" / "streamlit-app")) == sorted(files(ROOT))
    assert sorted(path.name for path in installed.iterdir() if "." not in path.name) == ["attnviz", "bin"]


def test_an_import_sees_nothing_of_the_app(installed: Path, environment: dict[str, str]) -> None:
    code = """if True:
        import importlib.util, pkgutil, sys
        import attnviz, attnviz.starting
        print(attnviz.__file__)
        print([name for name in ("streamlit", "ui", "pages") if name in sys.modules])
        print([name for name in ("ui", "attention", "attnviz.app") if importlib.util.find_spec(name)])
        print(attnviz.starting.COMMAND)
        print([module.name for module in pkgutil.iter_modules(attnviz.__path__) if "app" in module.name])
    """
    made = answered(installed, environment, "-P", "-c", code)
    lines = [str(installed / "attnviz" / "__init__.py"), "[]", "[]", "attnviz app", "[]"]
    assert made.stdout.splitlines() == lines, made.stderr


def test_the_command_tells_its_version(installed: Path, environment: dict[str, str]) -> None:
    made = answered(installed, environment, str(installed / "bin" / "attnviz"), "--version")
    assert (made.returncode, made.stdout) == (0, f"attnviz {__version__}\n"), made.stderr


@contextmanager
def served(installed: Path, environment: dict[str, str], folder: Path) -> Iterator[str]:
    """The address of `attnviz app`, started in an empty folder; that it printed it and wrote nothing is tested in the end."""
    port, log = free_port(), folder / "log.txt"
    address = f"http://127.0.0.1:{port}"
    command = [str(installed / "bin" / "attnviz"), "app", "--port", str(port), "--address", "127.0.0.1"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_for(f"{address}{HEALTH}", process, log)
        yield address
    finally:
        process.terminate()
        process.wait(START_SECONDS)
    assert f"URL: {address}\n" in log.read_text()
    assert errors(log) == []
    assert [path.name for path in folder.iterdir()] == ["log.txt"]


def test_the_command_serves_the_app(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    with served(installed, environment, tmp_path) as address:
        page = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=30)
        assert "<title>Explore · attnviz</title>" in page.read().decode()


@pytest.mark.nightly
def test_its_first_page_is_drawn(installed: Path, environment: dict[str, str], tmp_path: Path) -> None:
    async def opened(address: str) -> None:
        async with visit(address) as visitor:
            await visitor.settle()
            assert visitor.exceptions == []
            assert "field_text" in visitor.widgets, sorted(visitor.widgets)

    with served(installed, environment, tmp_path) as address:
        run(opened(address))


def test_without_streamlit_the_command_says_what_to_install(
    installed: Path, environment: dict[str, str]
) -> None:
    code = """if True:
        import sys
        import attnviz.starting
        attnviz.starting.find_spec = lambda name: None if name == "streamlit" else True
        from attnviz.cli import main
        sys.exit(main(["app"]))
    """
    made = answered(installed, environment, "-P", "-c", code)
    assert (made.returncode, made.stdout) == (2, "")
    assert made.stderr == (
        'attnviz: The app needs streamlit, which is not installed. Run pip install "attnviz[app]".\n'
    )
