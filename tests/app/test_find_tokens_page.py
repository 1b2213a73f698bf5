"""The page "Find tokens": what it shows is what comparing all vectors of the model's own traces gives."""

import csv
import io
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from attnviz.cli import main
from attnviz.corpus.files import METADATA
from attnviz.corpus.labels import read_conllu
from attnviz.model.states import hidden_states
from tests.app.screen import (
    DOOR,
    assert_no_exception,
    captions,
    component,
    errors,
    facts,
    headline,
    open_bundle,
    open_page,
    shown,
    until_drawn,
)
from ui.rooms.many_texts.find_tokens import BUNDLED

PAGE = "pages/find_tokens.py"
SENTENCES = [
    "the cat opened the door",
    "it opened .",
    "I was watching the door",
    "the mat , a cat",
    "a cat sat on the mat",
    "the door opened it",
]


def lines(at):
    """The lines that the page draws."""
    keys = [drawn.key for drawn in at.main.get("bidi_component") if drawn.key.startswith("found_arcs_")]
    return [component(at, key) for key in keys]


def by_hand(model, texts, own, position, layer, head, kind):
    """The cosine of each token of some texts with a token of another text, and what the head attends to there; nearest first."""

    def vectors(trace):
        if kind == "hidden":
            return hidden_states(model, trace).layers[trace.kinds[0], layer]
        call = trace.attention(layer)
        each = call.query if kind == "query" else call.key
        return each[head * len(each) // len(call.query)]

    wanted = vectors(model.trace(own))[position].astype(np.float64)
    rows = []
    for text in texts:
        trace = model.trace(text)
        weights = trace.weights(layer, head)
        for at, vector in enumerate(vectors(trace).astype(np.float64)):
            if not trace.tokens.is_added[at] and (text, at) != (own, position):
                cosine = vector @ wanted / np.linalg.norm(vector) / np.linalg.norm(wanted)
                strongest = int(weights[at].argmax())
                rows.append((cosine, text, at, strongest, float(weights[at, strongest]), trace.tokens.labels))
    return sorted(rows, key=lambda row: -row[0])


def assert_drawn(drawn, expected):
    """The lines are the nearest ones; of two that are equally near within float16 either may come first."""
    cosines = [row[0] for row in expected]
    for line in drawn:
        [row] = [
            row
            for row in expected
            if list(row[5]) == line["labels"]
            and row[2] == line["query"]
            and np.argmax(line["weights"]) == row[3]
        ][:1]
        assert row[0] >= cosines[len(drawn) - 1] - 2e-3
        assert max(line["weights"]) == pytest.approx(row[4], abs=2e-4)


@pytest.fixture
def page(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bert")))

    def opened(**asked):
        asked = {"model": "bert", "text": SENTENCES[0], "layer": 1, "head": 1, "query": 2} | asked
        return open_page(PAGE, **asked)

    return opened


@pytest.fixture(scope="module")
def written(checkpoint, tmp_path_factory):
    """An index of a tiny BERT."""
    folder = tmp_path_factory.mktemp("indices")
    (folder / "texts.txt").write_text("\n".join(SENTENCES))
    command = ["corpus", "index", str(folder / "texts.txt"), "--model", str(checkpoint("bert"))]
    assert main([*command, "--layer", "1", "--out", str(folder / "doors")]) == 0
    return folder / "doors"


@pytest.mark.parametrize("kind", ["hidden", "query", "key"])
def test_the_operator_s_texts(kind, page, written, tiny_model, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(written.parent))
    at = page(found_corpus="doors", found_vectors=kind)
    assert_no_exception(at)
    assert errors(at) == []
    expected = by_hand(tiny_model("bert"), SENTENCES, SENTENCES[0], 2, 1, 1, kind)
    drawn = lines(at)
    assert len(drawn) == 10
    assert_drawn(drawn, expected)
    in_headline = facts(headline(at))
    assert in_headline.heads == ((1, 1),) and in_headline.quoted[0] == "cat"
    n_same = sum(line["queryLabel"] == "cat" for line in drawn)
    assert in_headline.numbers[0] == "10" and (n_same in (0, 10) or in_headline.numbers[1] == str(n_same))
    assert "Exact search: all" in captions(at)
    assert {"found_corpus": "doors"}.items() <= shown(at).items()


@pytest.mark.parametrize(("n_verified", "n_passed", "n_failed"), [(6, 6, 0), (1, 1, 1), (1_200, 1_197, 2)])
def test_what_is_said_of_verification(n_verified, n_passed, n_failed, page, written, monkeypatch, tmp_path):
    """The counts of the run that made the index."""
    table = pq.read_table(written / "tokens.parquet")
    told = json.loads(table.schema.metadata[METADATA])
    checks = told["checks"] | {"n_text": n_verified, "n_passed": n_passed, "worst_error": 0.25}
    shutil.copytree(written, tmp_path / "doors")
    changed = table.replace_schema_metadata(
        {METADATA: json.dumps(told | {"checks": checks, "n_failed": n_failed})}
    )
    pq.write_table(changed, tmp_path / "doors" / "tokens.parquet", row_group_size=table.num_rows)
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(tmp_path))
    at = page(found_corpus="doors")
    assert_no_exception(at)
    words = captions(at)
    if n_passed == n_verified:
        assert f"{n_verified:,} of the texts {'were' if n_verified > 1 else 'was'} compared" in words
        assert "do not match" not in words
    else:
        assert f"{n_verified - n_passed:,} of {n_verified:,} texts that were compared do not match" in words
        assert "weights differ by up to 0.25" in words
    unread = {0: "", 1: "1 text could not be read.", 2: "2 texts could not be read."}[n_failed]
    assert unread in words and ("could not be read" in words) == bool(n_failed)


def test_an_index_of_another_layer_offers_its_own(page, written, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(written.parent))
    at = page(found_corpus="doors", layer=0)
    assert_no_exception(at)
    assert lines(at) == []
    at.button(key="found_layer").click().run()
    assert_no_exception(at)
    assert len(lines(at)) == 10 and shown(at)["layer"] == "1"


def test_choosing_texts_selects_the_layer_of_their_index(page, written, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(written.parent))
    at = until_drawn(page(layer=0))
    at.selectbox(key="field_found_corpus").set_value("doors").run()
    assert_no_exception(at)
    assert shown(at)["layer"] == "1" and shown(at)["found_corpus"] == "doors"


def test_own_sentences(page, tiny_model):
    at = until_drawn(page())
    at.text_area(key="pasted_lines").set_value("\n".join(SENTENCES[1:]))
    at.button(key="take_pasted").click().run()
    at = until_drawn(at)
    assert_no_exception(at)
    assert_drawn(lines(at), by_hand(tiny_model("bert"), SENTENCES[1:], SENTENCES[0], 2, 1, 1, "hidden"))


PARTS = {
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
}


@pytest.mark.parametrize(
    ("model", "layer", "head", "query"),
    [
        pytest.param("all-MiniLM-L6-v2", 3, 2, 5),
        pytest.param("SmolLM2-135M-Instruct", 2, 4, 4, marks=pytest.mark.nightly),
    ],
)
def test_bundled_sentences_are_there_for_both_models(model, layer, head, query, taken):
    at = until_drawn(open_page(PAGE, model=model, text=DOOR, layer=layer, head=head, query=query))
    assert_no_exception(at)
    assert errors(at) == []
    assert len(lines(at)) == 10
    bundled = {text for _, text, _ in read_conllu(BUNDLED.read_text().splitlines())}
    rows = list(csv.DictReader(io.StringIO(taken["take_csv"][1]().decode("utf-8-sig"))))
    assert len(rows) == 10 and {row["text"] for row in rows} <= bundled
    similarities = [float(row["similarity"]) for row in rows]
    assert similarities == sorted(similarities, reverse=True) and similarities[0] > 0.5
    assert {row["part"] for row in rows} <= PARTS
    assert (
        sum("door" in row["token"] for row in rows)
        == sum("door" in line["queryLabel"] for line in lines(at))
        > 0
    )


def test_the_python_of_the_page_finds_the_same(page, written, checkpoint, monkeypatch, capsys):
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(written.parent))
    at = page(found_corpus="doors", found_vectors="key")
    code = component(at, "save_picture")["python"]
    texts, folder = str(written.parent / "texts.txt"), str(checkpoint("bert"))
    for name, path in (("texts.txt", texts), ("profiles/mine", str(written))):
        code = code.replace(f'"{name}"', repr(path))
    exec(code.replace("'bert'", repr(folder)), {})
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in printed] == [line["queryLabel"] for line in lines(at)]


def test_a_bundle_s_tokens_can_be_looked_for(door_bundle):
    at = until_drawn(open_bundle(open_page(PAGE), door_bundle))
    assert_no_exception(at)
    assert errors(at) == []
    assert len(lines(at)) == 10


@pytest.mark.parametrize(("masked", "is_left_out"), [("", True), ("4", False)])
def test_a_token_of_a_masked_text_is_not_that_of_the_texts(masked, is_left_out, page, written, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_PROFILES", str(written.parent))
    at = page(found_corpus="doors", masked=masked)
    assert ("The selected token itself is left out." in captions(at)) == is_left_out
    own = [line for line in lines(at) if (line["query"], *line["labels"][2:4]) == (2, "cat", "opened")]
    assert len(lines(at)) == 10 and bool(own) != is_left_out
