"""Where neither umap-learn nor numba is installed: all maps but UMAP's, and a sentence in its place."""

import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.maps.layouts import MISSING
from ui.rooms import ROOMS

ROOT = Path(__file__).parents[2]
NEEDS = 'UMAP needs umap-learn, which is not installed. Run pip install "attnviz[umap]".'
CODE = """
import sys
sys.modules["umap"] = sys.modules["numba"] = None  # as if they were not installed
import numpy as np
import attnviz
from attnviz.maps.joint_map import joint_map
from attnviz.maps.ranking import MAPS
from ui.choice.selection import from_params
from ui.rooms import ROOMS

trace = attnviz.load_model().trace("The door opened.")
for method in ("attention", "tsne", "pca", "mds"):
    print(attnviz.project(trace, 0, 0, method=method).points.shape)
many = [trace.head(0, 0).query, trace.head(0, 0).key, [trace.head(0, 0).scores_and_weights()[0]]]
for asked in (lambda: attnviz.project(trace, 0, 0, method="umap"), lambda: joint_map(*many, method="umap")):
    try:
        asked()
    except attnviz.ProjectionError as error:
        print(error)
print(sorted({choice.method for choice in MAPS}))
selection, notices = from_params({"method": "umap", "joint_method": "umap", "layer": "1"})
print(selection.value("method"), selection.value("joint_method"), selection.layer, len(ROOMS))
print(*notices, sep="\\n")
"""


def test_here_it_is_installed() -> None:
    assert MISSING == {}


@pytest.mark.slow
def test_all_other_maps_are_made() -> None:
    made = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.stdout.splitlines() == [
        *["(12, 2)"] * 4,
        *[NEEDS] * 2,
        "['attention', 'mds', 'pca', 'tsne']",
        f"attention pca 1 {len(ROOMS)}",
        *(
            f"The link asks for {name} “umap”. {NEEDS} The default is shown."
            for name in ("method", "joint_method")
        ),
    ], made.stderr
