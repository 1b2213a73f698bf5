"""The door experiment: the story with the models that are here, and what the reader's own variation changes."""

from dataclasses import replace

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers as tf

import attnviz
from attnviz.effects.ablation import ablate
from attnviz.effects.outcome import measured, outcome_from
from attnviz.figures.numbers import number_text
from attnviz.model.catalogue import EMBEDDED, SMOLLM2, locate, offer
from tests.app.conftest import FEW_CANDIDATES
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
from ui.runtime import jobs
from ui.runtime.remembered import MODELS
from ui.words.reliability import READ

PAGE = "pages/door_experiment.py"
MASKED = DOOR_MASK.text
COMMIT = "86b5e0934494bd15c9632b12f734a8a67f723594"
"""The revision of bert-base-uncased that attnviz pins."""


def opened(**given):
    """The page once all models have filled its gaps; in a browser it is drawn again by itself."""
    return filled(open_page(PAGE, **given))


def filled(at):
    for work in list(jobs._kept.values()):
        if work.name == "filling a gap":
            work.settle(60)
    return at.run()


@pytest.fixture
def experiment():
    return opened()


ROWS = (
    "sentence",
    "model",
    "head",
    "query",
    "weight",
    "strongest",
    "place",
    "filled in",
    "filled in by another",
)
"""The rows of the table; a last one for each model that fills the gap."""


def said_of(at, model):
    """The sentence in step 3 about what a model fills in."""
    [sentence] = [
        line for line in map(unescaped, (part.value for part in at.markdown)) if line.startswith(f"**{model}")
    ]
    return sentence


def bars(at, number=0):
    """The bars of a model's candidates, by name: the shares, likeliest candidate first."""
    return {
        trace["name"]: dict(zip(trace["y"], trace["x"], strict=True))
        for trace in figure(at, f"gap_{number}")["data"]
    }


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
    smollm2 = attnviz.load_model(SMOLLM2)
    infilling = attnviz.fill(smollm2, "I was watching the door when", " opened.", most=FEW_CANDIDATES)
    share = f"{infilling.probabilities[0]:.1%}"
    assert own["filled in"] == f"it, {share}"
    sentence = facts(said_of(experiment, SMOLLM2))
    assert sentence.quoted == ("it",) and "another model than all-MiniLM-L6-v2" in said_of(
        experiment, SMOLLM2
    )
    assert sentence.numbers[-2:] == (share, f"{infilling.before_probabilities[0]:.1%}")
    assert any("when ___ opened" in unescaped(line.value) for line in experiment.markdown)
    shown_bars = bars(experiment)
    for name, shares in (
        ("the text before", infilling.before_probabilities),
        ("the text after", infilling.after_shares),
        ("both", infilling.probabilities),
    ):
        assert list(shown_bars[name]) == list(infilling.labels[:5])
        np.testing.assert_allclose(list(shown_bars[name].values()), shares[:5], rtol=1e-6)
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
    [steps] = [each for each in experiment.expander if each.label != "Your own model"]
    assert line not in [element.value for element in steps.markdown]  # it is closed at first
    assert any(facts(line.value).has("1", "50") for line in steps.caption)


def test_another_word_changes_yours_and_leads_back(experiment):
    filled(experiment.selectbox(key="experiment_word").select("window").run())
    assert "window when ___" in " ".join(unescaped(line.value) for line in experiment.markdown)
    assert column(experiment, "Yours")["filled in"]
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
        at = opened()
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
        share = f"{float(shares.max()):.1%}"
        sentence = facts(said_of(at, "bert-base-uncased"))
        assert (sentence.quoted, sentence.numbers[-1]) == ((best,), share)
        [probabilities] = bars(at, 1).values()
        np.testing.assert_allclose(max(probabilities.values()), float(shares.max()), rtol=1e-5)
        assert said_of(at, SMOLLM2)  # beside it
        assert column(at, "The experiment")["filled in by another"] == f"{best}, {share}"

        filled(at.selectbox(key="experiment_word").select("window").run())
        ids = tokenizer(MASKED.replace("door", "window"), return_tensors="pt")
        with torch.inference_mode():
            shares = theirs(**ids).logits[0, 7].softmax(dim=-1)
        best = tokenizer.convert_ids_to_tokens(int(shares.argmax()))
        assert column(at, "Yours")["filled in by another"] == f"{best}, {float(shares.max()):.1%}"

    def test_the_example_leads_to_the_head_of_the_experiment(self, bert):
        at = open_page(model="bert-base-uncased", text="The cat slept.", layer=5, head=7)
        at.button_group(key="preset_choice").set_value(DOOR_MASK).run()
        assert_no_exception(at)
        place = {name: shown(at)[name] for name in ("text", "layer", "head", "query", "key")}
        assert place == {"text": MASKED, "layer": "3", "head": "11", "query": "7", "key": "5"}
        at.button_group(key="preset_choice").set_value(DOOR_IT).run()
        assert (shown(at)["layer"], shown(at)["head"]) == ("3", "11")  # the head of the bundled model


def test_on_the_language_model_itself_heads_are_named_and_the_best_one_is_switched_off():
    at = opened(model=SMOLLM2, text=DOOR, layer=0, head=0, query=6, key=4)
    assert_no_exception(at)
    assert any("door when ___ opened" in unescaped(line.value) for line in at.markdown)
    model = attnviz.load_model(SMOLLM2)
    trace = model.trace(DOOR)
    weights = np.array([[trace.weights(layer, head)[6:8, 4] for head in range(9)] for layer in range(30)])
    lines = [line for line in map(unescaped, (part.value for part in at.markdown)) if line.startswith("At “")]
    assert len(lines) == 2  # of "it", and of what follows it
    for number, line in enumerate(lines):
        place = np.unravel_index(weights[..., number].argmax(), (30, 9))
        assert f": L{place[0]} H{place[1]} {weights[(*place, number)]:.1%}" in line
    layer, head = map(int, np.unravel_index(weights[..., 0].argmax(), (30, 9)))
    measure = measured(model, trace, outcome_from("answer:5:␣it:␣they"))
    effects = ablate(model, trace, measure, layers=[layer])
    [sentence] = [line for line in map(unescaped, (part.value for part in at.markdown)) if "off," in line]
    assert f"layer {layer}, head {head} off" in sentence
    assert (
        number_text(effects.base) in sentence and number_text(float(effects.heads[layer, head])) in sentence
    )


def test_a_special_token_is_no_gap():
    at = opened(query=0)
    assert_no_exception(at)
    assert any("special token" in error.value for error in at.error)


def test_nothing_before_the_gap_is_said():
    at = opened(text="It opened.", query=1)
    assert_no_exception(at)
    assert any("before the gap" in unescaped(error.value) for error in at.error)


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
