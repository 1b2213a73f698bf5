"""A selection: its B, other values by their names in a link, and what a link of it holds."""

from dataclasses import replace

import pytest

from attnviz.model.catalogue import default_model
from attnviz.records import Head
from ui.choice.selection import Selection, from_params, usual
from ui.rooms.all_heads.find_a_head import PairList
from ui.rooms.compare.partner import PartnerB, other
from ui.runtime.source import Source

DOOR = Selection(
    model="all-MiniLM-L6-v2",
    text="The door opened.",
    second="Who opened it?",
    masked=(2,),
    bundle="ab" * 32,
    layer=2,
    head=5,
)


def test_b_is_the_same_in_everything_that_is_not_set_for_it():
    assert other(DOOR) == DOOR


@pytest.mark.parametrize(
    ("set_for_b", "differs"),
    [
        ({"model": "gpt2"}, {"model": "gpt2", "masked": (), "bundle": ""}),
        ({"text": "A cat."}, {"text": "A cat.", "second": "", "masked": (), "bundle": ""}),
        (
            {"text": "A cat.", "second": "It sat.", "masked": (1,)},
            {"text": "A cat.", "second": "It sat.", "masked": (1,), "bundle": ""},
        ),
        ({"second": "It sat."}, {}),
        ({"masked": (1, 3)}, {"masked": (1, 3), "bundle": ""}),
        ({"masked": ()}, {"masked": (), "bundle": ""}),
        ({"layer": 0}, {"layer": 0}),
        ({"head": 0}, {"head": 0}),
    ],
    ids=str,
)
def test_b_differs_in_what_is_set_for_it_and_in_what_follows(set_for_b, differs):
    shown = DOOR.with_records([PartnerB(**set_for_b)])
    assert other(shown) == replace(shown, **differs)


def test_a_bundle_and_masked_tokens_are_not_another_text_s():
    source = other(DOOR.but(other_text="A cat.")).source
    assert (source.text, source.second, source.masked, source.bundle) == ("A cat.", "", (), "")


def test_a_text_of_a_corpus_is_read_by_itself():
    """All that a text is read with, but the model, belongs to the last text."""
    languages = {"source_language": "en_XX", "target_language": "fr_XX"}
    there = DOOR.but(template="chat", cut=True, **languages).alone("A cat.", query=2)
    assert there.source == Source(model=DOOR.model, text="A cat.")
    assert (there.place, there.query) == (DOOR.place, 2)
    assert DOOR.alone("A cat.", cut=True, layer=0).source.cut


def test_several_values_of_one_part_are_changed_together():
    changed = DOOR.but(other_layer=1, other_head=3, pairs_special=True, layer=4).but(other_layer=0)
    assert changed.of(PartnerB) == PartnerB(layer=0, head=3)
    assert changed.of(PairList) == PairList(special=True)
    assert changed.place == Head(4, 5)
    assert changed.with_records([PartnerB(), PairList()]).but(layer=2) == DOOR


def test_the_usual_value_of_a_field():
    assert usual("colour") == "linear"
    assert usual("other_model") == ""
    assert usual("step") == 1
    assert usual("text") is None


def test_a_link_holds_layer_and_head_always_and_other_values_where_they_are_not_usual():
    plain = Selection(model="m", text="A cat.")
    assert plain.to_params() == {"model": "m", "text": "A cat.", "layer": "0", "head": "0"}
    changed = plain.but(step=0, other_head=0, pairs_itself=True, masked=(3, 5)).to_params()
    assert changed == plain.to_params() | {
        "step": "0",
        "other_head": "0",
        "pairs_itself": "1",
        "masked": "3,5",
    }


def test_a_link_opens_the_selection_that_it_was_made_of():
    selection = DOOR.but(other_layer=1, other_text="A cat.", sentences="A → B", step=0)
    assert from_params(selection.to_params()) == (selection, [])


def test_a_link_without_a_model_says_nothing_of_it():
    selection, notices = from_params({"text": "A cat."})
    assert (selection.model, selection.text, notices) == (default_model(), "A cat.", [])


def test_no_other_model_takes_the_place_of_one_that_is_not_offered():
    selection, notices = from_params({"model": "gone", "other_model": "lost", "layer": "two"})
    assert (selection.model, other(selection).model) == ("gone", "lost")  # which are errors of the page
    assert [notice.split(",")[0] for notice in notices] == ["The link asks for layer “two”"]


def test_a_model_is_found_by_its_hub_id_or_by_the_path_of_its_folder(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", "/srv/here/door,/srv/one/saved,/srv/two/saved")
    for written, name in {
        "google-bert/bert-base-uncased": "bert-base-uncased",
        "someone/bert-base-uncased": "someone/bert-base-uncased",  # another model
        "door": "door",
        "/srv/here/door": "door",
        "/home/me/door/": "door",
        "someone/door": "someone/door",  # a Hub id
        "/srv/one/saved": "/srv/one/saved",  # of two folders of that name
        "/srv/one/bert-base-uncased": "/srv/one/bert-base-uncased",  # which is no folder here
        "saved (two)": "saved (two)",
    }.items():
        selection, _ = from_params({"model": written, "other_model": written})
        assert (selection.model, other(selection).model) == (name, name)


def test_a_model_that_is_offered_may_be_b_s():
    selection, notices = from_params({"other_model": default_model()})
    assert (selection.of(PartnerB).model, notices) == (default_model(), [])


def test_another_model_of_b_reads_the_text_alone():
    a = Selection(model="one", text="A cat.", template="chat")
    assert other(a).template == "chat"
    assert other(a.but(other_model="two")).template == "plain"
