"""The door experiment: the story with the models that are here, and what the reader's own variation changes."""

from dataclasses import replace

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers as tf

from attnviz.model.catalogue import EMBEDDED, locate, offer
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    figure,
    finding,
    open_page,
    picked,
    shown,
    unescaped,
)
from ui.sections.door_experiment import near
from ui.work.remembered import MODELS

PAGE = "pages/door_experiment.py"
MASKED = "I was watching the door when [MASK] opened."
COMMIT = "86b5e0934494bd15c9632b12f734a8a67f723594"
"""The revision of bert-base-uncased that attnviz pins."""


@pytest.fixture
def experiment():
    return open_page(PAGE)


def said(at):
    return " ".join(unescaped(one.value) for one in at.markdown)


def column(at, name):
    [table] = [one.value for one in at.dataframe]
    return dict(zip(table[""], table[name], strict=True))


def test_it_tells_the_whole_story_on_the_bundled_model(experiment, door_trace):
    assert_no_exception(experiment)
    assert [one.value for one in experiment.subheader if one.value[0].isdigit()] == [
        "1. Which tokens does the query attend to?",
        "2. Are query and key near each other?",
        "3. What does the model fill in?",
        "4. Change one thing",
    ]
    assert finding(experiment).startswith("Layer 3, head 1: “it” gives 47.5% of its attention to “door”")
    assert "This step needs a language head" in said(experiment)
    weights = door_trace.weights(3, 1)
    assert f"“watching” gives {weights[3, 5]:.1%} to “door”" in said(experiment)
    own = column(experiment, "The experiment")
    assert "the model fills in" not in own  # there is no language head
    assert own["place of the key on the map, 1 is nearest"].endswith("of 11")
    nearer = int(own["place of the key on the map, 1 is nearest"].split()[0]) - 1
    assert ("no key is nearer" if nearer == 0 else f"{nearer} of the 11 keys") in said(experiment)
    assert own == column(experiment, "Yours")
    assert own["weight on the key"] == "47.5% on “door”"
    assert not [one for one in experiment.button if one.label == "Back to the experiment"]


def test_the_numbers_are_weights_whatever_the_matrix_shows():
    at = open_page(PAGE, show="norms")
    assert finding(at).startswith("Layer 3, head 1: the norm-based weight from “it” to “door” is ")
    assert "“it” gives 47.5% to “door”" in said(at)  # beside lines that are weights
    assert column(at, "Yours") == column(at, "The experiment")


@pytest.mark.parametrize(
    ("correlation", "words"),
    [
        (0.1, "here little. Which keys are near is chance"),
        (-0.6, "here something. Near keys tend"),
        (-0.9, "here much. Of two keys"),
        (np.nan, "here that cannot be told"),
    ],
)
def test_before_the_maps_it_is_said_what_they_are_worth(correlation, words, monkeypatch):
    made = near.door_map

    def judged(*of):
        projection = made(*of)
        return replace(projection, in_map=replace(projection.in_map, order_correlation=correlation))

    monkeypatch.setattr(near, "door_map", judged)
    at = open_page(PAGE)
    [lead] = [one.value for one in at.markdown if one.value.startswith("Articles explain")]
    assert f"attnviz measures what this one is worth: {words}" in lead


def test_both_maps_are_the_same_points_with_another_query(experiment):
    one, other = (figure(experiment, key)["data"] for key in ("door_map", "door_map_other"))
    points = {trace["name"]: trace for trace in one if trace.get("mode") != "lines"}
    for trace in other:
        if trace.get("mode") != "lines" and trace["name"] in ("queries", "keys"):
            assert trace["x"] == points[trace["name"]]["x"]


def test_bert_is_offered_with_its_size_its_time_and_what_it_is_for(experiment):
    [button] = [one for one in experiment.button if one.label.startswith("Download ")]
    assert button.label == "Download 441 MB"
    [line] = [one.value for one in experiment.markdown if "this step shows which word" in one.value]
    assert "(441 MB, about 1 minute at 50 Mbit/s)" in line
    assert line not in [one.value for one in experiment.expander[0].markdown]  # it is closed at first
    captions = " ".join(one.value for one in experiment.caption)
    assert "about 1 minute at 50 Mbit/s" in captions
    assert "this step shows which word the model fills in" in said(experiment)


def test_another_word_changes_yours_and_leads_back(experiment):
    experiment.selectbox(key="experiment_word").select("window").run()
    assert shown(experiment)["text"] == "I was watching the window when it opened."
    assert picked(experiment) == [7]
    assert experiment.selectbox(key="experiment_word").value == "window"
    yours = column(experiment, "Yours")
    assert yours["weight on the key"].endswith("on “window”")
    assert column(experiment, "The experiment")["weight on the key"] == "47.5% on “door”"
    experiment.button(key="experiment_again").click().run()
    assert shown(experiment)["text"] == DOOR
    assert experiment.selectbox(key="experiment_word").value == "door"
    assert column(experiment, "Yours") == column(experiment, "The experiment")


def test_the_strongest_head_for_a_pair_of_another_sentence(embedded):
    text = "The cat slept because it was tired."
    at = open_page(PAGE, text=text, layer=0, head=0, query=5, key=2)
    [button] = [one for one in at.button if one.label.startswith("Select the strongest head")]
    button.click().run()
    assert_no_exception(at)
    trace = embedded.trace(text)
    of_pair = np.array([[trace.weights(layer, head)[5, 2] for head in range(12)] for layer in range(6)])
    layer, head = np.unravel_index(of_pair.argmax(), of_pair.shape)
    found = shown(at)
    assert (found["layer"], found["head"], found["query"], found["key"]) == (str(layer), str(head), "5", "2")


class TestWithBert:
    """bert-base-uncased on disk: a random network of its shape in heads and layers, with its vocabulary."""

    @pytest.fixture
    def bert(self, tmp_path, monkeypatch):
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
        repository = tmp_path / "models--google-bert--bert-base-uncased"
        folder = repository / "snapshots" / COMMIT
        torch.manual_seed(0)
        config = tf.BertConfig(
            hidden_size=48, num_hidden_layers=12, num_attention_heads=12, intermediate_size=48
        )
        network = tf.BertForMaskedLM(config)
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.ndim > 1:
                    parameter.normal_(std=0.3)  # so that some tokens are likelier than others
        network.save_pretrained(folder)
        bundled = locate(offer(EMBEDDED))
        tf.AutoTokenizer.from_pretrained(bundled.folder).save_pretrained(folder)
        MODELS.clear()
        yield folder
        MODELS.clear()

    def test_it_runs_on_it_and_says_what_the_model_fills_in(self, bert):
        at = open_page(PAGE)
        assert_no_exception(at)
        assert shown(at)["model"] == "bert-base-uncased"
        assert finding(at).startswith("Layer 3, head 11: “[MASK]” gives")
        assert "“watching” gives" in said(at)
        assert not [one for one in at.button if one.label.startswith("Download ")]

        theirs = tf.BertForMaskedLM.from_pretrained(bert).eval()
        tokenizer = tf.AutoTokenizer.from_pretrained(bert)
        ids = tokenizer(MASKED, return_tensors="pt")
        with torch.inference_mode():
            shares = theirs(**ids).logits[0, 7].softmax(dim=-1)
        best = tokenizer.convert_ids_to_tokens(int(shares.argmax()))
        [filled] = [one.value for one in at.markdown if one.value.startswith("At ")]
        assert f"**{best}**" in unescaped(filled)
        assert f"{float(shares.max()):.1%}" in unescaped(filled)
        assert column(at, "The experiment")["the model fills in"] == f"{best}, {float(shares.max()):.1%}"

        at.selectbox(key="experiment_word").select("window").run()
        ids = tokenizer(MASKED.replace("door", "window"), return_tensors="pt")
        with torch.inference_mode():
            shares = theirs(**ids).logits[0, 7].softmax(dim=-1)
        best = tokenizer.convert_ids_to_tokens(int(shares.argmax()))
        assert column(at, "Yours")["the model fills in"] == f"{best}, {float(shares.max()):.1%}"

    def test_the_example_leads_to_the_head_of_the_experiment(self, bert):
        at = open_page(model="bert-base-uncased", text="The cat slept.", layer=5, head=7)
        at.selectbox(key="preset_choice").select("A blank: the door and [MASK]").run()
        assert_no_exception(at)
        place = {name: shown(at)[name] for name in ("text", "layer", "head", "query", "key")}
        assert place == {"text": MASKED, "layer": "3", "head": "11", "query": "7", "key": "5"}
        at.selectbox(key="preset_choice").select("A pronoun: the door and it").run()
        assert (shown(at)["layer"], shown(at)["head"]) == ("3", "11")  # whose head is the bundled model's


def test_the_example_of_the_bundled_model_leads_to_its_head():
    at = open_page(text="The cat slept.", layer=5, head=7)
    at.selectbox(key="preset_choice").select("A garden path: the old man").run()
    assert (shown(at)["layer"], shown(at)["head"]) == ("5", "7")
    at.selectbox(key="preset_choice").select("A pronoun: the door and it").run()
    assert_no_exception(at)
    assert (shown(at)["layer"], shown(at)["head"]) == ("3", "1")
    assert picked(at) == [7]
