"""A showcase's example: offered below the heading, and shown when it is asked for, not before."""

import pytest

from tests import tiny
from tests.app.screen import assert_no_exception, chips, errors, facts, open_page, picked, shown, unescaped
from tests.tiers import first_gates
from ui.choice.presets import PRESETS
from ui.choice.showcases import SHOWCASES
from ui.part import part_named

OTHER = "The old door creaked in the wind."


def button(at):
    buttons = [element for element in at.button if element.key == "showcase_example"]
    return buttons[0] if buttons else None


@pytest.mark.parametrize(
    "showcase", first_gates(*SHOWCASES), ids=lambda showcase: f"{showcase.page}, {showcase.model}"
)
def test_a_click_leads_to_the_example(showcase):
    at = open_page(part_named(showcase.page).file, model=showcase.model, text=OTHER, layer=3, head=1)
    assert shown(at)["text"] == OTHER  # the reader's own stays until she asks
    label = unescaped(button(at).label)
    assert showcase.shows in label and label.endswith(f"({showcase.words})")
    if showcase.layer is not None:
        assert facts(label).heads == ((showcase.layer, showcase.head),)
    button(at).click().run()
    assert_no_exception(at)
    assert errors(at) == []
    assert shown(at)["text"] == showcase.text and shown(at)["query"] == str(showcase.query)
    if showcase.layer is not None:
        assert (shown(at)["layer"], shown(at)["head"]) == (str(showcase.layer), str(showcase.head))
    assert button(at) is None


def test_the_headline_of_history_says_the_contrast():
    at = open_page("pages/history.py", text=OTHER)
    button(at).click().run()
    [in_line] = [facts(line.value) for line in at.markdown if facts(line.value).quoted == ("her", "river")]
    assert in_line.numbers[0] == "19.7%"
    [scale] = [facts(line.value) for line in at.caption if "97.1%" in line.value]
    assert scale.numbers[:2] == ("19.7%", "97.1%")  # the largest weight with and without the scale
    assert chips(at)[picked(at)[0]] == "her"


@pytest.mark.parametrize("page", ["attention.py", "pages/cost.py", "pages/glossary.py"])
def test_other_pages_offer_none(page):
    assert button(open_page(page)) is None


def test_another_model_is_offered_the_bundled_ones_and_blanks_only_with_a_head(tmp_path, monkeypatch):
    folder = tmp_path / "headed"
    monkeypatch.setenv("ATTNVIZ_MODELS", str(tiny.save_with_head("bert", folder)))
    at = open_page("pages/history.py", model="headed", text="the door")
    assert_no_exception(at)
    assert at.button_group(key="preset_choice").options == [preset.called for preset in PRESETS]
    assert "all-MiniLM-L6-v2" in unescaped(button(at).label)
    assert facts(button(at).label).heads == ((0, 3),)
    button(at).click().run()
    assert_no_exception(at)
    assert (shown(at)["model"], shown(at)["layer"], shown(at)["head"]) == ("all-MiniLM-L6-v2", "0", "3")
    assert button(at) is None


def test_examples_with_a_blank_are_not_offered_without_a_language_head():
    at = open_page(text="Paris is the capital of [MASK].")
    offered = at.button_group(key="preset_choice").options
    assert offered == [preset.called for preset in PRESETS if "[MASK]" not in preset.text]
    assert len(offered) == len(PRESETS) - 2
    assert_no_exception(at)
    assert "[MASK]" in chips(at)  # what was chosen already still shows
