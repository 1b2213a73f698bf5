"""What a person has chosen: one Selection, kept for the session and mirrored in the URL.

The session holds the truth. Widgets are filled from it and write to it; links are read into it once,
and again when the browser goes back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_args
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from attnviz.catalogue import default_model, offers
from attnviz.figures.heatmap import Colour, Shown, Special
from attnviz.projection import FEWEST_ITERATIONS, METRICS, MOST_ITERATIONS
from attnviz.records import KINDS
from attnviz.trace import Trace
from ui.cache import Source
from ui.presets import Preset, first_screen

LARGEST_SEED = 2**32 - 1
LONGEST_LINK = 60_000
"""Longest query string, in bytes: the server answers a request of more than 64 KiB with an error."""
_LARGEST_NUMBER = 10**12  # in a link; far above anything that is there to be picked

CHOICES: dict[str, tuple[str, ...]] = {
    "show": get_args(Shown),
    "colour": get_args(Colour),
    "special": get_args(Special),
    "metric": METRICS,
    "kind": KINDS,
}
_RANGES: dict[str, tuple[float, float]] = {
    "layer": (0, np.inf),
    "head": (0, np.inf),
    "query": (0, np.inf),
    "key": (0, np.inf),
    "perplexity": (1, 100),
    "iterations": (FEWEST_ITERATIONS, MOST_ITERATIONS),
    "seed": (0, LARGEST_SEED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Everything that a link carries. Positions and indices count from 0."""

    model: str
    text: str
    second: str = ""
    """Second sentence of a pair; empty for none."""
    cut: bool = False
    """Whether a text over the model's limit is cut instead of refused."""
    kind: str = ""
    """Kind of attention; empty for the model's first."""
    layer: int = 0
    head: int = 0
    query: int | None = None
    """Position of the picked query; None to pick the one with the strongest link."""
    key: int | None = None
    """Position of the picked key; None for the strongest key of the query."""
    show: Shown = "weights"
    colour: Colour = "linear"
    special: Special = "shown"
    metric: str = "cosine"
    perplexity: float = 5.0
    iterations: int = 1000
    seed: int = 0

    @property
    def source(self) -> Source:
        """What the trace is made from."""
        return Source(model=self.model, text=self.text, second=self.second, cut=self.cut)

    def to_params(self) -> dict[str, str]:
        """The query string that opens this very screen; what is at its default is left out."""
        always = {"model", "text", "layer", "head"}
        return {
            one.name: _write(getattr(self, one.name))
            for one in fields(self)
            if one.name in always or getattr(self, one.name) != one.default
        }


def current() -> Selection:
    """What is chosen now; read from the link at the first run and when the link has changed.

    A browser that is clicked twice in a row sends its old link with the second click, since what the
    first did to the link is still on its way; so a click counts for more than the link it comes with.
    """
    params = st.query_params.to_dict()
    clicked = st.session_state.pop("clicked", False)
    other_link = params and params != st.session_state.get("params") and not clicked
    if "selection" not in st.session_state or other_link:
        st.session_state.selection, st.session_state.notices = from_params(params)
        st.session_state.params = params
    return chosen()


def arrive(page: str) -> None:
    """Notes which page is drawn; on another one than before, all fields are filled again."""
    if st.session_state.get("page") != page:
        st.session_state.page, st.session_state.filled = page, set()


def chosen() -> Selection:
    """What is chosen, for callbacks: they run before the page looks at its link."""
    selection: Selection = st.session_state.selection
    return selection


def change(**changes: Any) -> None:
    """Chooses something else; what was said about the last choice is no longer shown."""
    st.session_state.selection = replace(chosen(), **changes)
    st.session_state.notices = []
    st.session_state.clicked = True


def hold() -> None:
    """A click that chooses nothing; like any other it counts for more than the link it comes with."""
    st.session_state.clicked = True


def settle(selection: Selection) -> None:
    """Takes the selection that is really shown as the one that is chosen."""
    st.session_state.selection = selection
    remember(selection)
    mirror(selection)


def remember(selection: Selection) -> None:
    """Notes a selection that could be shown, to fall back on."""
    st.session_state.good = selection


def mirror(selection: Selection) -> None:
    """Puts a selection into the URL, unless its text is too long for one; then the URL is left empty."""
    params = selection.to_params()
    if len(urlencode(params)) > LONGEST_LINK:
        params = {}
        _remark("The text is too long for a link; the address does not lead back to this screen.")
    if not st.query_params.to_dict() == params == st.session_state.params:  # it may lag behind, see `current`
        st.query_params.from_dict(params)
    st.session_state.params = params


def last_good() -> Selection:
    """The last selection that could be shown; the first screen before there was one."""
    good: Selection | None = st.session_state.get("good")
    return first_selection(default_model()) if good is None else good


def first_selection(model: str) -> Selection:
    """What this model shows before anything is chosen."""
    first = first_screen(model)
    st.session_state.preset = first.preset
    return Selection(model=model, text=first.preset.text, layer=first.layer, head=first.head)


def fill(name: str, shown: Selection | None = None) -> str:
    """Key of the widget for a field of the selection, filled in with what is chosen, or with what is shown.

    Set only where it has to be, since that discards what is being typed: when the value differs, and once
    on every page that is opened, where the browser makes the field anew and would show it empty.
    """
    key, value = f"field_{name}", getattr(shown or chosen(), name)
    filled: set[str] = st.session_state.filled
    if key not in filled or st.session_state.get(key) != value:
        st.session_state[key] = value
        filled.add(key)
    return key


def field(name: str, shown: Selection | None = None) -> dict[str, Any]:
    """Arguments that tie a widget to a field of the selection: its key, filled in, and its callback."""
    key = fill(name, shown)

    def take() -> None:
        value = st.session_state[key]
        if value is not None:  # an emptied number field keeps what was chosen
            change(**{name: value})

    return {"key": key, "on_change": take}


def choose_preset(preset: Preset) -> None:
    """Shows an example sentence; its query is picked once its tokens are known."""
    change(text=preset.text, second="", cut=False, query=None, key=None)
    st.session_state.preset = preset


def from_params(params: Mapping[str, str]) -> tuple[Selection, list[str]]:
    """The selection of a link, with a sentence for every value that had to be replaced.

    What does not depend on the text is checked here, the rest by `fit`.
    """
    notices: list[str] = []
    model = params.get("model", "")
    names = [offer.name for offer in offers()]
    if model not in names:
        if model:
            notices.append(
                f"The link asks for the model “{model}”, which is not offered here; {default_model()} is shown."
            )
        model = default_model()
    first = first_selection(model)
    values: dict[str, Any] = {"text": params.get("text", first.text), "second": params.get("second", "")}
    if "cut" in params:
        values["cut"] = params["cut"] == "1"
        if params["cut"] not in ("0", "1"):
            notices.append(f"The link asks for cut “{params['cut']}”; it can be 0 or 1. The text is not cut.")
    for name, choices in CHOICES.items():
        if params.get(name, "") in choices:
            values[name] = params[name]
        elif name in params:
            notices.append(
                f"The link asks for {name} “{params[name]}”; it can be {' or '.join(choices)}. "
                "The usual one is shown."
            )
    for name, (lowest, highest) in _RANGES.items():
        if name in params:
            number = _number(params[name], whole=name != "perplexity")
            if number is None:
                notices.append(
                    f"The link asks for {name} “{params[name]}”, which is no number; the usual one is shown."
                )
                continue
            values[name] = type(number)(min(max(number, lowest), highest))
            if values[name] != number:
                notices.append(f"The link asks for {name} {number}; {values[name]} is the nearest there is.")
    return replace(first, **values), notices


def fit(selection: Selection, trace: Trace) -> Selection:
    """The nearest selection that this trace has; a sentence for every change joins the notices.

    A query that nobody picked becomes the preset's, or the one with the strongest link to another token.
    """
    model = trace.provenance.model
    if selection.kind not in trace.kinds:
        if selection.kind:
            _remark(f"{model} has no {selection.kind} attention; {trace.kinds[0]} attention is shown.")
        selection = replace(selection, kind=trace.kinds[0])
    kind: Any = selection.kind

    def nearest(name: str, count: int, things: str) -> None:
        nonlocal selection
        found = getattr(selection, name)
        if found is not None and found >= count:
            _remark(
                f"There is no {name} {found}: {things} 0 to {count - 1}. {name.capitalize()} {count - 1} is shown."
            )
            changed: dict[str, Any] = {name: count - 1}
            selection = replace(selection, **changed)

    nearest("layer", trace.n_layers(kind), f"{model} has layers")
    nearest("head", trace.n_heads(kind), f"{model} has heads")
    nearest("query", len(trace.query_tokens(kind)), "this text has tokens")
    nearest("key", len(trace.key_tokens(kind)), "this text has tokens")
    if selection.query is None:
        query, key = _preset_pick(trace, kind) or (_strongest_query(trace, selection), None)
        selection = replace(selection, query=query, key=key if selection.key is None else selection.key)
    return replace(selection, kind="" if selection.kind == trace.kinds[0] else selection.kind)


def _remark(notice: str) -> None:
    """Adds a notice, once however often the page runs while it holds."""
    if notice not in st.session_state.notices:
        st.session_state.notices.append(notice)


def _preset_pick(trace: Trace, kind: Any) -> tuple[int, int | None] | None:
    """Query and key of the preset just chosen, if its text is the one on screen."""
    preset: Preset | None = st.session_state.pop("preset", None)
    if preset is None or preset.text != trace.tokens.text:
        return None
    queries, keys = trace.query_tokens(kind).labels, trace.key_tokens(kind).labels
    if preset.query not in queries:
        return None
    return queries.index(preset.query), keys.index(preset.key) if preset.key in keys else None


def _strongest_query(trace: Trace, selection: Selection) -> int:
    """The query that gives most weight to a token of the text other than itself."""
    kind: Any = selection.kind
    pattern = trace.pattern(selection.layer, selection.head, kind)
    weights = pattern.weights.copy()
    weights[:, pattern.key_tokens.is_special] = -1
    if kind != "cross":
        np.fill_diagonal(weights, -1)
    weights[pattern.query_tokens.is_special, :] = -2  # even a text of one token has a better one
    return int(np.unravel_index(weights.argmax(), weights.shape)[0])


def _number(text: str, *, whole: bool) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not np.isfinite(number) or (whole and number != int(number)):
        return None
    number = min(max(number, -_LARGEST_NUMBER), _LARGEST_NUMBER)
    return int(number) if whole else number


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
