"""The page "Many sentences": what is read, the map that comes from another process, search, picks and the numbers."""

import csv
import io
import threading

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attnviz.errors import EmptyTextError, SelectionError
from attnviz.maps import layouts
from attnviz.maps.collection import collect
from attnviz.maps.joint_map import joint_map
from attnviz.model.model import Model
from tests.app.screen import (
    DRAWERS,
    ROOT,
    WAIT_SECONDS,
    WORKER,
    Facts,
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    figure,
    headline,
    notices,
    numbers,
    open_page,
    shown,
    unescaped,
    until_drawn,
)
from tests.calls import Failing, Held
from ui.rooms.many_texts.own_corpora import OwnSentences
from ui.runtime import cache, jobs
from ui.words.reliability import READ

PAGE = "pages/many_sentences.py"
LINES = "The old door creaked.\n\nShe opened the <b>Door</b> for $5 and $6.\nWhy was it closed?\n"


def open_lines(lines=LINES, **params):
    """The page of a visitor who has pasted these lines."""
    at = AppTest.from_file(str(ROOT / "attention.py"), default_timeout=WAIT_SECONDS)
    for name, value in ({"joint_sentences": "own"} | params).items():
        at.query_params[name] = str(value)
    for drawer in DRAWERS:
        at.session_state[drawer] = True
    at.session_state["ui.rooms.many_texts.own_corpora.OwnSentences"] = OwnSentences(text=lines)
    at.switch_page(PAGE)
    at.run()
    at.query_params.clear()
    return until_drawn(at)


def markdown(at):
    return [unescaped(element.value).strip("*") for element in at.markdown]


@pytest.fixture(scope="module")
def few(embedded):
    return collect(embedded, LINES, 3)


@pytest.fixture(scope="module")
def mapped(few):
    return joint_map(*few.vectors(1), [few.scores(number, 1) for number in range(3)])


def test_points_are_the_joint_map_s(few, mapped):
    at = open_lines()
    assert errors(at) == []
    queries, keys, *_ = figure(at, "joint_map")["data"]
    points = np.column_stack([numbers(queries["x"]), numbers(queries["y"])])
    np.testing.assert_allclose(points, mapped.points[: few.n_tokens], atol=1e-4)
    points = np.column_stack([numbers(keys["x"]), numbers(keys["y"])])
    np.testing.assert_allclose(points, mapped.points[few.n_tokens :], atol=1e-4)
    share = f"{100 * mapped.in_map.nearest_agreement:.0f}%"
    limit = f"{100 * mapped.chance.nearest:.0f}%"
    assert facts(headline(at)) == Facts((), ((3, 1),), ("3", share, str(few.n_tokens), limit))
    assert facts(captions(at)).has(str(2 * few.n_tokens), str(few.n_tokens), "3")  # points, tokens, sentences
    assert "session" in captions(at)  # which the sentences do not leave


@pytest.mark.nightly
def test_the_bundled_set_is_shown_first():
    at = until_drawn(open_page(PAGE))
    assert (facts(headline(at)).heads, facts(headline(at)).numbers[0]) == (((3, 1),), "206")
    assert "joint_sentences" not in shown(at)


@pytest.mark.nightly
def test_a_link_to_another_visitor_s_sentences_shows_the_bundled_ones_and_says_so():
    at = until_drawn(open_page(PAGE, joint_sentences="own"))
    assert len(notices(at)) == 1
    assert facts(headline(at)).numbers[0] == "206"


def test_a_picked_query_is_joined_to_its_strongest_keys(few, mapped):
    weights = few.weights(2, 1)[3]
    order = np.argsort(-weights, kind="stable")[:5]
    at = open_lines(joint_sentence=2, joint_token=3)
    links = component(at, "joint_map_links")
    assert (links["picked"]["label"], links["picked"]["role"]) == ("it·3", "query")
    labels = few.tokens[2].labels
    assert [link["label"] for link in links["links"]] == [f"{labels[index]}·{index}" for index in order]
    assert {link["role"] for link in links["links"]} == {"key"}
    points = [[link["x"], link["y"]] for link in (links["picked"], *links["links"])]
    first = few.start(2)
    rows = [first + 3, *(few.n_tokens + first + order)]
    np.testing.assert_allclose(points, mapped.points[rows], atol=1e-3)
    np.testing.assert_allclose([link["weight"] for link in links["links"]], weights[order], atol=1e-4)
    [in_line] = [
        facts(line) for line in markdown(at) if facts(line).numbers[:2] == ("3", "4")
    ]  # sentence, line
    assert in_line.quoted == ("it", *(labels[key] for key in order))
    assert in_line.numbers[2:] == tuple(f"{100 * weights[key]:.1f}%" for key in order)
    there = next(
        element.proto for element in at.main.get("page_link") if element.proto.label == "Open in Explore"
    )
    assert "text=Why+was+it+closed%3F" in there.query_string
    assert f"query=3&key={order[0]}" in there.query_string


def test_a_picked_key_is_joined_to_its_strongest_queries(few):
    weights = few.weights(0, 1)[:, 3]
    at = open_lines(joint_sentence=0, joint_token=3, joint_side="key")
    links = component(at, "joint_map_links")
    assert links["picked"]["role"] == "key"
    np.testing.assert_allclose(
        [link["weight"] for link in links["links"]], np.sort(weights)[::-1][:5], atol=1e-4
    )
    chips = component(at, "token_strip")["tokens"]
    [query] = [chip["position"] for chip in chips if chip["query"]]
    assert query == weights.argmax() != 3  # what it gives is what the chips of the sentence hold
    np.testing.assert_allclose([chip["weight"] for chip in chips], few.weights(0, 1)[query], atol=1e-6)
    strongest = f"{100 * weights.max():.1f}%"
    assert any(facts(line).quoted[:1] == ("door",) and strongest in line for line in markdown(at))


@pytest.mark.parametrize(
    ("head", "space", "correlation", "order"),
    [
        (11, "lifted", -0.44, "rough"),
        (1, "lifted", -0.62, "rough"),
        (7, "raw", -0.78, "fair"),
    ],
)
def test_the_judgement_is_that_of_other_maps(head, space, correlation, order):
    at = open_lines(head=head, joint_space=space)
    assert f"{correlation:.2f}".replace("-", "−") in at.dataframe[0].value["map"].tolist()
    assert READ[order] in captions(at)


def test_search_says_how_many_and_lists_them_with_their_sentence():
    at = open_lines()
    at.text_input(key="field_joint_search").set_value("DOOR").run()
    assert Facts(("DOOR",), numbers=("2", "2")) in [facts(line) for line in markdown(at)]  # in 2 sentences
    table = at.dataframe[0].value
    assert table["token"].tolist() == ["door·3", "door·7"]
    assert table["text"].tolist() == [LINES.splitlines()[0], LINES.splitlines()[2]]
    assert table["sentence"].tolist() == [1, 2]  # one line is blank
    matches = [trace for trace in figure(at, "joint_map")["data"] if trace["name"].startswith("found")]
    assert [len(trace["hovertext"]) for trace in matches] == [2, 2]
    assert shown(at)["joint_search"] == "DOOR"
    at.text_input(key="field_joint_search").set_value("**nothing**").run()
    assert "“**nothing**”" in captions(at)
    assert_no_exception(at)


@pytest.mark.nightly
def test_a_method_and_its_parameters(few):
    at = open_lines(joint_method="tsne", seed=3)
    assert "t-SNE" in captions(at)
    assert facts(captions(at)).has("3", str(2 * few.n_tokens))  # seed and points


def test_special_tokens_can_be_left_out(few):
    at = open_lines(special="hidden")
    assert len(figure(at, "joint_map")["data"][0]["hovertext"]) == few.n_tokens - 6


def test_what_is_cut_and_dropped_is_said():
    at = open_lines("door\n\x00\n" + "it " * 600)
    assert facts(captions(at)).has("3", "512")  # the line that is cut, and where
    assert any(
        facts(line).numbers == ("2",) for line in captions(at).split(". ")
    )  # the line that is left out


def test_lines_without_any_token_are_an_error(embedded):
    at = open_lines("\x00\n\x07")
    with pytest.raises(EmptyTextError) as refused:
        collect(embedded, "\x00\n\x07", 3)
    assert errors(at) == [str(refused.value)]


def test_a_pick_that_is_not_there_is_said():
    at = open_lines(joint_sentence=77)
    assert len(notices(at)) == 1
    assert component(at, "joint_map_links")["picked"] is None


def test_the_map_before_stays_while_the_next_is_made_and_when_it_is_stopped(tmp_path, monkeypatch):
    at = open_lines(seed=191)  # no other test has asked for this t-SNE map
    held = Held("attnviz.maps.joint_map:joint_map", tmp_path)
    monkeypatch.setattr("ui.rooms.many_texts.joint_map.laid_out.joint_map", held)
    at.button_group(key="field_joint_method").set_value("tsne").run()
    assert "PCA: " in captions(at)
    [cancel] = [element for element in at.button if element.label == "Cancel"]
    cancel.click().run()
    assert at.button(key="map_act")  # with which it is laid out after all
    assert jobs.state().n_running == 0
    assert "PCA: " in captions(at)
    held.let_go()
    at.button(key="map_act").click().run()
    until_drawn(at)
    assert "t-SNE, " in captions(at)


def test_every_control_says_what_it_does():
    at = open_lines(joint_method="tsne")
    kinds = ("text_area", "text_input", "selectbox", "number_input", "button", "button_group", "slider")
    assert [element.proto.label for kind in kinds for element in at.get(kind) if not element.proto.help] == []


@pytest.mark.nightly
@pytest.mark.parametrize(("family", "kind"), [("llama", "decoder"), ("t5", "encoder")])
def test_other_families(family, kind, checkpoint, offer_to_workers):
    folder = checkpoint(family)
    offer_to_workers(folder)
    at = open_lines("a cat sat\nthe door", model=folder.name, kind=kind, text="a cat")
    assert errors(at) == []
    assert facts(headline(at)).numbers[0] == "2"


@pytest.mark.nightly
def test_cross_attention_is_refused(checkpoint, offer_to_workers):
    folder = checkpoint("t5")
    offer_to_workers(folder)
    at = open_lines("a cat sat", model=folder.name, kind="cross", text="a cat", second="the mat")
    [error] = errors(at)
    assert "encoder attention" in error
    assert "Try again" not in [element.label for element in at.button]  # which would not help


@pytest.mark.nightly
def test_a_map_that_cannot_be_made_is_refused_in_one_sentence(tmp_path, monkeypatch):
    refused = SelectionError("Something was asked for that is not there.")
    failing = Failing("attnviz.maps.joint_map:joint_map", tmp_path / "never", refused)
    monkeypatch.setattr("ui.rooms.many_texts.joint_map.laid_out.joint_map", failing)
    at = open_lines("Of these there is no map yet.\nIt creaked.")
    assert errors(at) == [str(refused)]
    assert "Try again" not in [element.label for element in at.button]


def test_numbers_as_csv(few, mapped, taken):
    open_lines()
    rows = list(csv.DictReader(io.StringIO(taken["take_csv"][1]().decode("utf-8-sig"))))
    assert len(rows) == 2 * few.n_tokens
    labels = [f"{position} {label}" for token in few.tokens for position, label in enumerate(token.labels)]
    assert [row["token"] for row in rows] == labels * 2
    assert [row["line"] for row in rows[: few.n_tokens]] == [
        str(few.line[sentence]) for sentence in few.sentence
    ]
    points = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    np.testing.assert_allclose(points, mapped.points, atol=1e-4)
    np.testing.assert_allclose(
        [float(row["length"]) for row in rows],
        np.linalg.norm(np.concatenate(few.vectors(1)), axis=1),
        rtol=1e-4,
    )


@pytest.mark.nightly
def test_a_link_has_the_server_s_process_read_and_lay_out_its_own_text_only(monkeypatch):
    """The sentences are read and their map is made by other processes, however long that takes."""
    cache.model("all-MiniLM-L6-v2")  # loading it runs it on one letter
    read, laid_out = [], []
    trace, lay_out = Model.trace_tokens, layouts.lay_out

    def is_here() -> bool:
        return threading.current_thread().name != WORKER

    monkeypatch.setattr(
        Model,
        "trace_tokens",
        lambda *given, **named: (is_here() and read.append(given[1].text)) or trace(*given, **named),
    )
    monkeypatch.setattr(
        "attnviz.maps.joint_map.lay_out",
        lambda *given, **named: laid_out.append(is_here()) or lay_out(*given, **named),
    )
    text = "Nobody has read this."
    at = until_drawn(open_page(PAGE, text=text, layer=4, joint_method="pca"))
    assert figure(at, "joint_map")
    assert set(read) == {text}
    assert set(laid_out) == {False}
