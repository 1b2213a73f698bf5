"""A bundle opened again: what it shows, how it is left, and what is refused."""

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

import attnviz
from attnviz.bundle.changes import changes_in_words
from attnviz.bundle.comparison import check_unchanged
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import write_bundle
from attnviz.errors import VerificationError
from attnviz.model.interventions import ReplacedWeights, ScaledOutput
from tests.app.opened import RECORDED, banner, captions, verdict
from tests.app.screen import (
    CODED,
    DOOR,
    assert_no_exception,
    chips,
    component,
    document,
    errors,
    facts,
    finding,
    notices,
    open_bundle,
    open_page,
    picked,
    sent_weights,
    settle,
    shown,
    type_text,
    unescaped,
)
from ui.choice.presets import PRESETS
from ui.shell import bundles


def assert_weights(at, expected):
    """The stage was sent these numbers of the selected head."""
    np.testing.assert_allclose(sent_weights(at), expected, rtol=0, atol=CODED)


class TestOpening:
    @pytest.fixture
    def opened(self, door_bundle):
        at = open_bundle(open_page(text="Something else."), door_bundle)
        assert_no_exception(at)
        return at

    def test_shows_the_bundle(self, opened, door_trace):
        assert facts(finding(opened)).heads[0] == (2, 7)
        assert facts(finding(opened)).quoted[0] == "opened"
        assert chips(opened) == list(door_trace.tokens.labels)
        assert picked(opened) == [8]
        assert_weights(opened, door_trace.weights(2, 7))
        assert shown(opened)["seed"] == "11"
        assert "all-MiniLM-L6-v2, revision 0.1.0." in banner(opened)
        assert opened.text_area(key="field_text").value == DOOR

    def test_numbers_are_the_files_and_not_the_models(self, embedded, door_bundle):
        """A bundle of other numbers than the model's: queries twice as long."""
        bundle = read_bundle(door_bundle)
        layers = tuple(replace(layer, query=2 * layer.query) for layer in bundle.trace.layers["encoder"])
        other = replace(bundle, trace=replace(bundle.trace, layers={"encoder": layers}))
        at = open_bundle(open_page(), write_bundle(other))
        assert_weights(at, other.trace.weights(2, 7))
        assert np.abs(sent_weights(at) - bundle.trace.weights(2, 7)).max() > 0.1
        settle(at, head=3)
        assert_weights(at, other.trace.weights(2, 3))

    def test_verdict_is_the_recorded_one(self, door_bundle):
        bundle = read_bundle(door_bundle)
        assert ("13", "13") in [
            facts(line).numbers for line in captions(open_bundle(open_page(), door_bundle))
        ]
        tables = {"encoder": np.full((6, 12), 0.125, dtype=np.float32)}
        checks = tuple(
            replace(check, differences=tables) if check.name == "attention weights" else check
            for check in bundle.report.checks
        )
        failed = replace(bundle, report=replace(bundle.report, checks=checks))
        at = open_bundle(open_page(), write_bundle(failed))
        assert verdict(at) == RECORDED
        [failure] = [line for line in captions(at) if ":red[" in line]
        assert facts(failure).numbers == ("12", "13")
        at.switch_page("pages/verification.py").run()
        [failure] = [line.value for line in at.markdown if line.value.startswith(f"**{RECORDED}: :red[")]
        assert facts(failure).numbers == ("12", "13")

    def test_says_that_the_run_was_changed(self, embedded, door_bundle):
        off = ScaledOutput(factor=0.0, layer=2, head=7)
        uniform = ReplacedWeights(weights=np.full((11, 11), 1 / 11, dtype=np.float32), layer=2, head=7)
        trace = embedded.trace(DOOR, interventions=[uniform, off])
        bundle = replace(read_bundle(door_bundle), trace=trace)
        at = open_bundle(open_page(), write_bundle(bundle))
        assert_no_exception(at)
        assert_weights(at, uniform.weights)
        how = changes_in_words(trace.interventions)
        assert banner(at).index("revision 0.1.0") < banner(at).index(how)
        [checked] = [line for line in captions(at) if how in line and facts(line).has("13", "13")]
        with pytest.raises(VerificationError) as reason:
            check_unchanged(bundle)
        assert str(reason.value) in captions(at)
        assert not [element for element in at.button if element.key == "compare_bundle"]
        at.switch_page("pages/verification.py").run()
        assert_no_exception(at)
        assert f"**{RECORDED}: {checked}**" in [unescaped(element.value) for element in at.markdown]

    def test_verification_page_says_what_is_not_in_it(self, opened):
        at = opened.switch_page("pages/verification.py").run()
        assert_no_exception(at)
        [table] = [element.value for element in at.dataframe]
        assert list(table.columns) == ["key", "score s", "exp(s − m)", "ours"]
        assert not [element for element in at.button if element.key == "verify_presets"]

    def test_holds_on_every_page_and_for_another_head(self, opened, door_trace):
        settle(opened, layer=4)
        assert_weights(opened, door_trace.weights(4, 7))
        opened.switch_page("pages/verification.py").run()
        opened.switch_page("attention.py").run()
        assert banner(opened)

    @pytest.mark.parametrize("way", ["sentence", "example", "button"])
    def test_is_left(self, way, opened):
        if way == "sentence":
            type_text(opened, "A new sentence.")
            assert chips(opened) == ["[CLS]", "a", "new", "sentence", ".", "[SEP]"]
        elif way == "example":
            bank = next(preset for preset in PRESETS if "bank" in preset.text)
            opened.button_group(key="preset_choice").set_value(bank).run()
            assert "bank" in chips(opened)
        else:
            opened.button(key="leave_bundle").click().run()
        assert_no_exception(opened)
        assert not banner(opened)
        assert "bundle" not in shown(opened)
        assert len(notices(opened)) == (0 if way == "button" else 1)

    def test_a_larger_file_than_the_operator_allows_is_refused(self, door_bundle, monkeypatch):
        monkeypatch.setattr(bundles, "UPLOAD_MB", 1)
        larger = door_bundle + bytes(2_000_000 - len(door_bundle))
        at = open_bundle(open_page(), larger)
        [error] = errors(at)
        assert facts(error).numbers == ("2", "1")  # MB
        assert not banner(at)

    def test_another_session_does_not_see_it(self, opened, door_bundle):
        digest = sha256(door_bundle).hexdigest()
        assert shown(opened)["bundle"] == digest
        other = open_page(bundle=digest, text="Another text.")
        assert_no_exception(other)
        assert chips(other) == ["[CLS]", "another", "text", ".", "[SEP]"]
        assert len(notices(other)) == 1
        assert "bundle" not in shown(other)

    def test_the_same_bundle_in_two_sessions(self, opened, door_bundle, door_trace):
        other = open_bundle(open_page(), door_bundle)
        assert_weights(other, door_trace.weights(2, 7))
        assert_no_exception(other)

    def test_its_model_need_not_be_here(self, tiny_model):
        model = tiny_model("t5")
        trace = model.trace("the door", "it opened")
        axis = attnviz.records.Axis.of(trace.target_tokens)
        data = write_bundle(
            attnviz.Bundle(
                trace=trace,
                report=attnviz.verify(model, trace),
                kind="cross",
                layer=1,
                head=1,
                queries=axis,
                keys=attnviz.records.Axis.of(trace.tokens),
                query=1,
                key=0,
            )
        )
        at = open_bundle(open_page(), data)
        assert_no_exception(at)
        assert errors(at) == []
        assert_weights(at, trace.weights(1, 1, "cross"))
        assert "t5" in banner(at) and "local folder" in banner(at)
        assert document(at)["maskLabel"] is None
        assert not component(at, "viewer")["masks"]

    def test_the_same_file_comes_out_again(self, taken, opened, door_bundle):
        bundle = read_bundle(door_bundle)
        opened.run()
        again = read_bundle(taken["take_bundle"][1]())
        assert again.report.max_abs_error == bundle.report.max_abs_error
        assert again.weights_sha256 == bundle.weights_sha256
        np.testing.assert_array_equal(again.trace.last_hidden_state, bundle.trace.last_hidden_state)


class TestRefusals:
    @pytest.mark.parametrize("data", [b"no zip", b""])
    def test_a_file_that_is_none_is_explained_and_the_view_stays(self, data):
        at = open_page()
        before = sent_weights(at)
        open_bundle(at, data)
        assert_no_exception(at)
        [message] = errors(at)
        assert "bundle" in message
        assert_weights(at, before)
        settle(at, head=3)
        assert sent_weights(at).shape == before.shape

    def test_a_good_file_after_a_bad_one(self, door_bundle):
        at = open_bundle(open_page(), b"no zip")
        open_bundle(at, door_bundle)
        assert errors(at) == []
        assert facts(finding(at)).heads[0] == (2, 7)

    def test_settings_are_taken_like_a_link(self, door_bundle):
        bundle = read_bundle(door_bundle)
        settings = {"seed": "-5", "metric": "<b>no</b>", "bundle": "x", "model": "y", "unit": "words"}
        at = open_bundle(open_page(), write_bundle(replace(bundle, settings=settings)))
        assert_no_exception(at)
        remarks = notices(at)
        assert any("metric “<b>no</b>”" in remark for remark in remarks)
        assert any("seed -5" in remark for remark in remarks)
        assert shown(at)["unit"] == "words"
