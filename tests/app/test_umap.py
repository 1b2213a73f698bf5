"""UMAP on the pages of maps, side by side: a process that has compiled it, which takes longest, serves both."""

import numpy as np
import pytest

from tests.app.screen import assert_no_exception, charts, facts, open_page
from tests.app.test_all_maps_page import cells, open_maps
from tests.app.test_all_maps_page import points as points_of_head
from tests.app.test_query_key_map_page import HEAD_FIELDS, PAGE, PLACE, note, points, wait_for_map
from ui.runtime import workers

pytestmark = pytest.mark.nightly


def test_its_parameters_are_there_at_once_and_its_map_comes_from_another_process():
    at = open_page(PAGE, **PLACE, method="umap", metric="euclidean", seed=3, neighbours=6)
    assert_no_exception(at)
    assert "matrix" in charts(at)
    ranges = [facts(element.label).numbers for element in at.number_input if element.key not in HEAD_FIELDS]
    assert ranges == [("2", "21"), ("0", "1"), ()]  # neighbours, least distance, seed
    wait_for_map(at)
    assert points(at).shape == (22, 2) and np.isfinite(points(at)).all()
    assert facts(note(at)).numbers[:3] == ("6", "0.1", "3")


def test_it_makes_other_maps_of_every_head(checkpoint, monkeypatch):
    """A tiny model and a single process, the one that has compiled UMAP."""
    monkeypatch.setattr(workers, "WORKERS", 1)
    folder = checkpoint("bert")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    where = {
        "model": folder.name,
        "text": "the cat sat on a mat when it opened, the door",
        "layer": 0,
        "head": 0,
    }
    pca = open_maps(**where)
    before = [points_of_head(pca, layer, head).tolist() for layer in range(3) for head in range(2)]
    at = open_maps(**where, method="umap", seed=3)
    assert any(line.value.startswith("UMAP") for line in at.caption)
    assert all(cell["number"] for cell in cells(at).values())
    after = [points_of_head(at, layer, head).tolist() for layer in range(3) for head in range(2)]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert len({str(placed) for placed in after}) == 6
