"""The configuration of nginx in front of several processes of attnviz: for `make serve`, and deploy/nginx.conf for compose.yaml.

A newcomer gets the process with the fewest connections, and a cookie with its name. From then on that process answers,
since it keeps the visitor's session, uploads and pictures; if it has ended or is full, another one answers, and the
cookie gets that one's name.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

FILE = Path(__file__).with_name("nginx.conf")
COMPOSED = ("172.31.85.11:8501", "172.31.85.12:8501")
"""The processes in compose.yaml, which gives them these addresses."""
COOKIE = "attnviz"

_CONFIGURATION = """\
# Written by deploy/proxy.py, which says how it works.
pid {folder}/nginx.pid;
error_log stderr error;
worker_processes 1;
worker_rlimit_nofile 8192;

events {{
    worker_connections 4096;  # two for each visitor's websocket
}}

http {{
    access_log off;
    server_tokens off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;

    # The process that a visitor's cookie names comes first; without a cookie, the one with the fewest connections.
    map $cookie_{cookie} $chosen {{
        default newcomer;
{cookies}    }}
    # Which process has answered: the last of those that were asked.
    map $upstream_addr $answered {{
        default "";
{answers}    }}
    map "$cookie_{cookie} $answered" $cookie {{
        "~^(\\w+) \\1$" "";
        "~ $" "";
        default "{cookie}=$answered; Path=/; HttpOnly; SameSite=Lax";
    }}
    map $http_upgrade $upgrade_or_close {{
        default upgrade;
        "" close;
    }}

    upstream newcomer {{
        zone newcomer 64k;
        least_conn;
{servers}    }}
{pools}
    server {{
        listen {listen};
        client_max_body_size 0;  # Streamlit has its own limit

        location / {{
            proxy_pass http://$chosen;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $upgrade_or_close;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_buffering off;

            # The next process where one has ended (error), hangs at the start (timeout) or is full (503).
            proxy_next_upstream error timeout http_503;
            proxy_connect_timeout 2s;
            proxy_read_timeout 10m;  # Streamlit sends something over a websocket every 30 seconds
            add_header Set-Cookie $cookie;
        }}
    }}
}}
"""


def configuration(listen: str, processes: Sequence[str], folder: str) -> str:
    """The text of nginx.conf.

    Args:
        listen: address and port, or the port alone, on which nginx listens.
        processes: address and port of each process of attnviz, as numbers.
        folder: a folder that nginx may write to.
    """
    names = [f"p{number}" for number in range(1, len(processes) + 1)]
    pools = []
    for name, first in zip(names, processes, strict=True):
        others = [
            f"        server {process} max_fails=0 backup;\n" for process in processes if process != first
        ]
        pools.append(
            f"    upstream {name} {{\n        server {first} max_fails=0;\n{''.join(others)}    }}\n"
        )
    return _CONFIGURATION.format(
        cookie=COOKIE,
        listen=listen,
        folder=folder,
        cookies="".join(f"        {name} {name};\n" for name in names),
        answers="".join(
            f'        "~(^|[ ,]){host.replace(".", "[.]")}$" {name};\n'
            for name, host in zip(names, processes, strict=True)
        ),
        servers="".join(f"        server {process} max_fails=0;\n" for process in processes),
        pools="".join(pools),
    )


def composed() -> str:
    """The text of deploy/nginx.conf."""
    return configuration("8080", COMPOSED, "/tmp")


def main() -> int:
    """Writes deploy/nginx.conf."""
    FILE.write_text(composed(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
