"""The stage as a viewer in plain JavaScript, which knows no host: its script, its style, and the document that it draws.

Each script here is a module that a browser or node can import as it is. Hosts that take a script as text get them joined,
without their imports; so no two may define the same name.
"""

import json
import re
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
SCRIPTS = (
    *("svg", "html", "renew", "rove", "remember", "measure", "numbers", "cells", "words", "tiles"),
    *("matrix", "band", "passage", "flow", "heads", "ranking", "far", "choices", "options", "pair", "viewer"),
)
"""The modules, each after those that it imports."""
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_ASIDE = re.compile(r"^[ \t]*(?://.*\n|/\*\*(?:.|\n)*?\*/\n|\n)", re.MULTILINE)
"""Comments of whole lines, and empty lines."""
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class|let) )", re.MULTILINE)


def joined(*names: str) -> str:
    """These modules as one text, which imports nothing and exports nothing, without the lines that are comments."""
    texts = ((_HERE / f"{name}.js").read_text(encoding="utf-8") for name in names)
    return "".join(_ASIDE.sub("", _EXPORT.sub("", _IMPORT.sub("", text))) for text in texts)


CHOICES: dict[str, dict[str, Any]] = json.loads(joined("choices").partition(" = ")[2].rstrip(";\n"))
"""What can be chosen of a matrix, by its name in the viewer: `title`, `help` and, where it is one of several, `names` of the options."""


def script() -> str:
    """The viewer as one module, which exports `Viewer`."""
    return f"{joined(*SCRIPTS)}\nexport {{ Viewer }};\n"


def style(*names: str) -> str:
    """The style sheets of these modules, or of all; not every module has one."""
    files = (_HERE / f"{name}.css" for name in names or SCRIPTS)
    return "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())
