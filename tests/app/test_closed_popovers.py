"""A widget in a popover that has not been opened: the browser creates it late, from the newest message about it."""

import pytest

from tests.app.screen import assert_no_exception, is_stage, open_page
from tests.tiers import first_gates
from ui.rooms import PAGES


def in_messages(at) -> dict[str, tuple[object, object]]:
    """By the key of each widget, its value and what a browser that creates it now would show."""
    pairs: dict[str, tuple[object, object]] = {}
    for element in [*at.number_input, *at.text_input, *at.text_area, *at.toggle, *at.checkbox]:
        pairs[element.key] = element.value, element.proto.default
    for element in at.slider:
        shown = list(element.proto.default)
        pairs[element.key] = element.value, shown[0] if len(shown) == 1 else tuple(shown)
    for element in at.select_slider:
        pairs[element.key] = (
            element.format_func(element.value),
            element.options[int(element.proto.default[0])],
        )
    for element in at.selectbox:
        if element.key != "experiment_word":  # an action, which holds nothing
            shown = element.options[element.proto.default] if element.proto.HasField("default") else None
            pairs[element.key] = element.format_func(element.value), shown
    for element in at.multiselect:
        held = [element.format_func(value) for value in element.value]
        pairs[element.key] = held, [element.options[at] for at in element.proto.default]
    for element in at.button_group:
        if element.key == "preset_choice":  # an action, which holds nothing
            continue
        held = element.value if isinstance(element.value, list) else [element.value]
        names = [option.content for option in element.proto.options]
        pairs[element.key] = (
            [element.format_func(value) for value in held],
            [names[at] for at in element.proto.default],
        )
    return pairs


@pytest.mark.parametrize("page", first_gates(*(page.file for page in PAGES if "head" in page.asks)))
def test_it_shows_what_is_in_force_however_often_the_page_was_drawn(page):
    at = open_page(page)
    for _ in range(3):  # a value is sent with the first two runs only
        at.run()
    assert_no_exception(at)
    widgets = in_messages(at)
    assert ("field_perplexity" if is_stage(at) else "field_layer") in widgets
    assert {key: pair for key, pair in widgets.items() if pair[0] != pair[1]} == {}


def test_the_thresholds_of_all_heads_are_in_their_message():
    at = open_page("pages/all_heads.py", grid="entropy", broad=0.7)
    for _ in range(3):
        at.run()
    widgets = in_messages(at)
    assert [widgets[f"field_{name}"][1] for name in ("near", "delimiter", "broad")] == [0.5, 0.6, 0.7]
