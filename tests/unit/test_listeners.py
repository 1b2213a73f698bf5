"""What listens to a chart in the browser sends values that anybody can forge: what is taken of them, and by whom."""

from types import SimpleNamespace

import numpy as np
import pytest
from plotly.graph_objects import Figure

from tests import hand_made
from ui.components import plotly_figure, sent
from ui.components.plotly_figure import Listener
from ui.components.plotly_figure.heatmap_events import heatmap_events
from ui.components.plotly_figure.point_clicks import point_clicks

FORGED = [
    None,
    "pick",
    1,
    [],
    [1],
    [9, 0],
    [0, 9],
    [1.5, 0],
    ["query", 9],
    ["key", 0],
    ["value", 1],
    [1, 2, 3],
]


@pytest.fixture
def listening():
    """The listener to a matrix of two queries and the last two keys, and what it has called."""
    pattern = hand_made.trace(np.full((1, 1, 3, 3), 1 / 3), ["a", "b", "c"]).pattern(0, 0)
    queries, keys = (pattern.queries.where(np.array(kept, dtype=bool)) for kept in ([1, 1, 0], [0, 1, 1]))
    calls = []
    return calls, heatmap_events(
        pattern.arranged(queries, keys),
        show="weights",
        picked=(0, 1),
        on_pick=lambda query, key: calls.append(("cell", query, key)),
        on_label=lambda side, position: calls.append((side, position)),
        theme="light",
    )


def test_a_cell_is_its_query_and_key_and_a_label_its_token(listening):
    calls, listener = listening
    for value in ([0, 2], [1, 1], ["query", 1], ["key", 2]):
        listener.take(value)
    assert calls == [("cell", 0, 2), ("cell", 1, 1), ("query", 1), ("key", 2)]


@pytest.mark.parametrize("value", [*FORGED, [2, 1], [1, 0], ["query", 2]])
def test_of_a_cell_or_label_that_is_not_shown_nothing_is_taken(listening, value):
    calls, listener = listening
    listener.take(value)
    assert calls == []


def test_each_listener_gets_what_was_sent_under_its_name_by_its_chart(monkeypatch):
    taken, mounted = [], {}
    monkeypatch.setattr(plotly_figure, "_mount", lambda **named: mounted.update(named))
    monkeypatch.setattr(
        sent.st,
        "session_state",
        {
            "map": SimpleNamespace(point_clicks=["query", 3]),
            "matrix": SimpleNamespace(point_clicks=["key", 1]),
        },
    )
    plotly_figure.plotly_figure(
        Figure(layout={"height": 300}),
        key="map",
        alt="A map",
        listeners=[
            point_clicks(taken.append, name="Map"),
            Listener(name="label_room", data={"note": ""}),
        ],
    )
    assert mounted["data"]["listeners"] == {
        "point_clicks": {"name": "Map", "wholeRows": False},
        "label_room": {"note": ""},
    }
    assert "on_label_room_change" not in mounted
    mounted["on_point_clicks_change"]()
    assert taken == [["query", 3]]
