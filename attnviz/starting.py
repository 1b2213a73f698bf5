"""The app, started by the command `attnviz app`: that of a checkout, or the one that the wheel brings.

The library imports nothing of it.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from attnviz.errors import AttnvizError

_PACKAGE = Path(__file__).parent
_IN_WHEEL = _PACKAGE / "streamlit-app" / "app.py"
"""Where setup.py puts it."""
COMMAND = "attnviz app" if _IN_WHEEL.exists() else "make run"
"""What people type to start the app that is there."""


def start(address: str, port: int) -> int:
    """Serves the app in place of this process, until a signal ends it; the exit code where a system cannot do that.

    Raises:
        AttnvizError: Streamlit or another package of the app is not installed.
    """
    for package in ("streamlit", "starlette", "pandas", "cachetools", "prometheus_client"):
        if find_spec(package) is None:
            raise AttnvizError(
                f'The app needs {package}, which is not installed. Run pip install "attnviz[app]".'
            )
    app = _IN_WHEEL if _IN_WHEEL.exists() else _PACKAGE.parent / "app.py"
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(app), "--server.headless", "true"]
    command += ["--server.address", address, "--browser.serverAddress", address, "--server.port", str(port)]
    if os.name == "posix":
        os.execv(sys.executable, command)
    return subprocess.run(command, check=False).returncode
