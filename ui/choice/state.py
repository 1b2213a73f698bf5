"""What a visitor has selected, kept for the session and mirrored in the URL.

`ui.choice.selection` defines it, and `ui.choice.widgets` ties it to widgets. A link is read once, and again when the
browser goes back.
"""

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from attnviz.effects.outcome import Similarity
from attnviz.heads.facts import first_link
from attnviz.model.trace import Trace
from attnviz.records import Mixing, Tokens, bare
from ui.choice.exchanged import other_sentence
from ui.choice.fitting import fitted
from ui.choice.presets import Preset, first_preset
from ui.choice.selection import LANGUAGES, Selection, can_be, from_params
from ui.components.present import PARAMETER
from ui.runtime import kept_texts
from ui.runtime.uploads import opened
from ui.session import Link, of_session


@dataclass(frozen=True, slots=True)
class Named:
    """A token that is looked for in another sentence, or among the tokens of another model."""

    tokens: Tokens
    position: int

    @property
    def is_special(self) -> bool:
        """Whether it is a special token."""
        return bool(self.tokens.is_special[self.position])

    def find(self, tokens: Tokens) -> int | None:
        """Where tokens have its label: as many before it have that, too, or all others; None where none has."""
        word = bare(self.tokens.labels[self.position])
        here, there = (
            [at for at, label in enumerate(of.labels) if word in label and bare(label) == word]
            for of in (self.tokens, tokens)
        )
        return there[min(here.index(self.position), len(there) - 1)] if there else None


@dataclass(frozen=True, slots=True)
class Lent:
    """A model that one page shows in place of the visitor's own, which has no predictions."""

    page: str
    model: str
    own: Selection
    """What was selected before, shown again on other pages, with the sentence of then or, where it has changed, of now."""


@dataclass(slots=True)
class Chosen:
    """What a visitor has selected, and the notices about it."""

    selection: Selection | None = None
    """None before the first page."""
    notices: list[str] = field(default_factory=list)
    clicked: bool = False
    """Whether anything was clicked since the page was last drawn."""
    preset: Preset | None = None
    """An example just selected; its query is selected once its tokens are known."""
    query: Named | None = None
    """The query on screen."""
    key: Named | None = None
    """The selected key; None if none is."""
    kept: tuple[Named | None, Named | None] = (None, None)
    """Query and key of the previous sentence or model, selected again if what is shown now has the same tokens."""
    lent: "Lent | None" = None
    """What was selected before a page that needs predictions took the bundled language model; None while no page does."""
    unasked: frozenset[str] = frozenset()
    """Fields that the link did not name: no notice is shown if a model lacks the examples' layer or head."""


LONGEST_LINK = 60_000
"""Longest query string, in bytes: the server rejects requests of more than 64 KiB."""


LATE_SECONDS = 5.0
"""How long after a change a page's links may still lead to what it showed before."""


def _of_choices() -> dict[str, str]:
    """The parameters of the address that belong to the selection."""
    return {name: value for name, value in st.query_params.to_dict().items() if name != PARAMETER}


def current(page: str) -> Selection:
    """The current selection; read from the link at the first run and when the link has changed.

    After two quick clicks, the browser sends its old link with the second one, since the new link is still on its way;
    so a click takes precedence over the link that comes with it. If the second click leads to another page, the link is
    the one that the menu had before the first click.

    Args:
        page: name of the page that is being drawn.
    """
    params = _of_choices()
    here, link = of_session(Chosen), of_session(Link)
    clicked, here.clicked = here.clicked, False
    replaced = link.replaced.get(urlencode(params), -math.inf)
    is_late = page != link.page and time.monotonic() - replaced < LATE_SECONDS
    if page != link.page:
        link.page, link.replaced = page, {}
    other_link = params and params != link.params and not clicked and not is_late
    if here.selection is None or other_link:
        named, lost = _with_kept_text(params)
        here.selection, here.notices = from_params(named)
        here.notices += lost
        here.lent = None
        here.unasked = frozenset({"layer", "head"} - params.keys())
        if "text" not in named:
            here.preset = first_preset(chosen().model)
        link.params = params
    return chosen()


KEPT = "kept"
"""The parameter of an address that names a text which is too long for it."""


def _with_kept_text(params: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """The parameters of an address with the text that it names, and a notice where that is not kept here any more."""
    if KEPT not in params:
        return params, []
    others = {name: value for name, value in params.items() if name != KEPT}
    texts = kept_texts.found(params[KEPT])
    if texts is None:
        return others, ["The text of this address is no longer kept here. Paste it, or open its file again."]
    return others | {"text": texts[0]} | ({"second": texts[1]} if texts[1] else {}), []


def link_names_model() -> bool:
    """Whether the address names a model and is not this session's own, such as one that was sent to the visitor."""
    params = _of_choices()
    return "model" in params and params != of_session(Link).params


def with_opened_bundle(selection: Selection) -> Selection:
    """The selection without a bundle that this session has not opened; the model computes its sentence instead."""
    if not selection.bundle or opened(selection.bundle) is not None:
        return selection
    _remark("The link leads to a bundle that is not open here; the model computes its sentence instead.")
    of_session(Chosen).selection = selection.but(bundle="")
    return chosen()


def chosen() -> Selection:
    """The current selection, for callbacks, which run before the page reads its link."""
    selection = of_session(Chosen).selection
    assert selection is not None  # `current` runs first
    return selection


def change(**changes: Any) -> None:
    """Changes the selection; notices about the previous one are dropped.

    Values that no field can hold are left out: our controls do not send them. Masked tokens and branches belong to one text
    in one model, so they are cleared when either changes; languages belong to one tokenizer. Another model of the same sentence
    keeps query and key on their tokens, wherever it has these. A newly selected query or key is a single token until it is extended
    to a phrase.
    """
    changes = {name: value for name, value in changes.items() if can_be(name, value)}
    if "text" in changes:
        changes = _renewed(changes["text"]) | changes
    if changes.keys() & {"model", "text", "second"}:
        changes = {"masked": (), "other_masked": None} | changes
    if changes.keys() & {"model", "text", "second", "template"}:
        changes = {"write_branches": (), "write_branch": 0, "write_beside": None} | changes
    kept: tuple[Named | None, Named | None] = (None, None)
    if "model" in changes:
        of_session(Chosen).lent = None
        changes = dict.fromkeys(LANGUAGES, "") | {"template": "plain"} | changes
        if not changes.keys() & {"text", "second", "query", "key"}:
            kept = (of_session(Chosen).query, of_session(Chosen).key)
            changes = {"query": None, "key": None} | changes
    if changes.get("template", chosen().template) != chosen().template:  # another template moves every token
        changes = {"masked": (), "other_masked": None, "query": None, "key": None} | changes
    if changes.keys() & {"other_model", "other_text", "other_second"}:
        changes = {"other_masked": None} | changes
    for side in changes.keys() & {"query", "key"}:
        changes = {f"{side}_to": None} | changes
    notices = []
    if chosen().bundle and changes.keys() & {
        "model",
        "text",
        "second",
        "cut",
        "masked",
        "template",
        *LANGUAGES,
    }:
        changes = {"bundle": ""} | changes
        notices = ["The bundle is closed: the model on this machine computes what is shown."]
    of_session(Chosen).kept = kept
    show(chosen().but(**changes), notices)


def _renewed(text: str) -> dict[str, Any]:
    """The other sentences of experiments for a new text, where they were the defaults for the previous one."""
    here, renewed = chosen(), dict[str, Any]()
    for record in here.records:
        if of_record := getattr(record, "renewed", None):
            renewed |= of_record(here.text, text)
    if here.outcome == str(Similarity(text=other_sentence(here.text))):
        renewed["outcome"] = ""
    return renewed


def type_sentence(**typed: str) -> None:
    """Takes a newly typed first or second sentence; the query stays on the same word."""
    here = of_session(Chosen)
    change(**typed, cut=False, query=None, key=None)
    if here.query is not None and not here.query.is_special:
        here.kept = (here.query, None)


def show(selection: Selection, notices: list[str]) -> None:
    """Takes a whole selection, with notices about it."""
    here = of_session(Chosen)
    here.selection, here.notices, here.clicked = selection, notices, True
    here.unasked = frozenset()


def pin(**shown: Any) -> None:
    """Selects the defaults on screen explicitly, so that they stay when something else is selected."""
    of_session(Chosen).selection = chosen().but(**shown)


def mask(position: int) -> None:
    """Replaces a token by the mask token, or restores it."""
    change(masked=tuple(sorted({*chosen().masked} ^ {position})))


def lend(model: str, page: str) -> None:
    """Shows another model on this page alone; `take_back` shows the visitor's own again elsewhere."""
    here, own = of_session(Chosen), chosen()
    change(model=model)
    here.lent, here.clicked = Lent(page, model, own), False  # the visitor has clicked nothing


def take_back(page: str) -> None:
    """Ends what another page was lent: the visitor's model, head and what belongs to it, with the sentence of now."""
    here = of_session(Chosen)
    if here.lent is None or here.lent.page == page:
        return
    own, now = here.lent.own, chosen()
    here.lent = None
    if (own.text, own.second) != (now.text, now.second):
        of_model = {"query": None, "key": None, "masked": ()}
    else:
        of_model = {
            name: own.value(name) for name in ("query", "key", "query_to", "key_to", "masked", "outcome")
        }
    same = ("model", "kind", "layer", "head", "template", *LANGUAGES)
    here.selection = now.but(**{name: own.value(name) for name in same}, **of_model)


def lent(page: str) -> Lent | None:
    """The model that this page shows in place of the visitor's own; None where it shows that."""
    of = of_session(Chosen).lent
    return of if of is not None and of.page == page else None


def was_clicked() -> bool:
    """Whether anything was clicked since the page was last drawn."""
    return of_session(Chosen).clicked


def hold() -> None:
    """Notes a click that selects nothing; like any other, it takes precedence over the link that comes with it."""
    of_session(Chosen).clicked = True


def settle(selection: Selection) -> None:
    """Makes the selection that is actually shown the current one."""
    of_session(Chosen).selection = selection


def fits_link(selection: Selection) -> bool:
    """Whether the address can lead back to a selection."""
    return len(urlencode(selection.to_params())) <= LONGEST_LINK


def mirror(selection: Selection) -> None:
    """Puts a selection into the URL; a text that is too long for it stays on the server, and the URL names it."""
    params = selection.to_params()
    if not fits_link(selection):
        name = kept_texts.keep((selection.text, selection.second))
        params = {field: value for field, value in params.items() if field not in ("text", "second")}
        params = params | {KEPT: name} if len(urlencode(params)) < LONGEST_LINK - 100 else {}
        _remark(
            "The text is too long for a link; the address leads back to it as long as this server keeps it."
            if params
            else "The text is too long for a link; the address does not lead back to this screen."
        )
    link = of_session(Link)
    if not _of_choices() == params == link.params:  # the URL may lag behind, see `current`
        presents = {PARAMETER: st.query_params[PARAMETER]} if PARAMETER in st.query_params else {}
        st.query_params.from_dict(params | presents)
    if link.params is not None and link.params != params:
        now = time.monotonic()
        recent = {query: at for query, at in link.replaced.items() if now - at < LATE_SECONDS}
        link.replaced = recent | {urlencode(link.params): now}
    link.params = params


def choose_preset(preset: Preset) -> None:
    """Shows an example sentence, with its measured head and outcome if its own model is selected.

    Its query is selected once its tokens are known.
    """
    place: dict[str, Any] = {}
    if preset.head is not None and preset.model == chosen().model:
        query, key = preset.at or (None, None)
        place = {"layer": preset.head.layer, "head": preset.head.head, "kind": "", "query": query, "key": key}
        place["template"] = "plain"  # as measured
        if preset.outcome:
            place["outcome"] = preset.outcome
    change(**{"text": preset.text, "second": "", "cut": False, "query": None, "key": None} | place)
    if place and preset.shows:
        _remark(f"{preset.name}: {preset.shows}.")
    of_session(Chosen).preset = preset


def noted(selection: Selection, notices: Sequence[str]) -> Selection:
    """A selection as `ui.choice.fitting` makes it; its notices are shown on the page."""
    for notice in notices:
        _remark(notice)
    return selection


def fit(selection: Selection, trace: Trace, mixings: Collection[Mixing] = ()) -> Selection:
    """The nearest selection that exists in this trace; adds a notice for every change.

    If no query was selected, it becomes the preset's query, the same word as in the previous sentence, or the query of the
    first link (`attnviz.heads.facts.first_link`).

    Args:
        mixings: as in `ui.choice.fitting.fitted`.
    """
    here = of_session(Chosen)
    selection = noted(*fitted(selection, trace, frozenset(here.unasked), mixings))
    kind: Any = selection.kind
    queries, keys = trace.query_tokens(kind), trace.key_tokens(kind)
    if selection.query is None:
        pick = _preset_pick(trace, kind) or _kept_pick(trace, kind)
        query, key = pick or (_first_query(trace, selection, kind), None)
        selection = selection.but(
            query=query, key=key if selection.key is None else selection.key, lines_of=""
        )
    assert selection.query is not None  # selected just above, if it was not before
    here.query = Named(queries, selection.query)
    here.key = None if selection.key is None else Named(keys, selection.key)
    return selection.but(kind="" if selection.kind == trace.kinds[0] else selection.kind)


def _first_query(trace: Trace, selection: Selection, kind: Any) -> int:
    """The query of the first link, or of a long text its last one, whose row alone is computed."""
    if trace.is_long(kind):
        return len(trace.query_tokens(kind)) - 1
    return first_link(trace.pattern(*selection.place, kind)).query


def _remark(notice: str) -> None:
    """Adds a notice, only once however often the page runs."""
    notices = of_session(Chosen).notices
    if notice not in notices:
        notices.append(notice)


def notices() -> list[str]:
    """The notices about the selection on screen."""
    return list(of_session(Chosen).notices)


def _preset_pick(trace: Trace, kind: Any) -> tuple[int, int | None] | None:
    """Query and key of the preset just selected, if its text is the one on screen."""
    here = of_session(Chosen)
    preset, here.preset = here.preset, None
    if preset is None or preset.text != trace.tokens.text:
        return None
    if preset.at is not None and preset.model == trace.provenance.model:
        return preset.at
    queries, keys = (
        [*map(bare, tokens_of(kind).labels)] for tokens_of in (trace.query_tokens, trace.key_tokens)
    )
    if preset.query not in queries:
        return None
    return queries.index(preset.query), keys.index(preset.key) if preset.key in keys else None


def _kept_pick(trace: Trace, kind: Any) -> tuple[int, int | None] | None:
    """Query and key of the previous sentence or model, if what is shown now has the query's token."""
    here = of_session(Chosen)
    (query, key), here.kept = here.kept, (None, None)
    if query is None or (at := query.find(trace.query_tokens(kind))) is None:
        return None
    return at, None if key is None else key.find(trace.key_tokens(kind))
