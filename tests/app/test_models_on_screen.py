"""Models on the screen: those that have to be downloaded, those that cannot be loaded, other kinds."""

import huggingface_hub.constants
import numpy as np
import pytest
from huggingface_hub.utils import close_session

import attnviz
from tests.app.screen import (
    CODED,
    assert_no_exception,
    assert_nothing_drawn,
    chips,
    document,
    drawn_in_main,
    errors,
    facts,
    notices,
    open_page,
    sent_weights,
    shown,
    type_text,
    unescaped,
)
from tests.hub import LoopbackHub, save_tiny_bert
from ui import limits
from ui.shell import downloads

NAME = "tiny/bert"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub on loopback that has `NAME`, which the operator offers and which is not downloaded."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    monkeypatch.setenv("ATTNVIZ_MODELS", NAME)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    home = tmp_path / "home"
    for name, value in {
        "HF_HOME": str(home),
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_HUB_DISABLE_TELEMETRY": True,
    }.items():
        monkeypatch.setattr(huggingface_hub.constants, name, value)
    with LoopbackHub({NAME: save_tiny_bert(folder)}) as started:
        monkeypatch.setenv("HF_ENDPOINT", started.url)
        yield started
        close_session()
    downloads._downloads.clear()
    downloads._size.cache_clear()


def wait_for_download():
    downloads._downloads[NAME].thread.join(60)


def size(hub):
    return sum(file.stat().st_size for file in hub.repositories[NAME].iterdir())


def texts(at):
    """Words of the page, as a person reads them."""
    return [unescaped(element.value) for element in (*at.markdown, *at.caption)]


class TestDownload:
    def test_the_size_and_a_button_come_and_nothing_of_the_model_before(self, hub):
        at = type_text(open_page(), "The old door creaked.")
        at.selectbox(key="field_model").set_value(NAME).run()

        assert_no_exception(at)
        assert errors(at) == []
        assert any(text.startswith(f"**{NAME}**") for text in texts(at))
        assert at.button(key="start_download").label == f"Download {size(hub) / 1e6:,.0f} MB"
        assert drawn_in_main(at) == []
        assert at.text_area(key="field_text").value == "The old door creaked."
        assert shown(at)["model"] == NAME  # the link leads back to this very screen
        assert at.selectbox(key="field_model").value == NAME
        assert hub.bytes_served("model.safetensors") == 0  # nothing is fetched unasked

    def test_a_download_ends_in_the_picture_of_the_new_model(self, hub):
        at = type_text(open_page(), "I was watching the door.")
        at.selectbox(key="field_model").set_value(NAME).run()
        at.button(key="start_download").click().run()
        assert_no_exception(at)
        wait_for_download()
        at.run()

        assert_no_exception(at)
        assert errors(at) == []
        assert shown(at)["model"] == NAME
        assert not any("all-MiniLM-L6-v2" in text for text in texts(at))
        assert at.selectbox(key="field_model").value == NAME
        assert chips(at)[1:4] == ["i", "was", "watching"]
        assert len(document(at)["counts"]) == 3  # layers
        expected = attnviz.load_model(NAME).trace("I was watching the door.")
        place = int(shown(at)["layer"]), int(shown(at)["head"])
        np.testing.assert_allclose(sent_weights(at), expected.weights(*place), rtol=0, atol=CODED)
        assert not [element for element in at.button if element.key == "start_download"]

    def test_progress_is_shown_in_bytes(self, hub, monkeypatch):
        at = open_page(model=NAME)
        name = downloads._downloads
        running = downloads._Download.__new__(downloads._Download)
        running.name, running.done, running.total, running.error = NAME, 1_500_000, 6_000_000, None
        running.thread = type("Alive", (), {"is_alive": lambda self: True})()
        name[NAME] = running
        at.run()

        assert_no_exception(at)
        [bar] = at.get("progress")
        assert NAME in unescaped(bar.proto.text)
        assert facts(bar.proto.text).numbers == ("1.5", "6.0")  # MB
        assert bar.proto.value == 25
        assert not [element for element in at.button if element.key == "start_download"]

    def test_a_hub_that_is_down_is_named_and_nothing_is_drawn(self, hub, monkeypatch):
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        at = open_page()
        at.selectbox(key="field_model").set_value(NAME).run()

        assert_no_exception(at)
        assert at.button(key="start_download").label == "Download"
        assert any("127.0.0.1:9" in text for text in texts(at))  # which cannot be reached
        at.button(key="start_download").click().run()
        wait_for_download()
        at.run()

        assert_no_exception(at)
        assert len(errors(at)) == 1
        assert NAME in errors(at)[0] and "http://127.0.0.1:9" in errors(at)[0]
        assert drawn_in_main(at) == []
        assert at.button(key="start_download")  # it can be tried again

    def test_it_goes_on_after_a_lost_connection(self, hub):
        hub.break_after["model.safetensors"] = [3_000, 0]
        at = open_page(model=NAME)
        at.button(key="start_download").click().run()
        wait_for_download()
        at.run()
        [error] = errors(at)
        assert NAME in error and hub.url in error
        assert shown(at)["model"] == NAME

        at.button(key="start_download").click().run()
        wait_for_download()
        at.run()
        assert errors(at) == []
        assert shown(at)["model"] == NAME
        assert any(request.range == "bytes=3000-" for request in hub.served)

    def test_back_to_the_model_that_is_here(self, hub):
        at = open_page(model=NAME)
        at.selectbox(key="field_model").set_value("all-MiniLM-L6-v2").run()
        assert not [element for element in at.button if element.key == "start_download"]
        assert shown(at)["model"] == "all-MiniLM-L6-v2"

    def test_a_link_to_a_deep_layer_keeps_it_until_the_model_is_there(self, hub):
        at = open_page(model=NAME, layer=2, head=11, text="the door opened")
        assert (shown(at)["layer"], shown(at)["head"]) == ("2", "11")
        at.button(key="start_download").click().run()
        wait_for_download()
        at.run()
        assert (shown(at)["layer"], shown(at)["head"]) == ("2", "1")
        [notice] = [notice for notice in notices(at) if "tiny/bert" in notice]
        assert facts(notice).numbers == (
            "11",
            "2",
            "0",
            "1",
            "1",
        )  # asked for, its layer, first, last and shown


@pytest.mark.parametrize("page", ["attention.py", "pages/verification.py"])
def test_a_folder_that_is_no_checkpoint_is_named_and_nothing_is_drawn(page, tmp_path, monkeypatch):
    folder = tmp_path / "holiday-photos"
    folder.mkdir()
    (folder / "beach.txt").write_text("sand")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    at = open_page(page)
    at.selectbox(key="field_model").set_value("holiday-photos").run()

    assert_no_exception(at)
    [error] = errors(at)
    assert "holiday-photos" in error and "config.json" in error  # which it lacks
    assert_nothing_drawn(at)
    assert str(tmp_path) not in str(at.main)


@pytest.mark.parametrize("listed", ["no/such/model", "a b"])
@pytest.mark.parametrize("page", ["attention.py", "pages/verification.py"])
def test_a_list_of_the_operator_s_that_is_wrong_gets_a_sentence(page, listed, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", listed)
    at = open_page(page)
    assert_no_exception(at)
    assert len(errors(at)) == 1
    assert errors(at)[0].startswith("ATTNVIZ_MODELS lists")


def test_a_folder_of_the_operator_that_is_gone_matters_only_when_it_is_selected(monkeypatch):
    monkeypatch.setenv("ATTNVIZ_MODELS", "/no/such/folder")
    at = open_page()
    assert_no_exception(at)
    assert errors(at) == []
    at.selectbox(key="field_model").set_value("folder").run()
    assert_no_exception(at)
    assert len(errors(at)) == 1
    assert "/no/such" not in errors(at)[0]


def test_a_family_that_cannot_be_shown_is_named(checkpoint, monkeypatch):
    folder = checkpoint("xlnet")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    at = open_page(model="xlnet")

    assert_no_exception(at)
    assert len(errors(at)) == 1
    assert "family xlnet" in errors(at)[0]
    assert_nothing_drawn(at)


class TestKinds:
    """A model with an encoder and a decoder has three kinds of attention."""

    @pytest.fixture(params=["bart", "t5"])
    def offered(self, request, checkpoint, monkeypatch):
        monkeypatch.setenv("ATTNVIZ_MODELS", str(checkpoint(request.param)))
        return request.param

    @pytest.fixture
    def expected(self, offered, tiny_model):
        return tiny_model(offered).trace("the cat sat on the mat", "a door")

    @pytest.mark.parametrize("page", ["attention.py", "pages/verification.py"])
    def test_each_kind_draws(self, offered, expected, page):
        at = open_page(page, model=offered, text="the cat sat on the mat", second="a door")
        assert at.button_group(key="field_kind").value == "encoder"
        for kind in ("decoder", "cross", "encoder"):
            at.button_group(key="field_kind").set_value(kind).run()
            assert_no_exception(at)
            assert errors(at) == []
            assert shown(at).get("kind", "encoder") == kind
            if page == "attention.py":
                layer, head = int(shown(at)["layer"]), int(shown(at)["head"])
                expected_weights = expected.weights(layer, head, kind).copy()
                expected_weights[~np.isfinite(expected.scores(layer, head, kind))] = np.nan
                np.testing.assert_allclose(sent_weights(at), expected_weights, rtol=0, atol=CODED)

    def test_masked_cells_are_empty(self, offered):
        at = open_page(model=offered, text="the cat sat", second="a door", kind="decoder")
        drawn = sent_weights(at)
        assert np.isnan(drawn[np.triu_indices(len(drawn), k=1)]).all()
        assert np.isfinite(drawn[np.tril_indices(len(drawn))]).all()

    def test_cross_attention_goes_from_the_decoder_s_tokens_to_the_encoder_s(self, offered, expected):
        at = open_page(model=offered, text="the cat sat on the mat", second="a door", kind="cross", query=1)
        assert sent_weights(at).shape == (len(expected.target_tokens), len(expected.tokens))
        assert len(expected.target_tokens) != len(expected.tokens)
        assert document(at)["keys"]["labels"] == list(expected.tokens.labels)
        assert chips(at) == list(expected.target_tokens.labels)

    def test_without_a_second_sentence_the_decoder_has_its_start_token(self, offered):
        at = open_page(model=offered, text="the cat sat")
        for kind in ("decoder", "cross"):
            at.button_group(key="field_kind").set_value(kind).run()
            assert_no_exception(at)
            assert errors(at) == []
            assert sent_weights(at).shape[0] == 1

    def test_hidden_special_tokens_do_not_hide_everything(self, offered):
        for kind in ("encoder", "decoder", "cross"):
            for special in ("hidden", "renormalised"):
                at = open_page(model=offered, text="the cat sat", kind=kind, special=special)
                assert_no_exception(at)

    def test_a_model_with_one_kind_has_no_switch(self):
        at = open_page()
        assert not [element for element in at.get("button_group") if element.key == "field_kind"]


class TestWhoMayDownload:
    """Only a browser on the server's own machine may download, unless the operator says otherwise."""

    @pytest.mark.parametrize(
        ("address", "setting", "is_offered"),
        [
            ("127.0.0.1", "local", True),
            ("10.1.2.3", "local", False),
            ("10.1.2.3", "yes", True),
            ("::1", "no", False),
        ],
    )
    def test_others_get_no_button_and_start_nothing(self, hub, monkeypatch, address, setting, is_offered):
        monkeypatch.setattr(downloads, "_address", lambda: address)
        monkeypatch.setattr(limits, "DOWNLOADS", setting)
        at = open_page(model=NAME)
        assert_no_exception(at)
        assert ("start_download" in [element.key for element in at.button]) == is_offered
        started = []
        monkeypatch.setattr(downloads, "_Download", started.append)
        with monkeypatch.context() as patch:
            patch.setattr(downloads, "is_allowed", lambda: is_offered)
            downloads._start(NAME)
        assert started == [NAME] * is_offered
