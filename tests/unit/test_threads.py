"""The same seed gives the same map to the bit, however many threads torch and numpy may use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CODE = """
import sys, hashlib, json
import attnviz
from attnviz.maps import layouts

methods, points = sys.argv[1].split(), sys.argv[2]
if points != "few":
    layouts.EXACT_UP_TO = 0
if points == "many":
    layouts.OPENTSNE_FROM = layouts._TWO_THREADS_FROM = 1
trace = attnviz.load_model().trace("I was watching the door when it opened.")
hashes = {}
for method in methods:
    for space, metric in (("raw", "cosine"), ("lifted", "euclidean")):
        map_ = attnviz.project(trace, 3, 1, method=method, space=space, metric=metric, iterations=300)
        assert map_.method == method
        hashes[f"{method} {space}"] = hashlib.sha256(map_.points.tobytes()).hexdigest()
import torch
print(json.dumps([torch.get_num_threads(), hashes]))
"""


def points(n_thread: int, methods: str, points: str = "few") -> list:
    """Number of threads and a hash of each map's points, by a process of its own."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, methods, points],
        env=environment | dict.fromkeys(names, str(n_thread)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def assert_same(methods: str, *more: str) -> None:
    with_one, with_two = (points(n_thread, methods, *more) for n_thread in (1, 2))
    assert (with_one[0], with_two[0]) == (1, 2)
    assert len(with_one[1]) == 2 * len(methods.split())
    assert with_one[1] == with_two[1]


@pytest.mark.nightly
def test_of_tsne() -> None:
    assert_same("tsne")


@pytest.mark.nightly
def test_of_scikit_learns_tsne() -> None:
    assert_same("tsne", "some")


@pytest.mark.nightly
def test_of_other_methods() -> None:
    assert_same("pca mds attention")


@pytest.mark.nightly
def test_of_opentsne() -> None:
    assert_same("tsne", "many")


@pytest.mark.nightly
def test_of_umap() -> None:
    assert_same("umap")
