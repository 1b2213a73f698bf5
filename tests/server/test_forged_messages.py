"""Messages that no browser sends: values of the wrong kind, out of range, or of widgets that are not there, on every page.

No run may end in an exception, and what is shown stays.
"""

import json
import random

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.visitor import Visitor, events_of, run, visit
from ui.rooms import PAGES

pytestmark = pytest.mark.nightly

ODD_JSON = [
    None,
    [],
    {},
    "x",
    -1,
    10**30,
    1.5,
    [[]],
    ["query", -5],
    ["query", "key"],
    [10**9, 10**9],
    {"pick": {}},
    [[[1]]],
]
PER_PAGE = 25
LEFT_ALONE = ("start_download", "bundle_", "sentences_file")
"""What ends the page or takes files."""


def forged(name: str, at_random: random.Random) -> WidgetState:
    """A value that the widget of this id never sends."""
    value = at_random.choice(ODD_JSON)
    events = json.dumps(
        [
            {
                "event": at_random.choice(
                    ("pick", "point_clicks", "heatmap_events", "go", "keep", "mask", "")
                ),
                "value": value,
            }
        ]
    )
    return at_random.choice(
        (
            lambda: WidgetState(id=name, string_value="no such option"),
            lambda: WidgetState(id=name, int_value=at_random.choice((-1, 10**12, 2**62))),
            lambda: WidgetState(id=name, double_value=at_random.choice((float("nan"), float("inf"), -0.5))),
            lambda: WidgetState(id=name, bool_value=True),
            lambda: WidgetState(id=name, trigger_value=True),
            lambda: WidgetState(id=name, string_array_value={"data": ["a", ""]}),
            lambda: WidgetState(id=name, double_array_value={"data": [float("nan"), 1e300]}),
            lambda: WidgetState(id=name, json_value=json.dumps(value)),
            lambda: WidgetState(id=name, json_value="{"),
            lambda: WidgetState(id=events_of(name), json_trigger_value=events),
            lambda: WidgetState(id=events_of(name), json_trigger_value="["),
            lambda: WidgetState(id=name),
            lambda: WidgetState(id="$$ID-0-nothing", string_value="x"),
        )
    )()


async def attack(server: str, address: str, n: int, seed: int) -> list[str]:
    at_random = random.Random(seed)
    async with visit(server, address) as visitor:
        await visitor.settle()
        for _ in range(n):
            names = [widget.id for key, widget in visitor.widgets.items() if not key.startswith(LEFT_ALONE)]
            wrong = [forged(at_random.choice(names), at_random) for _ in range(at_random.choice((1, 1, 3)))]
            n_run = visitor.n_run
            message = BackMsg()
            message.rerun_script.page_script_hash = visitor.page_hash
            message.rerun_script.widget_states.widgets.extend(wrong)
            await visitor.send_raw(message.SerializeToString())
            await visitor.until(lambda n_run=n_run: visitor.n_run > n_run)
        await still_answers(visitor)
        return visitor.exceptions


async def still_answers(visitor: Visitor) -> None:
    """A click of its own is answered as always."""
    n_run, head = visitor.n_run, visitor.params["head"]
    if "head_next" not in visitor.widgets:  # a part that no head is selected for
        await visitor.click("open_glossary")
        await visitor.until(lambda: visitor.n_run > n_run)
        return
    await visitor.click("head_next")
    await visitor.until(lambda: visitor.n_run > n_run and visitor.params.get("head") != head)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_end_in_no_exception(server, page):
    assert run(attack(server, page.address, PER_PAGE, seed=PAGES.index(page))) == []
