"""A translation model's languages: chosen on the page, kept in the link, and nowhere to be seen for other models."""

import numpy as np
import pytest

import attnviz
from tests import translation
from tests.app.screen import assert_no_exception, component, matrix, open_page

TEXT, SECOND = "a door opened", "it sat"
FIELDS = ("field_source_language", "field_target_language")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The name of a translation model that is on offer, and its folder."""
    folder = translation.save("mbart50", tmp_path / "translator")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    return "translator", folder


def boxes(at):
    return {element.key: element for element in at.selectbox if element.key in FIELDS}


def test_languages_are_chosen_where_the_tokenizer_has_them(own):
    name, folder = own
    at = open_page(model=name, text=TEXT, second=SECOND, kind="cross", layer=0, head=0)
    assert_no_exception(at)
    assert [box.value for box in boxes(at).values()] == ["en_XX", "fr_XX"]
    model = attnviz.load_model(str(folder))
    np.testing.assert_allclose(matrix(at), model.trace(TEXT, SECOND).weights(0, 0, "cross"), atol=4e-5)

    boxes(at)["field_target_language"].set_value("de_DE").run()
    assert_no_exception(at)
    assert at.query_params["target_language"] == "de_DE"
    assert "source_language" not in at.query_params
    expected = model.trace(TEXT, SECOND, target_language="de_DE")
    assert not np.array_equal(
        expected.weights(0, 0, "cross"), model.trace(TEXT, SECOND).weights(0, 0, "cross")
    )
    np.testing.assert_allclose(matrix(at), expected.weights(0, 0, "cross"), atol=4e-5)
    assert "target_language='de_DE'" in component(at, "save_picture")["python"]


def test_a_link_with_languages_shows_them(own):
    at = open_page(model=own[0], text=TEXT, second=SECOND, source_language="ro_RO", target_language="de_DE")
    assert_no_exception(at)
    assert [box.value for box in boxes(at).values()] == ["ro_RO", "de_DE"]


def test_a_link_with_a_language_that_there_is_not_says_so(own):
    at = open_page(model=own[0], text=TEXT, second=SECOND, target_language="tlh")
    assert_no_exception(at)
    assert [box.value for box in boxes(at).values()] == ["en_XX", "fr_XX"]
    assert any("“tlh” was asked for" in element.value for element in at.caption)


def test_other_models_have_none(own):
    at = open_page(model="all-MiniLM-L6-v2", source_language="en_XX")
    assert_no_exception(at)
    assert not boxes(at)
    assert any("marks its texts with none" in element.value for element in at.caption)
    assert "source_language" not in at.query_params


def test_another_model_does_not_keep_them(own):
    at = open_page(model=own[0], text=TEXT, second=SECOND, target_language="de_DE")
    at.selectbox(key="field_model").set_value("all-MiniLM-L6-v2").run()
    assert_no_exception(at)
    assert not boxes(at)
    assert "target_language" not in at.query_params
