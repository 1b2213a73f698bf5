"""Which nginx is in front of the processes. Run as a script by root on a Debian, it installs one if there is none."""

import os
import shutil
import sys

from deploy import apt

VARIABLE = "ATTNVIZ_NGINX"
"""Environment variable with the path of the nginx to use, which comes before any other."""
SYSTEM = "/usr/sbin:/usr/local/sbin"
"""Where Debian installs nginx; these folders are not on every user's PATH."""
REMEDY = (
    "nginx is needed to serve with several processes, and none was found. Install it (`apt-get install nginx-light` on Debian, "
    f"`brew install nginx` on macOS), or name it: {VARIABLE}=/path/to/nginx."
)


class NginxNotFoundError(Exception):
    """There is no nginx; the message says what to do."""


def nginx_path() -> str:
    """The nginx that ATTNVIZ_NGINX names, or the one that is installed.

    Raises:
        NginxNotFoundError: there is none.
    """
    named = os.environ.get(VARIABLE)
    path = shutil.which(named) if named else shutil.which("nginx") or shutil.which("nginx", path=SYSTEM)
    if path is None:
        raise NginxNotFoundError(f"{VARIABLE} names {named}, which is no program." if named else REMEDY)
    return path


def main() -> int:
    """Prints the path of nginx, installing Debian's if need be; exit code 1 where there is none."""
    try:
        try:
            path = nginx_path()
        except NginxNotFoundError:
            if not apt.can_install():
                raise
            apt.install("nginx-light", check=False)
            path = nginx_path()
    except NginxNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
