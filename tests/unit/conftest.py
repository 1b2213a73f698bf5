"""What tests of several files have in common."""

import pytest

from attnviz.bundle.writing import Bundle, write_bundle
from attnviz.model.loading import Model
from attnviz.model.trace import Trace
from tests.bundles import bundle_of


@pytest.fixture(scope="session")
def door(embedded: Model, door_trace: Trace) -> Bundle:
    """The first screen's example, with "it" and "door" picked."""
    return bundle_of(
        embedded,
        door_trace,
        layer=3,
        head=1,
        query=7,
        key=5,
        settings={"seed": "3", "metric": "cosine"},
    )


@pytest.fixture(scope="session")
def packed(door: Bundle) -> bytes:
    return write_bundle(door)


@pytest.fixture
def pair_trace(embedded: Model) -> Trace:
    """Of two texts, in which words come twice."""
    return embedded.trace("the cat saw the cat", "it ran")
