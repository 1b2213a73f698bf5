"""Many texts on a cluster: two workers of Ray on this machine give the numbers of one process.

The cluster is a process tree of its own, listens at the loopback address alone, and has its token and its files in a folder that goes with it.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attnviz.corpus.columns import MEASURED
from attnviz.corpus.pipeline import profile_corpus
from attnviz.corpus.profile import read_profile

pytestmark = pytest.mark.nightly

N_TEXT = 96
WITHIN = 1e-6
"""Texts meet in other batches, whose padding changes the last digits of float32 numbers between 0 and 1."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Ray takes the loopback address for its own where clusters of several machines are off; on Linux it takes another one even if it is
told this one."""
ON_TWO_WORKERS = """
import sys
from pathlib import Path

import ray
from ray._private.state import actors
from ray.cluster_utils import Cluster

from attnviz.corpus import pipeline, running

texts, model, out = sys.argv[1:]
running.N_SHARD = 3  # 48 texts on a cluster, so that there are two shards
node = {"num_cpus": 1, "memory": 2 * 1024**3, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=node)
try:
    cluster.add_node(**node)
    cluster.wait_for_nodes()
    pipeline.profile_corpus([texts], model, Path(out), ray=cluster.address)
    print("nodes with a worker:", len({actor["Address"]["NodeID"] for actor in actors().values()}))
finally:
    ray.shutdown()
    cluster.shutdown()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """For the files of the cluster; the path of a socket has 107 bytes at the most, more than a test's folder leaves."""
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        yield Path(folder)


@pytest.mark.as_served
def test_two_workers_give_the_numbers_of_one_process(checkpoint, tmp_path, home):
    words = ["cat", "door", "mat"]
    texts = [
        f"the {words[number % 3]} " * (1 + number % 7) + f"opened the {words[number // 3 % 3]} ."
        for number in range(N_TEXT)
    ]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    model = str(checkpoint("bert"))
    alone = profile_corpus([str(tmp_path / "texts.txt")], model, tmp_path / "alone")
    run = subprocess.run(
        [sys.executable, "-c", ON_TWO_WORKERS, str(tmp_path / "texts.txt"), model, str(tmp_path / "two")],
        env=os.environ | LOOPBACK | {"HOME": str(home), "RAY_TMPDIR": str(home)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "nodes with a worker: 2" in run.stdout, run.stdout
    two = read_profile(tmp_path / "two")
    assert (two.n_text, two.n_failed, two.about) == (N_TEXT, 0, alone.about)
    assert two.n_passed == two.n_verified > 0
    for name in MEASURED:
        for end in ("", "_low", "_high"):
            np.testing.assert_allclose(
                two.numbers(name + end), alone.numbers(name + end), rtol=0, atol=WITHIN, err_msg=name
            )
    assert left_behind(home) == []


def left_behind(home: Path) -> list[str]:
    """Processes that have a folder of the cluster among their arguments."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue
        if str(home) in command:
            commands.append(command)
    return commands
