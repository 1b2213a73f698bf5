"""The page "Profiles": its numbers are the profile's, its heads are found by name and number, and examples are shown as they are."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnviz.corpus.naming import names_of
from attnviz.corpus.pipeline import profile_corpus
from attnviz.corpus.profile import read_profile
from attnviz.effects.rows_over_texts import mean_shuffled_heads
from attnviz.heads import statistics_on
from attnviz.records import Axis, Head
from tests.app.screen import (
    assert_no_exception,
    captions,
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
from ui.rooms.many_texts.profiles.one_head import distance_names
from ui.runtime import profiles, uploads

PAGE = "pages/profiles.py"
ROWS = (
    ("the", "DET", 2, "det"),
    ("cat", "NOUN", 3, "nsubj"),
    ("opened", "VERB", 0, "root"),
    ("the", "DET", 5, "det"),
    ("door", "NOUN", 3, "obj"),
)


def parquet(columns):
    """A table as a file."""
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


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
    assert {box.key: box.value for box in at.selectbox}.items() >= {
        ("field_profile_x", "distance"),
        ("field_profile_y", "previous"),
    }
    [points] = figure(at, "profile_heads")["data"]
    np.testing.assert_allclose(numbers(points["x"]), profile.numbers("distance"), rtol=1e-6)
    np.testing.assert_allclose(numbers(points["y"]), profile.numbers("previous"), rtol=1e-6)
    heads = profile.heads()
    order = np.argsort(-profile.numbers("previous"), kind="stable")
    rows = component(at, "profile_ranking")["rows"]
    assert [facts(row["text"]).heads[0] for row in rows] == [
        tuple(heads[index]) for index in order[: len(rows)]
    ]
    assert [row["picked"] for row in rows] == [heads[index] == (1, 1) for index in order[: len(rows)]]
    place = heads.index(Head(1, 1))
    in_headline = facts(headline(at))
    assert in_headline.heads[0] == (1, 1)
    assert float(in_headline.numbers[0]) == pytest.approx(profile.numbers("previous")[place], rel=0.005)
    assert in_headline.numbers[-2:] == (str(1 + list(order).index(place)), str(len(heads)))


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
            relation.accuracy
            for relation in profile.relations(head)
            if (relation.relation, relation.direction) == ("nsubj", "attends to")
        )
        for head in profile.heads()
    ]
    np.testing.assert_allclose(numbers(figure(at, "profile_heads")["data"][0]["y"]), accuracies)
    first = facts(component(at, "profile_ranking")["rows"][0]["text"]).heads[0]
    assert accuracies[profile.heads().index(Head(*first))] == max(accuracies)


def test_heads_are_found_by_name(page, profile):
    named = {head: [name.called for name in names] for head, names in names_of(profile).items()}
    wanted = next((name for names in named.values() for name in names), "no such name")
    at = page(profile_search=wanted)
    rows = component(at, "profile_ranking")["rows"] if any(named.values()) else []
    assert {facts(row["text"]).heads[0] for row in rows} == {
        tuple(head) for head, names in named.items() if any(wanted in name for name in names)
    }
    at = page(profile_search="zebra")
    assert any("No head is called so" in element.value for element in at.caption)


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
    strongest = [example for example in profile.examples(Head(1, 1)) if example.decile is None]
    assert drawn_examples(at) == [as_drawn(example) for example in strongest] != []
    at.segmented_control(key="profile_decile").set_value("10").run()
    assert_no_exception(at)
    assert drawn_examples(at) == [
        as_drawn(example) for example in profile.examples(Head(1, 1)) if example.decile == 10
    ]


def drawn_examples(at):
    keys = [
        element.key for element in at.main.get("bidi_component") if element.key.startswith("profile_arcs_")
    ]
    examples = [component(at, key) for key in keys]
    return [
        (example["labels"], example["weights"], example["query"], example["queryLabel"])
        for example in examples
    ]


def as_drawn(example):
    weights = [round(weight, 4) for weight in example.weights]
    return list(example.labels), weights, example.query, example.query_label


def test_the_reader_s_sentence_is_among_the_deciles(page, profile, tiny_model):
    trace = tiny_model("bert").trace("the cat opened the door")
    added = trace.output(1, 1) @ trace.attention(1).output_weight[1]
    length = np.linalg.norm(added, axis=1)[~trace.tokens.is_added].max()
    least = {
        example.decile: example.activation
        for example in profile.examples(Head(1, 1))
        if example.rank == 1 and example.decile
    }
    # The sentence is one of the profile's, and rounded otherwise in a batch.
    decile = max(decile for decile, activation in least.items() if length >= activation - 1e-4)
    in_lines = [
        facts(element.value) for element in page().markdown if element.value.startswith("Your sentence")
    ]
    assert in_lines[0].numbers == (f"{length:.2f}" if length < 10 else f"{length:.1f}", str(decile), "10")


def test_a_model_without_a_profile_is_told_how_to_make_one(checkpoint, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("gpt2")))
    at = open_page(PAGE, model="gpt2", text="the cat")
    assert_no_exception(at)
    assert any("attnviz corpus profile" in code.value for code in at.code)


def test_the_link_holds_what_is_chosen(page):
    at = page(profile_y="same_token", profile_search="a")
    assert {"profile_y": "same_token", "profile_search": "a"}.items() <= shown(at).items()


def test_names_of_distances():
    names = distance_names((*range(11), 16, 32, 64, 128, 256))
    assert len(names) == 33
    assert names[16] == "0" and names[17:20] == ["1", "2", "3"] and names[13:16] == ["−3", "−2", "−1"]
    assert names[-1] == ">256" and names[26:28] == ["10", "11 to 16"]
    assert names[0] == "<−256" and names[5:7] == ["−16 to −11", "−10"]


@pytest.fixture
def beside(page, written, checkpoint, tmp_path_factory, monkeypatch):
    """A second profile of the same model, in a folder of its own."""
    folder = tmp_path_factory.mktemp("others")
    texts = [f"it opened {'the door ' * (number % 4)}{'a cat ' * (number // 4)}." for number in range(20)]
    (folder / "texts.txt").write_text("\n".join(texts))
    profile_corpus([str(folder / "texts.txt")], str(checkpoint("bert")), folder / "others")
    monkeypatch.setenv("ATTNVIZ_PROFILES", f"{written},{folder / 'others'}")
    return folder / "others"


def test_two_corpora_are_compared(page, profile, beside):
    at = open_page(
        PAGE, model="bert", text="the cat", layer=1, head=1, profile_other="others", profile_y="self"
    )
    assert_no_exception(at)
    assert {"field_profile_y", "field_profile_x"} & {box.key for box in at.selectbox} == {"field_profile_y"}
    other = read_profile(beside)
    [points] = figure(at, "profile_heads")["data"]
    np.testing.assert_allclose(numbers(points["x"]), other.numbers("self"), rtol=1e-6)
    np.testing.assert_allclose(numbers(points["y"]), profile.numbers("self"), rtol=1e-6)
    first, second = (
        [measured.numbers(f"self{end}") for end in ("", "_low", "_high")] for measured in (profile, other)
    )
    difference = first[0] - second[0]
    low = difference - np.sqrt((first[0] - first[1]) ** 2 + (second[2] - second[0]) ** 2)
    high = difference + np.sqrt((first[2] - first[0]) ** 2 + (second[0] - second[1]) ** 2)
    moved = (low > 0) | (high < 0)
    order = sorted(range(len(difference)), key=lambda at: (not moved[at], -abs(difference[at])))
    place = profile.heads().index(Head(1, 1))
    in_headline = facts(headline(at)).numbers
    np.testing.assert_allclose(
        [float(number.replace("−", "-").strip("()")) for number in in_headline[-3:]],
        [difference[place], low[place], high[place]],
        atol=0.006,
    )
    assert any(f"Of {moved.sum()} of {len(moved)} heads" in caption.value for caption in at.caption)
    rows = component(at, "profile_ranking")["rows"]
    assert [facts(row["text"]).heads[0] for row in rows] == [
        tuple(profile.heads()[index]) for index in order[: len(rows)]
    ]
    assert np.sign(rows[0]["length"]) == np.sign(difference[order[0]])
    line = figure(at, "profile_heads")["layout"]["shapes"][0]
    assert line["x0"] == line["y0"] and line["x1"] == line["y1"]


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
        expected.append(statistics_on(trace, None, axis, axis, names=["previous"])["previous"])
    np.testing.assert_allclose(
        numbers(figure(at, "profile_heads")["data"][0]["y"]), np.mean(expected, axis=0).ravel(), atol=1e-5
    )
    assert any("too few texts" in element.value for element in at.caption)  # a replicate has none of the two


def test_rows_shuffled_over_the_reader_s_sentences(
    page, tiny_model, taken, checkpoint, tmp_path, monkeypatch
):
    """Where asked for: the mean over the sentences that have a row to shuffle, in the grid, the ranking, the CSV and the Python."""
    lines = ["the cat sat", "it opened .", "a cat sat on the mat"]
    at = page()
    at.text_area(key="pasted_lines").set_value("\n".join([*lines, "\u200b"]))
    at.button(key="take_pasted").click().run()
    at = until_drawn(at)
    assert "mean_shuffled_heads" not in component(at, "save_picture")["python"]
    at.button(key="profile_shuffled_act").click()
    at = until_drawn(at.run())
    assert_no_exception(at)
    assert errors(at) == []
    found = mean_shuffled_heads(tiny_model("bert"), lines)
    cells = component(at, "profile_shuffled")["cells"]
    written = np.array([[float(cell["label"]) for cell in row] for row in cells])
    np.testing.assert_allclose(written, found.heads, atol=0.0006)
    assert all("3 texts" in cell["text"] for row in cells for cell in row)
    assert "Mean over 3 texts" in captions(at) and "median of 3 orders" in captions(at)
    assert "1 text left out. Line 4: " in captions(at)
    assert "Rows shuffled over texts" in [made["name"] for made in component(at, "save_picture")["figures"]]
    rows = component(at, "profile_shuffled_ranking")["rows"]
    assert facts(rows[0]["text"]).heads[0] == tuple(found.ranked()[0])
    table = list(csv.DictReader(io.StringIO(taken["take_csv"][1]().decode("utf-8-sig"))))
    np.testing.assert_allclose(
        [float(row["row_change_sd"]) for row in table], found.spread.ravel(), rtol=1e-2, atol=1e-6
    )
    code = component(at, "save_picture")["python"]
    monkeypatch.chdir(tmp_path)
    Path("sentences.txt").write_text("\n".join([*lines, "\u200b"]))
    made = {}
    exec(code.replace("'bert'", repr(str(checkpoint("bert")))).replace("figure.show()", ""), made)
    np.testing.assert_allclose(made["shuffled"].heads, found.heads, rtol=1e-2, atol=1e-6)


def test_a_bundle_has_no_length_to_compare(door_bundle):
    """Its trace has no W_O, after which the profile's lengths are."""
    at = open_bundle(open_page(PAGE), door_bundle)
    assert_no_exception(at)
    assert component(at, "profile_ranking")["rows"]
    assert not any(element.value.startswith("Your sentence") for element in at.markdown)


@pytest.mark.parametrize(("x", "y"), [("distance", "self"), ("entropy", "nsubj attends to")])
def test_the_python_of_the_page_draws_the_same_points(x, y, page, written):
    at = page(profile_x=x, profile_y=y)
    [points] = figure(at, "profile_heads")["data"]
    code = component(at, "save_picture")["python"].replace("'profiles/cats'", repr(str(written)))
    made = {}
    exec(code.replace("figure.show()", ""), made)
    np.testing.assert_allclose(made["figure"].data[0].x, numbers(points["x"]), rtol=1e-6)
    np.testing.assert_allclose(made["figure"].data[0].y, numbers(points["y"]), rtol=1e-6)


def test_the_numbers_of_a_comparison_are_in_the_csv_and_the_python(page, profile, written, beside, taken):
    at = page(profile_other="others", profile_y="self")
    other = read_profile(beside)
    lines = csv.DictReader(io.StringIO(taken["take_csv"][1]().decode()))
    rows = list(lines)
    expected = profile.numbers("self") - other.numbers("self")
    np.testing.assert_allclose(
        [float(row["self_difference"]) for row in rows], expected, rtol=1e-5, atol=1e-9
    )
    assert all(float(row["self_difference_low"]) <= float(row["self_difference"]) for row in rows)
    code = component(at, "save_picture")["python"]
    for folder in (written, beside):
        code = code.replace(f"'profiles/{folder.name}'", repr(str(folder)))
    made = {}
    exec(code.replace("figure.show()", ""), made)
    np.testing.assert_allclose(made["figure"].data[0].x, other.numbers("self"), rtol=1e-6)
    np.testing.assert_allclose(made["figure"].data[0].y, profile.numbers("self"), rtol=1e-6)


class TestFolders:
    def test_texts_are_chosen_where_there_are_several(self, page, written):
        assert "field_profile_corpus" not in [box.key for box in page().selectbox]  # the only ones are shown
        copied = shutil.copytree(written, written.parent / "dogs")
        try:
            at = page(profile_corpus=written.name)
            box = at.selectbox(key="field_profile_corpus")
            assert set(box.options) == {written.name, "dogs"} and box.value == written.name
            box.set_value("dogs").run()
            assert_no_exception(at)
            assert shown(at)["profile_corpus"] == "dogs"
        finally:
            shutil.rmtree(copied)

    def test_another_model_s_is_not_offered_and_the_link_says_so(
        self, page, written, checkpoint, monkeypatch
    ):
        """Of the same name, with other weights."""
        other = written.parent / "of others"
        shutil.copytree(written, other, dirs_exist_ok=True)
        rewrite(other, lambda metadata: metadata["about"]["weights"].update({"model.safetensors": "0" * 64}))
        assert "field_profile_corpus" not in [box.key for box in page().selectbox]
        at = page(profile_corpus="of others")
        assert "with other weights" in captions(at)
        assert figure(at, "profile_heads")["data"]
        shutil.rmtree(other)

    @pytest.mark.parametrize(
        ("spoil", "words"),
        [
            (lambda folder: rewrite(folder, lambda metadata: metadata.update(schema=99)), "version 99"),
            (lambda folder: (folder / "heads.parquet").write_bytes(b"nonsense"), "cannot be read as Parquet"),
            (lambda folder: drop(folder, "entropy"), "The column entropy of spoilt"),
            (lambda folder: (folder / "examples.parquet").unlink(), "cannot be read as Parquet"),
        ],
    )
    def test_a_damaged_one_is_a_sentence_and_the_others_stay(
        self, spoil, words, written, checkpoint, monkeypatch
    ):
        spoilt = written.parent / "spoilt"
        shutil.copytree(written, spoilt, dirs_exist_ok=True)
        spoil(spoilt)
        monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bert")))
        monkeypatch.setenv("ATTNVIZ_PROFILES", f"{written},{spoilt}")
        at = open_page(PAGE, model="bert", text="the cat", profile_corpus="spoilt")
        assert_no_exception(at)
        shown_words = " ".join([*errors(at), captions(at)])
        assert words in shown_words and str(written.parent) not in shown_words
        assert figure(at, "profile_heads")["data"]
        shutil.rmtree(spoilt)

    def test_a_link_to_none_of_them(self, page):
        at = page(profile_corpus="../../etc")
        assert "which is not on this server" in captions(at)
        assert figure(at, "profile_heads")["data"]

    def test_its_names_are_on_the_other_pages(self, written, checkpoint, monkeypatch, profile):
        monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint("bert")))
        folder = written.parent / "named"
        shutil.copytree(written, folder, dirs_exist_ok=True)
        named = [profile.heads()[4]]
        table = pq.read_table(folder / "heads.parquet")
        for end, number in (("", 0.75), ("_low", 0.625), ("_high", 0.875)):
            column = f"previous{end}"
            numbers_of_heads = [0.25] * len(table)
            numbers_of_heads[4] = number
            table = table.set_column(table.column_names.index(column), column, pa.array(numbers_of_heads))
        pq.write_table(table, folder / "heads.parquet")
        monkeypatch.setenv("ATTNVIZ_PROFILES", str(folder))
        at = open_page("pages/find_a_head.py", model="bert", text="the cat opened the door")
        assert_no_exception(at)
        texts = {
            Head(layer, head): cell["text"]
            for layer, row in enumerate(component(at, "head_grid")["cells"])
            for head, cell in enumerate(row)
        }
        assert [
            head for head, text in texts.items() if "in the profile of “named”: previous token 0.75" in text
        ] == named
        shutil.rmtree(folder)


def rewrite(folder, change):
    """Changes what a profile says of itself."""
    for name in ("heads.parquet", "examples.parquet"):
        table = pq.read_table(folder / name)
        metadata = json.loads(table.schema.metadata[b"attnviz"])
        change(metadata)
        pq.write_table(table.replace_schema_metadata({"attnviz": json.dumps(metadata)}), folder / name)


def drop(folder, column):
    table = pq.read_table(folder / "heads.parquet")
    pq.write_table(table.drop_columns([column]), folder / "heads.parquet")


def test_two_models_are_beside_each_other(page, profile):
    """Heads of another shape have no counterpart: the largest head of each profile, and their difference."""
    at = page(profile_other="all-MiniLM-L6-v2", profile_y="previous")
    other = read_profile(profiles.BUNDLED / "all-MiniLM-L6-v2")
    here, there = (int(np.argmax(measured.numbers("previous"))) for measured in (profile, other))
    in_headline = facts(headline(at))
    assert in_headline.heads == (tuple(profile.heads()[here]), tuple(other.heads()[there]))
    best = [measured.numbers("previous")[at_] for measured, at_ in ((profile, here), (other, there))]
    assert float(in_headline.numbers[-3].replace("−", "-")) == pytest.approx(best[0] - best[1], abs=0.006)
    _, second = figure(at, "profile_heads")["data"]
    np.testing.assert_allclose(numbers(second["y"]), other.numbers("previous"), rtol=1e-6)
    np.testing.assert_allclose(numbers(second["x"]), [head.layer / 5 for head in other.heads()], rtol=1e-6)
    rows = component(at, "profile_ranking_other")["rows"]
    assert facts(rows[0]["text"]).heads[0] == tuple(other.heads()[there])


class TestOwnFile:
    """A file that the visitor brings is measured as the command measures it, and whatever is wrong with it is a sentence."""

    def bring(self, at, name, data):
        [uploader] = [element for element in at.file_uploader if element.key.startswith("texts_file_")]
        return uploader.set_value((name, data, "application/octet-stream")).run()

    def test_with_labels(self, page, written, profile):
        """The sentences of the profile in the folder, as a file."""
        data = (written.parent / "texts.conllu").read_bytes()
        at = until_drawn(self.bring(page(profile_y="nsubj attends to"), "mine.conllu", data))
        assert errors(at) == [] and shown(at)["profile_corpus"] == "file"
        np.testing.assert_allclose(
            numbers(figure(at, "profile_heads")["data"][0]["y"]),
            profile.accuracies("nsubj", "attends to")[0],
            atol=1e-9,
        )
        assert any(
            element.value.startswith("mine") and f"{profile.n_text} texts" in element.value
            for element in at.caption
        )

    def test_of_a_table_the_column_is_asked_for(self, page, tiny_model):
        data = b"id,review,note\n1,the cat sat,no\n2,it opened .,no\n"
        at = self.bring(page(), "reviews.csv", data)
        assert_no_exception(at)
        [asked] = [element for element in at.selectbox if str(element.key).startswith("texts_column_")]
        assert asked.options == ["id", "review", "note"]
        at = until_drawn(asked.set_value("review").run())
        assert_no_exception(at)
        expected = []
        for text in ("the cat sat", "it opened ."):
            trace = tiny_model("bert").trace(text)
            axis = Axis.of(trace.tokens)
            expected.append(statistics_on(trace, None, axis, axis, names=["previous"])["previous"])
        np.testing.assert_allclose(
            numbers(figure(at, "profile_heads")["data"][0]["y"]), np.mean(expected, axis=0).ravel(), atol=1e-5
        )
        assert not [element for element in at.selectbox if str(element.key).startswith("texts_column_")]
        assert "column='review'" in component(at, "save_picture")["python"]

    def test_what_cannot_be_read_of_it_is_said(self, page):
        at = until_drawn(self.bring(page(), "mine.txt", b"the cat\n\xff\xfe\nit opened ."))
        assert "1 text could not be read, the first at line or row 2: Byte 1 of the line is 0xFF" in captions(
            at
        )

    @pytest.mark.parametrize(
        ("name", "data", "words"),
        [
            ("mine.txt", b"a\xff\n", "which is not UTF-8"),
            ("mine.txt", b"", "holds no text"),
            ("mine.txt", b"\n \n", "holds no text"),
            ("mine.txt", b"PK\x03\x04 and more", "a ZIP archive"),
            ("mine.txt", b"a" * 5_000_000, "The text has about"),
            ("mine.parquet", b"nonsense", "no Parquet file that can be read"),
            ("mine.parquet", parquet({"text": [1, 2]}), "Name one that holds texts"),
            ("mine.parquet", parquet({"id": [1, 2]}), "The column 'text' was to be read; here are id"),
            ("mine.parquet", parquet({"text": ["a" * 5_000_000]}), "at most 1,000,000 are read of one"),
            ("mine.jsonl", b"{" * 5000, "is not JSON"),
            ("mine.csv", b'text\n"no end', "The row cannot be read"),
            ("mine.txt", b"a\n" * 20_001, "more than 20,000 texts"),
        ],
    )
    def test_whatever_is_wrong_with_it_is_a_sentence(self, name, data, words, page):
        at = page()
        before = numbers(figure(at, "profile_heads")["data"][0]["y"])
        at = self.bring(at, name, data)
        assert_no_exception(at)
        [problem] = errors(at)
        assert words in problem and "/tmp" not in problem and problem.endswith(".")
        np.testing.assert_array_equal(numbers(figure(at, "profile_heads")["data"][0]["y"]), before)

    def test_it_counts_among_what_visitors_have_brought(self, page):
        before = uploads.n_bytes()
        at = until_drawn(self.bring(page(), "mine.txt", b"the cat\nit opened ."))
        assert uploads.n_bytes() - before == len("the cat") + len("it opened .")
        assert at is not None

    def test_its_limit_is_stated(self, page):
        at = page()
        [uploader] = [element for element in at.file_uploader if element.key.startswith("texts_file_")]
        assert uploader.proto.max_upload_size_mb == 5
        assert "up to 5 MB and 20,000 texts" in captions(at)
