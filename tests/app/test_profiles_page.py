"""The page "Profiles": its numbers are the profile's, its heads are found by name and number, and examples are shown as they are."""

import numpy as np
import pytest

from attnviz.corpus.naming import names_of
from attnviz.corpus.pipeline import profile_corpus
from attnviz.corpus.profile import read_profile
from attnviz.heads import statistics
from attnviz.records import Axis, Head
from tests.app.screen import (
    assert_no_exception,
    component,
    errors,
    facts,
    figure,
    headline,
    numbers,
    open_bundle,
    open_page,
    shown,
    until_drawn,
)
from ui.sections.profiles.one_head import distance_names

PAGE = "pages/profiles.py"
ROWS = (
    ("the", "DET", 2, "det"),
    ("cat", "NOUN", 3, "nsubj"),
    ("opened", "VERB", 0, "root"),
    ("the", "DET", 5, "det"),
    ("door", "NOUN", 3, "obj"),
)


@pytest.fixture(scope="module")
def written(checkpoint, tmp_path_factory):
    """Of a tiny BERT over sentences with labels."""
    folder = tmp_path_factory.mktemp("profiles")
    others = ["cat", "door", "mat"]
    sentences = []
    for number in range(24):
        rows = [list(row) for row in ROWS]
        rows[1][0], rows[4][0] = others[number % 3], others[number // 3 % 3]
        rows = rows[: 5 if number % 2 else 4] if number % 5 else rows
        if len(rows) == 4:
            rows[3] = ["it", "PRON", 3, "obj"]
        lines = [
            f"{at}\t{form}\t_\t{part}\t_\t_\t{head}\t{name}\t_\t_"
            for at, (form, part, head, name) in enumerate(rows, 1)
        ]
        sentences.append("\n".join(lines))
    (folder / "texts.conllu").write_text("\n\n".join(sentences) + "\n")
    profile_corpus([str(folder / "texts.conllu")], str(checkpoint("bert")), folder / "cats")
    return folder / "cats"


@pytest.fixture(scope="module")
def profile(written):
    return read_profile(written)


@pytest.fixture
def page(written, checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bert")))
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(written.parent))

    def opened(**asked):
        at = open_page(
            PAGE, model="bert", text="the cat opened the door", **({"layer": 1, "head": 1} | asked)
        )
        assert_no_exception(at)
        assert errors(at) == []
        return at

    return opened


def test_points_and_ranks_are_the_profile_s_numbers(page, profile):
    at = page(profile_x="distance", profile_y="previous")
    [points] = figure(at, "profile_heads")["data"]
    np.testing.assert_allclose(numbers(points["x"]), profile.numbers("distance"), rtol=1e-6)
    np.testing.assert_allclose(numbers(points["y"]), profile.numbers("previous"), rtol=1e-6)
    heads = profile.heads()
    order = np.argsort(-profile.numbers("previous"), kind="stable")
    rows = component(at, "profile_ranking")["rows"]
    assert [facts(row["text"]).heads[0] for row in rows] == [tuple(heads[one]) for one in order[: len(rows)]]
    assert [row["picked"] for row in rows] == [heads[one] == (1, 1) for one in order[: len(rows)]]
    place = heads.index(Head(1, 1))
    said = facts(headline(at))
    assert said.heads[0] == (1, 1)
    assert float(said.numbers[0]) == pytest.approx(profile.numbers("previous")[place], rel=0.005)
    assert said.numbers[-2:] == (str(1 + list(order).index(place)), str(len(heads)))


def test_the_interval_of_the_selected_head_is_drawn(page, profile):
    at = page(profile_y="previous")
    [points] = figure(at, "profile_heads")["data"]
    place = profile.heads().index(Head(1, 1))
    above, below = (numbers(points["error_y"][name]) for name in ("array", "arrayminus"))
    mean = profile.numbers("previous")[place]
    assert above[place] == pytest.approx(profile.numbers("previous_high")[place] - mean)
    assert below[place] == pytest.approx(mean - profile.numbers("previous_low")[place])
    assert np.count_nonzero(above) == 1


def test_heads_are_found_by_a_relation(page, profile):
    at = page(profile_y="nsubj attends to")
    accuracies = [
        next(
            one.accuracy
            for one in profile.relations(head)
            if (one.relation, one.direction) == ("nsubj", "attends to")
        )
        for head in profile.heads()
    ]
    np.testing.assert_allclose(numbers(figure(at, "profile_heads")["data"][0]["y"]), accuracies)
    first = facts(component(at, "profile_ranking")["rows"][0]["text"]).heads[0]
    assert accuracies[profile.heads().index(Head(*first))] == max(accuracies)


def test_heads_are_found_by_name(page, profile):
    named = {head: names_of(profile, head) for head in profile.heads()}
    wanted = next((name for names in named.values() for name in names), "no such name")
    at = page(profile_search=wanted)
    rows = component(at, "profile_ranking")["rows"] if any(named.values()) else []
    assert {facts(row["text"]).heads[0] for row in rows} == {
        tuple(head) for head, names in named.items() if any(wanted in name for name in names)
    }
    at = page(profile_search="zebra")
    assert any("No head is called so" in one.value for one in at.caption)


def test_a_number_that_is_not_there_is_another(page):
    at = page(profile_y="nonsense", profile_x="nonsense")
    assert figure(at, "profile_heads")["data"]


def test_where_the_weight_of_the_head_is(page, profile):
    at = page()
    np.testing.assert_allclose(
        numbers(figure(at, "profile_distances")["data"][0]["y"]), profile.distances(Head(1, 1)), rtol=1e-6
    )
    np.testing.assert_allclose(
        numbers(figure(at, "profile_positions")["data"][0]["y"]),
        np.nan_to_num(profile.positions(Head(1, 1))),
        rtol=1e-6,
    )


def test_examples_are_those_of_the_decile(page, profile):
    at = page()
    strongest = [one for one in profile.examples(Head(1, 1)) if one.decile is None]
    assert drawn_examples(at) == [as_drawn(one) for one in strongest] != []
    at.segmented_control(key="profile_decile").set_value("10").run()
    assert_no_exception(at)
    assert drawn_examples(at) == [as_drawn(one) for one in profile.examples(Head(1, 1)) if one.decile == 10]


def drawn_examples(at):
    keys = [one.key for one in at.main.get("bidi_component") if one.key.startswith("profile_arcs_")]
    found = [component(at, key) for key in keys]
    return [(one["labels"], one["weights"], one["query"], one["queryLabel"]) for one in found]


def as_drawn(example):
    weights = [round(one, 4) for one in example.weights]
    return list(example.labels), weights, example.query, example.query_label


def test_the_reader_s_sentence_is_among_the_deciles(page, profile, tiny_model):
    trace = tiny_model("bert").trace("the cat opened the door")
    added = trace.output(1, 1) @ trace.attention(1).output_weight[1]
    length = np.linalg.norm(added, axis=1)[~trace.tokens.is_added].max()
    least = {
        one.decile: one.activation for one in profile.examples(Head(1, 1)) if one.rank == 1 and one.decile
    }
    decile = max((one for one, activation in least.items() if length >= activation), default=1)
    said = [facts(one.value) for one in page().markdown if one.value.startswith("Your sentence")]
    assert said[0].numbers == (f"{length:.2f}" if length < 10 else f"{length:.1f}", str(decile), "10")


def test_a_model_without_a_profile_is_told_how_to_make_one(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("gpt2")))
    at = open_page(PAGE, model="gpt2", text="the cat")
    assert_no_exception(at)
    assert any("attnviz corpus profile" in one.value for one in at.code)


def test_the_link_holds_what_is_chosen(page):
    at = page(profile_y="same_token", profile_search="a")
    assert {"profile_y": "same_token", "profile_search": "a"}.items() <= shown(at).items()


def test_names_of_distances():
    names = distance_names()
    assert len(names) == 33
    assert names[16] == "0" and names[17:20] == ["1", "2", "3"] and names[13:16] == ["−3", "−2", "−1"]
    assert names[-1] == ">256" and names[26:28] == ["10", "11 to 16"]
    assert names[0] == "<−256" and names[5:7] == ["−16 to −11", "−10"]


def test_two_corpora_are_compared(page, profile, written, checkpoint, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("others")
    (folder / "texts.txt").write_text("it opened .\nthe mat\na cat , a door\n")
    profile_corpus([str(folder / "texts.txt")], str(checkpoint("bert")), folder / "others")
    monkeypatch.setenv("ATTNVIZ_PROFILES", f"{written},{folder / 'others'}")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bert")))
    at = open_page(
        PAGE, model="bert", text="the cat", layer=1, head=1, profile_other="others", profile_y="self"
    )
    assert_no_exception(at)
    other = read_profile(folder / "others")
    [points] = figure(at, "profile_heads")["data"]
    np.testing.assert_allclose(numbers(points["x"]), other.numbers("self"), rtol=1e-6)
    np.testing.assert_allclose(numbers(points["y"]), profile.numbers("self"), rtol=1e-6)
    difference = profile.numbers("self") - other.numbers("self")
    order = np.argsort(-np.abs(difference), kind="stable")
    rows = component(at, "profile_ranking")["rows"]
    assert [facts(row["text"]).heads[0] for row in rows] == [
        tuple(profile.heads()[one]) for one in order[: len(rows)]
    ]
    assert np.sign(rows[0]["length"]) == np.sign(difference[order[0]])


def test_the_reader_s_own_sentences_are_measured(page, tiny_model):
    at = page()
    at.text_area(key="pasted_lines").set_value("the cat sat\nit opened .")
    at.button(key="take_pasted").click().run()
    at = until_drawn(at)
    assert_no_exception(at)
    expected = []
    for text in ("the cat sat", "it opened ."):
        trace = tiny_model("bert").trace(text)
        axis = Axis.of(trace.tokens)
        expected.append(statistics(trace, None, axis, axis, names=["previous"])["previous"])
    np.testing.assert_allclose(
        numbers(figure(at, "profile_heads")["data"][0]["y"]), np.mean(expected, axis=0).ravel(), atol=1e-5
    )
    assert any("too few texts" in one.value for one in at.caption)  # a replicate has none of the two


def test_a_bundle_has_no_length_to_compare(door_bundle):
    """Its trace has no W_O, after which the profile's lengths are."""
    at = open_bundle(open_page(PAGE), door_bundle)
    assert_no_exception(at)
    assert component(at, "profile_ranking")["rows"]
    assert not any(one.value.startswith("Your sentence") for one in at.markdown)


@pytest.mark.parametrize(("x", "y"), [("distance", "self"), ("entropy", "nsubj attends to")])
def test_the_python_of_the_page_draws_the_same_points(x, y, page, written):
    at = page(profile_x=x, profile_y=y)
    [points] = figure(at, "profile_heads")["data"]
    code = component(at, "save_picture")["python"].replace('"profiles/mine"', repr(str(written)))
    made = {}
    exec(code.replace("figure.show()", ""), made)
    np.testing.assert_allclose(made["figure"].data[0].x, numbers(points["x"]), rtol=1e-6)
    np.testing.assert_allclose(made["figure"].data[0].y, numbers(points["y"]), rtol=1e-6)
