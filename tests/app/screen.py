"""What a page shows under AppTest, read back as plain values."""

import csv
import io
import json
import re
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from streamlit.testing.v1 import AppTest

from attnviz.viewer.codes import Scale
from ui.rooms import ROOMS

ROOT = Path(__file__).parents[2]
WORKER = "worker"
"""Name of the threads that stand for processes of their own."""
DOOR = "I was watching the door when it opened."
DRAWERS = ("stage_more", "take_popover")
"""Keys of the popovers whose insides are drawn while they are open; a visitor under AppTest has them open."""
WAIT_SECONDS = 400  # a new process compiles UMAP, which takes a minute on a busy machine
PULSE = 0.2  # seconds between two polls; browsers poll less often, and each poll redraws the page


def open_page(page: str = "attention.py", **params: object) -> AppTest:
    """A page as a new visitor sees it who follows a link with these parameters."""
    at = AppTest.from_file(str(ROOT / "attention.py"), default_timeout=WAIT_SECONDS)
    for name, value in params.items():
        at.query_params[name] = str(value)
    for drawer in DRAWERS:
        at.session_state[drawer] = True
    if page != "attention.py":
        at.switch_page(page)
    at.run()
    at.query_params.clear()  # a browser now has what the page wrote; AppTest would send the link again
    return at


def drawn(section: Callable[[], object]) -> AppTest:
    """What a part of a page draws by itself, from hand-written records."""
    at = AppTest.from_function(_call, default_timeout=WAIT_SECONDS, args=(section,)).run()
    assert_no_exception(at)
    return at


def _call(section: "Callable[[], object]") -> None:  # AppTest runs these lines alone
    section()


def open_bundle(at: AppTest, data: bytes, name: str = "door.zip") -> AppTest:
    """Opens a file in the sidebar."""
    [uploader] = [element for element in at.file_uploader if element.key.startswith("bundle_")]
    return uploader.set_value((name, data, "application/zip")).run()


def type_text(at: AppTest, text: str, second: str | None = None) -> AppTest:
    """Types a sentence, and Enter."""
    at.text_area(key="field_text").set_value(text)
    if second is not None:
        at.text_area(key="field_second").set_value(second)
    return at.run()


def choose(at: AppTest, name: str, value: str) -> AppTest:
    """Chooses one of the segments of a control."""
    return at.button_group(key=f"field_{name}").set_value(value).run()


def settle(at: AppTest, **fields: Any) -> AppTest:
    """Changes the selection as the viewer does where a visitor has settled; AppTest runs no script of a browser."""
    chosen = at.session_state["ui.choice.state.Chosen"]
    if "query" in fields:
        fields = {"key": None} | fields
    for side in fields.keys() & {"query", "key"}:
        fields = {f"{side}_to": None} | fields
    chosen.selection = chosen.selection.but(**fields)
    chosen.notices, chosen.clicked, chosen.unasked = [], True, frozenset()
    return at.run()


def step_head(at: AppTest, by: int = 1) -> AppTest:
    """The next or the previous head: of the stage, which steps in the browser, or of a page with buttons for it."""
    buttons = [button for button in at.button if button.key == ("head_next" if by > 0 else "head_previous")]
    if buttons:
        return buttons[0].click().run()
    heads = [(layer, head) for layer, count in enumerate(document(at)["counts"]) for head in range(count)]
    here = tuple(int(shown(at)[name]) for name in ("layer", "head"))
    layer, head = heads[(heads.index(here) + by) % len(heads)]
    return settle(at, layer=layer, head=head)


def document(at: AppTest) -> dict[str, Any]:
    """The document of the stage."""
    document: dict[str, Any] = component(at, "stage_data")["document"]
    return document


def sent_weights(at: AppTest) -> np.ndarray:
    """The selected head's weights as the stage was sent them, at most `CODED` off; NaN where a query may not see a key."""
    [element] = [element for element in at.get("bidi_component") if element.key == "stage_data"]
    told, codes = message(element)
    document = told["document"]
    cells, counts = document["cells"], document["counts"]
    heads = [[layer, head] for layer, count in enumerate(counts) for head in range(count)]
    there = heads if cells["heads"] == "all" else cells["heads"]
    place = [int(shown(at)[name]) for name in ("layer", "head")]
    sides = [len(side["labels"]) for side in (document["queries"], document["keys"] or document["queries"])]
    of_all = np.frombuffer(codes, "<u2").reshape(len(there), *sides)
    scale = Scale(**{name: cells[name] for name in Scale.__slots__})
    return scale.numbers(of_all[there.index(place)])


CODED = 3.5e-5
"""How far a weight that the stage is sent may be from the model's."""


def is_stage(at: AppTest) -> bool:
    """Whether the page has the stage."""
    return any(element.key == "stage_data" for element in at.get("bidi_component"))


def assert_no_exception(at: AppTest) -> None:
    assert not at.exception, [exception.value for exception in at.exception]
    for table in at.dataframe:  # its rows are told apart by what stands in them
        assert json.loads(table.proto.columns)["_index"]["hidden"], table.value
    assert all(table.proto.hide_index for table in at.table)
    for group in at.get("button_group"):  # an option stays chosen when it is clicked again
        assert group.proto.required or group.proto.style == group.proto.PILLS, group.proto.label


def until_drawn(at: AppTest) -> AppTest:
    """Runs the page again, as the browser does, until no work is under way."""
    return ask_until(at, lambda at: not any(element.label == "Cancel" for element in at.button))


def ask_until(at: AppTest, condition: Callable[[AppTest], bool]) -> AppTest:
    """Runs the page again, as the browser does, until a condition holds; in between the processor is free for the work."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition(at):
        assert time.monotonic() < end, "it is still under way"
        time.sleep(PULSE)
        at.run()
        assert_no_exception(at)
    assert_no_exception(at)
    return at


def finding(at: AppTest) -> str:
    """The finding as a person reads it, without Markdown's escapes."""
    if is_stage(at):
        selection, said = (component(at, "viewer")[name] for name in ("selection", "said"))
        one_head = f"Layer {selection['layer']}, head {selection['head']}"
        of_layer = f"Layer {selection['layer']}, all heads"
        place = {
            "rollout": f"Layers 0 to {selection['layer']}, all heads",
            "alti": of_layer,
            "value_zeroing": of_layer,
        }.get(selection["show"], one_head)
        return f"{place}: {said['headline']}"
    [line] = [element.value for element in at.markdown if element.value.startswith("**Layer")]
    return unescaped(line).strip("*")


def headline(at: AppTest) -> str:
    """The page's headline, which is its first bold line, as Markdown."""
    return next(element.value for element in at.main.markdown if element.value.startswith("**"))


class Facts(NamedTuple):
    """What a sentence says, whatever its words; each kind in the order of the sentence."""

    quoted: tuple[str, ...] = ()
    """Tokens and texts in quotation marks."""
    heads: tuple[tuple[int, int], ...] = ()
    """Layer and head."""
    numbers: tuple[str, ...] = ()
    """All other numbers as they are written, with their sign, power of ten and percent sign."""

    def has(self, *numbers: str) -> bool:
        """Whether these numbers follow each other, for texts of several sentences."""
        n = len(numbers)
        return any(self.numbers[at : at + n] == numbers for at in range(len(self.numbers) - n + 1))


_LINK = re.compile(r'\]\(\S+(?: ".*?")?\)')
_QUOTED = re.compile("“(.*?)”")
_HEAD = re.compile(r"\b(?:[Ll]ayer (\d+), head (\d+)|L(\d+) H(\d+))\b")
_NUMBER = re.compile(
    r"(?<![\w.:·])(?<!\w[-−+])[-−+]?(?:(?:\d+(?:\.\d+)?\s×\s)?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|\d+(?:,\d{3})*(?:\.\d+)?%?)(?!\w|\.\d)"
)


def facts(text: str) -> Facts:
    """The tokens, heads and numbers that a sentence names: they stay the same when it is reworded."""
    text = unescaped(_LINK.sub("]", text))  # where a link leads and its tooltip are not the sentence's
    without_quoted = _QUOTED.sub(" ", text)
    heads = [[int(part) for part in match.groups() if part] for match in _HEAD.finditer(without_quoted)]
    return Facts(
        quoted=tuple(_QUOTED.findall(text)),
        heads=tuple((layer, head) for layer, head in heads),
        numbers=tuple(_NUMBER.findall(_HEAD.sub(" ", without_quoted))),
    )


def drawn_in_main(at: AppTest) -> list[str]:
    """Keys of what components draw beside the menu, without those that every page has."""
    of_every_page = {"present", "page_drawn"}
    return [element.key for element in at.main.get("bidi_component") if element.key not in of_every_page]


def assert_nothing_drawn(at: AppTest) -> None:
    """Neither picture, token, finding nor verdict of any text or model: only the fields, the menu and messages."""
    assert_no_exception(at)
    assert drawn_in_main(at) == []
    assert [element.proto.label for element in at.main.get("page_link")] == row_of(at)
    assert not any(element.value.startswith("**") for element in at.main.markdown)


def row_of(at: AppTest) -> list[str]:
    """The parts of the open room, as its row names them."""
    room = next((room for room in ROOMS if room.name == at.title[0].value), None)
    return [] if room is None or len(room.parts) < 2 else [part.name for part in room.parts]


def errors(at: AppTest) -> list[str]:
    return [unescaped(element.value) for element in at.error]


def notices(at: AppTest) -> list[str]:
    """The remarks at the top of the page, a sentence each."""
    lines = [line for element in at.caption for line in element.value.split("  \n")]
    return [unescaped(line.removeprefix(MARK)) for line in lines if line.startswith(MARK)]


MARK = ":material/info: "


def unescaped(markdown: str) -> str:
    return re.sub(r"\\([^\w\s]|_)", r"\1", markdown)


def captions(at: AppTest) -> str:
    """All captions, as one text, with the notes of the stage and what a caption's help says."""
    notes = [component(at, "viewer")["said"]["notes"]] if is_stage(at) else []
    lines = [f"{element.value} {element.proto.help}" for element in at.caption]
    return unescaped(" ".join([*notes, *lines]))


def shown(at: AppTest) -> dict[str, str]:
    """What the page says that it shows: the parameters of the link to it."""
    return dict(at.session_state["ui.session.Link"].params)


def message(element: Any) -> tuple[dict[str, Any], bytes]:
    """What a component is given to draw, and the bytes that it gets beside that."""
    told, _, attached = element.proto.bytes.partition(b"\n")
    return json.loads(told), attached


def charts(at: AppTest) -> dict[str, bytes]:
    """By key, the bytes that each chart of the page is sent as."""
    name = "attnviz_plotly_figure"
    elements = [element for element in at.get("bidi_component") if element.proto.component_name == name]
    return {str(element.key): message(element)[1] for element in elements}


def figure(at: AppTest, key: str) -> dict[str, Any]:
    """The Plotly JSON of the chart with this key."""
    figure: dict[str, Any] = json.loads(charts(at)[key])
    for name, axis in figure["layout"].items():
        if name.startswith(("xaxis", "yaxis")):
            _check_axis(axis, is_zoomed=_ZOOMED.search(key) is not None)
    return figure


_ZOOMED = re.compile(
    "^(matrix|map|written_matrix|random_tokens|branches_.*|.*_map.*|compare_.*|mask_before|mask_after|implied.*)$"
)
"""Keys of the charts that can be enlarged: matrices of weights, and maps."""


def _check_axis(axis: dict[str, Any], *, is_zoomed: bool) -> None:
    """An axis is fixed unless its chart can be enlarged; the lines of a grid, and that of 0, are drawn where they have a colour."""
    assert bool(axis.get("fixedrange")) != is_zoomed, axis
    assert not axis.get("showgrid") or "gridcolor" in axis, axis
    assert "zeroline" not in axis or axis["zeroline"] == ("zerolinecolor" in axis), axis


def alt(at: AppTest, key: str) -> str:
    """What the chart with this key shows, in words."""
    return str(component(at, key)["alt"])


def matrix(at: AppTest) -> np.ndarray:
    """The numbers in the cells of the attention matrix; on the stage the weights of the selected head on all tokens, as sent."""
    if is_stage(at):
        if document(at)["cells"]["heads"] != "all":
            return sent_heads(at)[0][0]
        selection = component(at, "viewer")["selection"]
        return sent_heads(at)[selection["layer"]][selection["head"]]
    return numbers(figure(at, "matrix")["data"][0]["z"])


def sent_heads(at: AppTest) -> list[np.ndarray]:
    """The weights [head, query, key] of each layer that the stage is sent, read by the formula of docs/viewer.md; NaN is masked."""
    [element] = [element for element in at.get("bidi_component") if element.key == "stage_data"]
    told, attached = message(element)
    document, cells = told["document"], told["document"]["cells"]
    codes = np.frombuffer(attached, dtype="<u2").astype(np.int64)
    steps = np.arange(65535)
    most, low = max(cells["zero"], 65534 - cells["zero"]), cells["low"]
    size = max(-cells["lowest"], cells["highest"])
    from_low = (
        size
        * (cells["root"] + (1 - cells["root"]) * np.maximum(0, steps - low) / (most - low)) ** cells["power"]
    )
    below = from_low[low] * cells["ratio"] ** np.maximum(0, low - steps)
    sizes = np.where(steps >= low, from_low, np.where(steps == 0, 0.0, below))
    decoded = np.where(codes == 65535, np.nan, sizes[np.minimum(np.abs(codes - cells["zero"]), 65534)])
    n_query = len(document["queries"]["labels"])
    n_key = len((document["keys"] or document["queries"])["labels"])
    counts = document["counts"] if cells["heads"] == "all" else [len(cells["heads"])]
    return np.split(decoded.reshape(-1, n_query, n_key), np.cumsum(counts)[:-1])


class Saved(NamedTuple):
    """A matrix as it was saved."""

    queries: list[str]
    """Each with its position, "7 it"."""
    keys: list[str]
    cells: np.ndarray
    """NaN is masked."""


def saved_matrix(taken: Mapping[str, tuple[str, Callable[[], bytes], str]]) -> Saved:
    """What "Matrix as CSV" gives on the last page that was opened."""
    text = taken["take_csv"][1]().decode("utf-8-sig")
    [_, *keys], *rows = csv.reader(io.StringIO(text, newline=""))
    cells = np.array([[float(cell or "nan") for cell in row[1:]] for row in rows], dtype=np.float32)
    return Saved([row[0] for row in rows], keys, cells)


def numbers(values: Any) -> np.ndarray:
    """An array of Plotly's JSON, which is base64 or a list."""
    if not isinstance(values, dict):
        return np.array(values)
    flat = np.frombuffer(b64decode(values["bdata"]), dtype=values["dtype"])
    return flat.reshape([int(n) for n in str(values.get("shape", flat.size)).split(",")])


def component(at: AppTest, name: str) -> dict[str, Any]:
    """What the component of this name is given to draw."""
    [element] = [element for element in at.get("bidi_component") if element.key == name]
    return message(element)[0]


def ranked_lists(at: AppTest) -> list[list[dict[str, Any]]]:
    """The rows of every ranked list of the page."""
    data = [message(element)[0] for element in at.get("bidi_component") if element.proto.bytes]
    return [ranked_list["rows"] for ranked_list in data if "isRanked" in ranked_list]


def chips(at: AppTest) -> list[str]:
    if is_stage(at):
        return list(document(at)["queries"]["labels"])
    return [token["label"] for token in component(at, "token_strip")["tokens"]]


def picked(at: AppTest) -> list[int]:
    """Positions of the chips that are marked as the query."""
    if is_stage(at):
        return [component(at, "viewer")["selection"]["query"]]
    return [token["position"] for token in component(at, "token_strip")["tokens"] if token.get("query")]
