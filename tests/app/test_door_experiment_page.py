"""The door experiment: the story with the models that are here, and what the reader's own variation changes."""

from dataclasses import replace

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers as tf

from attnviz.model.catalogue import EMBEDDED, locate, offer
from tests import tiny
from tests.app.screen import (
    DOOR,
    Facts,
    assert_no_exception,
    facts,
    figure,
    finding,
    open_page,
    picked,
    shown,
    unescaped,
)
from ui.choice.presets import DOOR_IT, DOOR_MASK, PRESETS
from ui.rooms.door_experiment import near
from ui.runtime.remembered import MODELS
from ui.words.reliability import READ

PAGE = "pages/door_experiment.py"
MASKED = DOOR_MASK.text
COMMIT = "86b5e0934494bd15c9632b12f734a8a67f723594"
"""The revision of bert-base-uncased that attnviz pins."""


@pytest.fixture
def experiment():
    return open_page(PAGE)


ROWS = ("sentence", "model", "head", "query", "weight", "strongest", "place", "filled in")
"""The rows of the table; the last is missing where no model fills in a word."""


def column(at, name):
    [table] = [element.value for element in at.table]
    return dict(zip(ROWS, map(unescaped, table[name]), strict=False))


def map_headings(at):
    """What the headings of the two maps name: of the selected query and of the other one."""
    bold = [unescaped(line.value) for line in at.markdown if line.value.startswith("**“")]
    return [facts(line) for line in bold[-2:]]


def download(at):
    return [button for button in at.button if button.key == "start_download"]


def test_it_tells_the_whole_story_on_the_bundled_model(experiment, door_trace):
    assert_no_exception(experiment)
    steps = [line.value for line in experiment.subheader if line.value[0].isdigit()]
    assert [step.split(".")[0] for step in steps] == ["1", "2", "3", "4"]
    [question] = [unescaped(line.value) for line in experiment.markdown if "What opened?" in line.value]
    assert question.startswith(
        f"“{DOOR}” What opened? Layer 3, head 1 of all-MiniLM-L6-v2 links “it” to “door”. Four steps: the attention of “it”,"
    )
    in_finding = facts(finding(experiment))
    assert (in_finding.heads[0], in_finding.quoted[:2], in_finding.numbers[0]) == (
        (3, 1),
        ("it", "door"),
        "47.5%",
    )
    weights = door_trace.weights(3, 1)
    own = column(experiment, "The experiment")
    assert "filled in" not in own  # there is no language head
    place, n_key = facts(own["place"]).numbers
    assert n_key == "11"
    nearer = (str(int(place) - 1), "11") if place != "1" else ()
    first, other = map_headings(experiment)
    assert first == Facts(("it", "door"), numbers=("47.5%", *nearer))
    assert (other.quoted, other.numbers[0]) == (("watching", "door"), f"{weights[3, 5]:.1%}")
    assert list(experiment.table[0].value) == ["", "The experiment"]  # nothing is compared yet
    assert facts(own["weight"]) == Facts(("door",), numbers=("47.5%",))
    assert "experiment_again" not in [button.key for button in experiment.button]


def test_the_numbers_are_weights_whatever_the_matrix_shows():
    at = open_page(PAGE, show="norms")
    assert facts(finding(at)).numbers[0] == "1.47"
    assert map_headings(at)[0].numbers[0] == "47.5%"  # beside lines that are weights
    assert facts(column(at, "The experiment")["weight"]).numbers == ("47.5%",)


@pytest.mark.parametrize(
    ("correlation", "p", "order"),
    [
        (-0.9, 0.06, "chance"),
        (-0.1, 0.01, "weak"),
        (-0.6, 0.01, "rough"),
        (-0.9, 0.01, "fair"),
        (np.nan, np.nan, "unknown"),
    ],
)
def test_before_the_maps_it_is_said_what_they_are_worth(correlation, p, order, monkeypatch):
    made = near.door_map

    def judged(*of):
        projection = made(*of)
        n_permutations = 0 if order == "unknown" else 999
        return replace(
            projection,
            in_map=replace(projection.in_map, order_correlation=correlation),
            chance=replace(projection.chance, correlation_p=p, nearest_p=0.3, n_permutations=n_permutations),
        )

    monkeypatch.setattr(near, "door_map", judged)
    at = open_page(PAGE)
    leads = [line.value for line in at.markdown if "how reliable this one is" in line.value]
    assert [READ[order] in lead for lead in leads] == [True]


def test_both_maps_are_the_same_points_with_another_query(experiment):
    own, other = (figure(experiment, key)["data"] for key in ("door_map", "door_map_other"))
    points = {trace["name"]: trace for trace in own if trace.get("mode") != "lines"}
    for trace in other:
        if trace.get("mode") != "lines" and trace["name"] in ("queries", "keys"):
            assert trace["x"] == points[trace["name"]]["x"]


def test_bert_is_offered_with_its_size_its_time_and_what_it_is_for(experiment):
    [button] = download(experiment)
    assert facts(button.label).numbers == ("441",)
    [line] = [line.value for line in experiment.markdown if facts(line.value).has("441", "1", "50")]
    assert facts(line) == Facts((MASKED,), ((3, 11),), ("441", "1", "50"))
    assert line not in [element.value for element in experiment.expander[0].markdown]  # it is closed at first
    assert any(facts(line.value).has("1", "50") for line in experiment.expander[0].caption)


def test_another_word_changes_yours_and_leads_back(experiment):
    experiment.selectbox(key="experiment_word").select("window").run()
    assert shown(experiment)["text"] == DOOR.replace("door", "window")
    assert picked(experiment) == [7]
    assert experiment.selectbox(key="experiment_word").value == "window"
    yours = column(experiment, "Yours")
    assert facts(yours["weight"]).quoted == ("window",)
    assert facts(column(experiment, "The experiment")["weight"]) == Facts(("door",), numbers=("47.5%",))
    experiment.button(key="experiment_again").click().run()
    assert shown(experiment)["text"] == DOOR
    assert experiment.selectbox(key="experiment_word").value == "door"
    assert "Yours" not in experiment.table[0].value


def test_the_strongest_head_for_a_pair_of_another_sentence(embedded):
    text = "The cat slept because it was tired."
    at = open_page(PAGE, text=text, layer=0, head=0, query=5, key=2)
    at.button(key="experiment_head").click().run()
    assert_no_exception(at)
    trace = embedded.trace(text)
    of_pair = np.array([[trace.weights(layer, head)[5, 2] for head in range(12)] for layer in range(6)])
    layer, head = np.unravel_index(of_pair.argmax(), of_pair.shape)
    link = shown(at)
    assert (link["layer"], link["head"], link["query"], link["key"]) == (str(layer), str(head), "5", "2")


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
        assert facts(finding(at)).heads[0] == (3, 11)
        assert facts(finding(at)).quoted[0] == "[MASK]"
        assert map_headings(at)[1].quoted[0] == "watching"
        assert not download(at)

        theirs = tf.BertForMaskedLM.from_pretrained(bert).eval()
        tokenizer = tf.AutoTokenizer.from_pretrained(bert)
        ids = tokenizer(MASKED, return_tensors="pt")
        with torch.inference_mode():
            shares = theirs(**ids).logits[0, 7].softmax(dim=-1)
        best = tokenizer.convert_ids_to_tokens(int(shares.argmax()))
        [filled] = [
            line for line in map(unescaped, (part.value for part in at.markdown)) if f"**{best}**" in line
        ]
        assert facts(filled).numbers[0] == f"{float(shares.max()):.1%}"
        assert filled.startswith("At “[MASK]”")
        assert column(at, "The experiment")["filled in"] == f"{best}, {float(shares.max()):.1%}"

        at.selectbox(key="experiment_word").select("window").run()
        ids = tokenizer(MASKED.replace("door", "window"), return_tensors="pt")
        with torch.inference_mode():
            shares = theirs(**ids).logits[0, 7].softmax(dim=-1)
        best = tokenizer.convert_ids_to_tokens(int(shares.argmax()))
        assert column(at, "Yours")["filled in"] == f"{best}, {float(shares.max()):.1%}"

    def test_the_example_leads_to_the_head_of_the_experiment(self, bert):
        at = open_page(model="bert-base-uncased", text="The cat slept.", layer=5, head=7)
        at.button_group(key="preset_choice").set_value(DOOR_MASK).run()
        assert_no_exception(at)
        place = {name: shown(at)[name] for name in ("text", "layer", "head", "query", "key")}
        assert place == {"text": MASKED, "layer": "3", "head": "11", "query": "7", "key": "5"}
        at.button_group(key="preset_choice").set_value(DOOR_IT).run()
        assert (shown(at)["layer"], shown(at)["head"]) == ("3", "11")  # the head of the bundled model


def test_a_language_model_fills_in_what_follows_the_query(tmp_path, offer_to_workers):
    folder = tiny.save_with_head("gpt2", tmp_path / "writer")
    offer_to_workers(folder)
    at = open_page(PAGE, model="writer", text="the cat sat when", query=2)
    assert_no_exception(at)
    theirs, tokenizer = (
        tf.GPT2LMHeadModel.from_pretrained(folder).eval(),
        tf.AutoTokenizer.from_pretrained(folder),
    )
    with torch.inference_mode():
        shares = theirs(**tokenizer("the cat sat when", return_tensors="pt")).logits[0, 2].softmax(dim=-1)
    [filled] = [line for line in (unescaped(part.value) for part in at.markdown) if line.startswith("After ")]
    assert f" {float(shares.max()):.1%}" in filled.split(",")[0]


def test_the_example_of_the_bundled_model_leads_to_its_head():
    at = open_page(text="The cat slept.", layer=5, head=7)
    at.button_group(key="preset_choice").set_value(
        next(preset for preset in PRESETS if preset.head is None)
    ).run()
    assert (shown(at)["layer"], shown(at)["head"]) == ("5", "7")
    at.button_group(key="preset_choice").set_value(DOOR_IT).run()
    assert_no_exception(at)
    assert (shown(at)["layer"], shown(at)["head"]) == ("3", "1")
    assert picked(at) == [7]
