"""Debian's packages, which root can install."""

import os
import shutil
import subprocess
import sys

APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300")


def can_install() -> bool:
    """Whether this process is root, on a Debian."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str, check: bool = True) -> None:
    """Installs packages; the output of apt-get goes to standard error.

    Args:
        check: whether a failure is an error.

    Raises:
        subprocess.CalledProcessError: apt-get failed, and ``check`` is true.
    """
    for command in (("update",), ("install", "--no-install-recommends", "-y", *packages)):
        print("+", " ".join([*APT, *command]), file=sys.stderr, flush=True)
        subprocess.run([*APT, *command], stdout=sys.stderr, check=check)
