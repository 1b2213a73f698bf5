"""Which Chromium the browser tests drive. As a script, it installs one where there is none.

How it is started is the tests' business.
"""

import os
import shutil
import subprocess
import sys

VARIABLE = "ATTNVIZ_CHROMIUM"
"""Environment variable with the path of the browser to use, before any other."""

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DEBIAN_PACKAGES = ("chromium", "fonts-liberation", "libatomic1")  # the last is for Playwright's driver

REMEDY = f"""\
The browser tests need Chromium, and none was found. Do one of these, then run them again:
  make chromium                                  installs one, where it can
  apt-get install chromium                       as root, on Debian
  .venv/bin/python -m playwright install chromium
  export {VARIABLE}=/path/to/chromium     to use one that is somewhere else"""


class ChromiumNotFoundError(Exception):
    """No Chromium on this machine starts; the message says what to do."""


def chromium_path() -> str:
    """The Chromium to drive: the one that ATTNVIZ_CHROMIUM names, one on the PATH, or Playwright's own.

    Raises:
        ChromiumNotFoundError: there is none that starts, or the one named does not.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not _starts(named):
            raise ChromiumNotFoundError(f"{VARIABLE} names {named}, and `{named} --version` does not run.")
        return named
    for command in COMMANDS:
        path = shutil.which(command)
        if path and _starts(path):  # Ubuntu's chromium-browser may be a stub that only names a snap
            return path
    own = _playwrights_own()
    if own and _starts(own):
        return own
    raise ChromiumNotFoundError(REMEDY)


def install_chromium() -> str:
    """Install Debian's package when root, else Playwright's own build; the path of what then starts.

    Raises:
        ChromiumNotFoundError: neither could be had.
    """
    for commands in _ways_to_install():
        for command in commands:
            print("+", " ".join(command), file=sys.stderr, flush=True)
            if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
                print("That failed.", file=sys.stderr, flush=True)
        try:
            return chromium_path()
        except ChromiumNotFoundError:
            continue
    raise ChromiumNotFoundError(REMEDY)


def _ways_to_install() -> list[list[list[str]]]:
    playwright = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
        return [
            [[*apt, "update"], [*apt, "install", "--no-install-recommends", "-y", *DEBIAN_PACKAGES]],
            playwright,
        ]
    return [playwright]


def _starts(path: str) -> bool:
    try:
        return (
            subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _playwrights_own() -> str | None:
    """Where Playwright's own browser is or would be; None when Playwright itself does not run here."""
    ask = (
        "from playwright.sync_api import sync_playwright\n"
        "with sync_playwright() as playwright: print(playwright.chromium.executable_path)"
    )
    answer = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else None


def main() -> int:
    """Print the path of a Chromium that starts, installing one if need be."""
    try:
        try:
            path = chromium_path()
        except ChromiumNotFoundError:
            if os.environ.get(VARIABLE):
                raise
            path = install_chromium()
    except ChromiumNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
