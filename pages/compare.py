"""What differs? Two heads, layers, sentences or models on common axes: A is what is picked, B the other."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from attnviz.figures.comparison import MOST_CHANGES, Part, entry_labels
from attnviz.figures.theme import share_text
from attnviz.heads.comparison import Alignment, Comparison, compare, comparison_csv
from attnviz.model.catalogue import locate, offer, offers
from ui.choice import state, widgets
from ui.choice.selection import Selection
from ui.components.ranked_list import Row, ranked_list
from ui.export.take import take
from ui.page import errors, verdict
from ui.page.frame import frame
from ui.page.view import View, hidden_note
from ui.sections.compare.zoom import matrix, pick, zoom_buttons, zoom_note
from ui.words import findings as words
from ui.words.findings import name, number_text, place, strongest_key
from ui.words.literal import literal, quoted
from ui.work import cache, downloads

# What B can differ in, and the fields of the selection that say how; the first is set whenever it does.
FIELDS = {
    "head": ("other_head",),
    "layer": ("other_layer",),
    "sentence": ("other_text", "other_second"),
    "model": ("other_model",),
    "masked": ("other_masked",),
}
NAMES = {
    "head": "Head",
    "layer": "Layer",
    "sentence": "Sentence",
    "model": "Model",
    "masked": "Masked tokens",
}
PARTS: dict[Part, str] = {"first": "Matrix A", "second": "Matrix B", "difference": "B minus A"}

Place = tuple[int | None, int | None]  # positions of a query and a key; None where there is none


def differs(selection: Selection, what: str) -> bool:
    """Whether B has its own head, layer, sentence, model or masked tokens."""
    return getattr(selection, FIELDS[what][0]) not in (None, "")


def start(what: str, view: View, key: int) -> dict[str, Any]:
    """The first choice of B's own head, layer, sentence, model or masked tokens."""
    selection, trace, kind = view.selection, view.trace, view.kind
    match what:
        case "head":
            return {"other_head": (selection.head + 1) % trace.n_heads(kind)}
        case "layer":
            return {"other_layer": (selection.layer + 1) % trace.n_layers(kind)}
        case "sentence":
            return {"other_text": selection.text, "other_second": selection.second}
        case "model":
            return {"other_model": other_models(selection)[0]}
        case _:
            position = view.query if trace.key_tokens(kind).is_special[key] else key
            return {"other_masked": () if selection.masked else (position,)}


def other_models(selection: Selection) -> list[str]:
    """The models on offer but A's, those on disk first."""
    others = [one for one in offers() if one.name != selection.model]
    return [one.name for one in sorted(others, key=lambda one: locate(one) is None)]


def with_b(view: View, key: int) -> Selection:
    """The selection with a B: while none is chosen the text before it was masked, or the next head."""
    if any(differs(view.selection, what) for what in FIELDS):
        return view.selection
    usual = "layer" if view.measure == "rollout" else "head"
    return replace(view.selection, **start("masked" if view.selection.masked else usual, view, key))


def view_of_b(view: View, shown: Selection) -> View | None:
    """B arranged like A, its layer and head the nearest there are; None after saying why it cannot be shown."""
    other = shown.other
    with errors.explained(key="cut_other"):
        chosen = offer(other.model)
        if not other.bundle and locate(chosen) is None:
            if view.selection.model == state.chosen().model:  # or A's own model is offered already
                downloads.panel(chosen)
            return None
        trace = cache.trace(other.source)
        last_layer, last_head = trace.n_layers(view.kind) - 1, trace.n_heads(view.kind) - 1
        fitted = replace(other, layer=min(other.layer, last_layer), head=min(other.head, last_head))
        if fitted != other:
            st.caption(
                f":material/info: {literal(other.model)} has layers 0 to {last_layer} and heads 0 to {last_head}; "
                f"layer {fitted.layer}, head {fitted.head} is B."
            )
        return replace(view, selection=fitted, trace=trace)
    return None


def partners(comparison: Comparison, picked: tuple[int, int]) -> Place:
    """Positions in B of what is picked in A."""
    found: list[int | None] = []
    for alignment, position in zip((comparison.queries, comparison.keys), picked, strict=True):
        entry = alignment.index(position)
        partner = -1 if entry is None else int(alignment.positions(1)[entry])
        found.append(None if partner < 0 else partner)
    return found[0], found[1]


def controls(view: View, shown: Selection, b: View | None, key: int, there: Place) -> None:
    """What B differs in, and a field for each of them.

    Args:
        there: where the picked query and key are in B.
    """
    selection, kind = view.selection, view.kind
    can_mask = kind == "encoder" and cache.mask_label(selection.source) is not None
    options = [
        what
        for what in FIELDS
        if differs(shown, what)
        or {"masked": can_mask, "model": bool(other_models(selection))}.get(what, True)
    ]
    chosen = [what for what in options if differs(shown, what)]

    def choose_differences(picked: list[str]) -> None:
        changes: dict[str, Any] = {}
        for what, names in FIELDS.items():
            if what not in picked:
                changes |= {one: type(shown).__dataclass_fields__[one].default for one in names}
            elif not differs(shown, what):
                changes |= start(what, view, key)
            else:
                changes |= {one: getattr(shown, one) for one in names}
        state.change(**changes)

    with st.container(horizontal=True, vertical_alignment="bottom", key="compare_controls"):
        st.pills(
            "B differs in",
            options,
            selection_mode="multi",
            format_func=NAMES.__getitem__,
            wrap=True,
            help="What is not chosen here is the same in B as in A, which is picked on the left.",
            **widgets.tie("compare_differs", chosen, choose_differences),
        )
        of_b = view if b is None else b
        for what, count in (("layer", of_b.trace.n_layers(kind)), ("head", of_b.trace.n_heads(kind))):
            if what in chosen:
                fitted = replace(shown, **{f"other_{what}": min(getattr(shown, f"other_{what}"), count - 1)})
                st.number_input(
                    f"{NAMES[what]} of B (0–{count - 1})",
                    min_value=0,
                    max_value=count - 1,
                    step=1,
                    width=150,
                    help=f"The {what} that the picked one is compared with.",
                    **tied(f"other_{what}", fitted),
                )
        if "model" in chosen:
            st.selectbox(
                "Model of B",
                [one.name for one in offers()],
                width=220,
                help="The model that the picked one is compared with; tokens are matched by what is written.",
                **tied("other_model", shown),
            )
        if "masked" in chosen:
            masked_tokens(view, shown)
        st.button(
            "Swap A and B",
            icon=":material/swap_horiz:",
            key="swap",
            on_click=swap,
            args=(selection, shown, shown.other if b is None else b.selection, there),
            help="Picks B, and compares it with what was A.",
        )
    if "sentence" in chosen:
        sentences = st.columns([2, 1]) if shown.second or shown.other_second else [st.container()]
        sentences[0].text_input(
            "Sentence of B",
            help="The sentence that the picked one is compared with; empty for the same.",
            **tied("other_text", shown),
        )
        if len(sentences) > 1:
            sentences[1].text_input(
                "Second sentence of B (optional)",
                help="Read together with the sentence of B as a pair.",
                **tied("other_second", shown),
            )


def tied(field: str, shown: Selection) -> dict[str, Any]:
    """Arguments that tie a widget to a field of B; with it all of B is chosen that is shown."""
    return widgets.field(field, shown, partial(choose, shown))


def choose(shown: Selection, **changes: Any) -> None:
    """Chooses something for B, and with it the rest of B that is shown."""
    if changes.keys() & {"other_text", "other_model"}:
        changes = {"other_masked": None} | changes  # positions in another text
    rest = {field: getattr(shown, field) for fields in FIELDS.values() for field in fields}
    state.change(**rest | changes)


def masked_tokens(view: View, shown: Selection) -> None:
    """The tokens of B that are masked."""
    tokens = view.trace.tokens
    with errors.explained(key="cut_masked"):
        tokens = cache.trace(replace(shown.other.source, masked=())).tokens
    options = [position for position in range(len(tokens)) if not tokens.is_special[position]]
    masked = tuple(position for position in shown.other_masked or () if position in options)
    st.multiselect(
        "Masked in B",
        options,
        format_func=lambda position: f"{tokens.labels[position]}·{position}",
        placeholder="No token",
        width=260,
        help="The tokens in whose place B reads the mask token.",
        **tied("other_masked", replace(shown, other_masked=masked)),
    )


def swap(a: Selection, shown: Selection, b: Selection, there: Place) -> None:
    """Makes B what is picked, and A what it is compared with; the picked tokens stay picked."""
    swapped = {one: getattr(b, one) for one in ("model", "text", "second", "masked", "layer", "head")}
    for what, fields in FIELDS.items():
        if differs(shown, what):
            swapped |= {field: getattr(a, field.removeprefix("other_")) for field in fields}
    if a.masked != b.masked:
        swapped["other_masked"] = a.masked
    state.change(**swapped, query=there[0], key=there[1])


def places(a: Selection, b: Selection, comparison: Comparison) -> tuple[str, str]:
    """What A and B are called in a sentence: by what they differ in, if that is one thing."""
    reads = (a.text, a.second, a.masked) == (b.text, b.second, b.masked)
    if reads and a.model == b.model:
        first, second = place(comparison.first), place(comparison.second)
        return first[0].lower() + first[1:], second[0].lower() + second[1:]
    if reads and (a.layer, a.head) == (b.layer, b.head):
        return literal(a.model), literal(b.model)
    return "A", "B"


def finding(comparison: Comparison, picked: tuple[int, int], names: tuple[str, str]) -> str:
    """How the picked query's attention to the picked key differs, in Markdown."""
    sides = comparison.queries, comparison.keys
    query, key = (alignment.index(position) for alignment, position in zip(sides, picked, strict=True))
    if query is None or key is None:
        side = 0 if query is None else 1
        return f"{literal(name(sides[side].first, picked[side]))} is not shown"
    link = " → ".join(
        entry_name(alignment, entry) for alignment, entry in zip(sides, (query, key), strict=True)
    )
    if not (comparison.queries.is_paired[query] and comparison.keys.is_paired[key]):
        side = 1 if comparison.queries.is_paired[query] else 0
        return f"{link}: {literal(name(sides[side].first, picked[side]))} has no partner in B"
    change, measure = comparison.change(query, key), comparison.first.measure
    before, after = number_text(change.first, measure), number_text(change.second, measure)
    if before == after:
        return f"{link} is {before} in {names[0]} as in {names[1]}"
    verb = "rises" if change.difference > 0 else "falls"
    return f"{link} {verb} from {before} in {names[0]} to {after} in {names[1]}"


def entry_name(alignment: Alignment, entry: int) -> str:
    """An entry that A has, with what is in its place in B if that is something else, in Markdown."""
    here, there = alignment.pairs[entry]
    written = literal(name(alignment.first, int(alignment.first.positions[here])))
    if there < 0 or alignment.first.labels[here] == alignment.second.labels[there]:
        return written
    return f"{written} (in B {quoted(alignment.second.labels[there])})"


def heading(part: Part, a: Selection, b: Selection, comparison: Comparison) -> str:
    """What is above a matrix, in Markdown: where it is from, as far as A and B differ."""
    if part == "difference":
        return "**B − A**"
    one, pattern = (a, comparison.first) if part == "first" else (b, comparison.second)
    said = [f"**{'A' if part == 'first' else 'B'}** · {place(pattern).lower()}"]
    if a.model != b.model:
        said.append(literal(one.model))
    if a.masked != b.masked:
        labels = [quoted(label) for label in pattern.keys.tokens.masked.values()]
        said.append(f"{', '.join(labels)} masked" if labels else "nothing masked")
    return " · ".join(said)


def notes(view: View, comparison: Comparison) -> str:
    """What the pictures leave out or join, and what has no partner."""
    said = [words.MEASURE_NOTES[comparison.first.measure], hidden_note(view)]
    queries, keys = comparison.queries, comparison.keys
    only_a, only_b = (int(keys.has(side).sum() - keys.is_paired.sum()) for side in (0, 1))
    if only_a or only_b:
        said.append(
            f"{counted(only_a)} of A (−) and {counted(only_b)} of B (+) have no partner; they are hatched where they "
            "are missing."
        )
        if comparison.first.measure != "norms":
            of_what = "attention" if comparison.first.measure == "weights" else "rollout"
            shares = [
                share_text(
                    float(np.nan_to_num(cells)[queries.has(side)][:, ~keys.is_paired].sum(axis=1).mean())
                )
                for side, cells in enumerate((comparison.first_weights, comparison.second_weights))
            ]
            said.append(f"On average {shares[0]} of A's {of_what} and {shares[1]} of B's lies on them.")
    said.append(zoom_note(comparison, view.selection.around))
    if comparison.splits_differ:
        said.append("The two models split the same text into different pieces.")
    said.append("Triangles mark the largest changes, upwards where B has more.")
    return " ".join(one for one in said if one)


def counted(number: int) -> str:
    """A number of tokens in words."""
    return "1 token" if number == 1 else f"{number:,} tokens"


def largest_changes(view: View, comparison: Comparison, picked: tuple[int, int]) -> None:
    """The cells that differ most; one that is clicked is picked."""
    changes, measure = comparison.largest(MOST_CHANGES), comparison.first.measure
    queries, keys = entry_labels(comparison.queries), entry_labels(comparison.keys)
    found = [
        (int(comparison.queries.positions(0)[one.query]), int(comparison.keys.positions(0)[one.key]))
        for one in changes
    ]
    at = comparison.queries.index(picked[0]), comparison.keys.index(picked[1])
    st.markdown("**Largest changes, A → B**")
    ranked_list(
        [
            Row(
                text=queries[one.query],
                key=keys[one.key],
                amount=f"{number_text(one.first, measure)} → {number_text(one.second, measure)}",
                length=abs(one.difference / changes[0].difference),
                picked=(one.query, one.key) == at,
            )
            for one in changes
        ],
        name="Largest changes from A to B",
        on_pick=lambda row: pick(found[row]),
        theme=view.theme,
        key="changes",
    )


def changed_rows(view: View, comparison: Comparison, query: int) -> None:
    """The queries whose rows differ most; one that is clicked is picked."""
    change = np.nan_to_num(comparison.row_change)
    order = [int(one) for one in np.argsort(-change, kind="stable")[:MOST_CHANGES] if change[one] > 0]
    labels, positions = entry_labels(comparison.queries), comparison.queries.positions(0)
    st.markdown("**Queries whose attention differs most**")
    ranked_list(
        [
            Row(
                text=labels[one],
                amount=number_text(float(change[one]), comparison.first.measure),
                length=float(change[one] / change[order[0]]),
                picked=one == comparison.queries.index(query),
            )
            for one in order
        ],
        name="Queries by how much of their attention differs",
        on_pick=lambda row: state.change(query=int(positions[order[row]]), key=None),
        theme=view.theme,
        key="changed_rows",
    )
    is_share = ": the share of its attention that goes elsewhere in B" * (
        comparison.first.measure == "weights"
    )
    st.caption(f"Half the sum of a row's differences{is_share}, to keys without a partner too.")


view = frame("Compare")
numbers = view.pattern(renormalise=False)
key = strongest_key(numbers, view.query) if view.selection.key is None else view.selection.key
picked = view.query, key
shown = with_b(view, key)
finding_place, controls_place = st.container(key="finding"), st.container()
b = view_of_b(view, shown)
comparison = None
if b is not None:
    with errors.explained(key="cut_compared"):
        comparison = compare(view.pattern(), b.pattern())
with controls_place:
    controls(view, shown, b, key, picked if comparison is None else partners(comparison, picked))
columns = st.columns(3, gap="small")
if b is None or comparison is None:  # why has been said; A stays
    said = literal(words.finding(numbers, *picked))
    finding_place.markdown(f"**{said}**")
    with columns[0]:
        st.markdown(f"**A** · {place(numbers).lower()}")
        matrix(
            view,
            compare(view.pattern(), view.pattern()),
            "first",
            picked,
            alt=f"{PARTS['first']}: {said}",
            key="compare",
        )
    take(view, {"compare_first": PARTS["first"]})
else:
    said = finding(comparison, picked, places(view.selection, b.selection, comparison))
    if not comparison.largest(1) and comparison.queries.is_paired.all() and comparison.keys.is_paired.all():
        said = "A and B are the same; choose what B differs in"
    finding_place.markdown(f"**{said}**")
    for column, part in zip(columns, PARTS, strict=True):
        with column:
            st.markdown(heading(part, view.selection, b.selection, comparison))
            matrix(view, comparison, part, picked, alt=f"{PARTS[part]}: {said}", key="compare")
    zoom_buttons(comparison, view.selection.around, key="compare")
    st.caption(notes(view, comparison))
    left, right = st.columns(2, gap="medium")
    with left:
        largest_changes(view, comparison, picked)
    with right:
        changed_rows(view, comparison, view.query)
    pictures = {f"compare_{part}": written for part, written in PARTS.items()}
    take(view, pictures, csv=partial(comparison_csv, comparison), numbers="Comparison")
verdict.in_sidebar(view.selection)
