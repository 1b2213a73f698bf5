"""What a reader's browser loads with these pages is in the site: `make docs` fails where a page asks a network for something.

A hook of mkdocs.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\ssrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon|modulepreload|prefetch))[^>]*?\shref=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|(?:@import\s+(?:url\()?|url\()[\"']?((?:https?:)?//[^\"')\s]+)"
)


def loaded(text: str) -> Iterator[str]:
    """What a page or a style sheet loads from a network."""
    for match in LOADED.finditer(text):
        yield next(address for address in match.groups() if address)


def on_post_build(config: Any) -> None:
    """Looks through the site."""
    from mkdocs.exceptions import PluginError

    site = Path(config["site_dir"])
    found = [
        f"{path.relative_to(site)} loads {address}"
        for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")])
        for address in loaded(path.read_text(encoding="utf-8"))
    ]
    if found:
        raise PluginError("The site needs a network: " + "; ".join(found))
