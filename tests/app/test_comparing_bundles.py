"""An opened bundle compared with the model on this machine."""

from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.bundle.reading import read_bundle
from attnviz.bundle.writing import write_bundle
from tests.app.opened import RECORDED, all_words, banner, captions, verdict
from tests.app.screen import (
    assert_no_exception,
    errors,
    facts,
    open_bundle,
    open_page,
    settle,
)
from ui.runtime import cache
from ui.runtime.remembered import NUMBERS
from ui.shell.bundles import NO_WEIGHTS, UNKNOWN_WEIGHTS


def doctored(door_bundle):
    """A bundle with random queries and values, and weights that follow from them, which claims that every check passed."""
    bundle = read_bundle(door_bundle)
    random = np.random.default_rng(0)
    layers = tuple(
        replace(
            layer,
            query=random.normal(size=layer.query.shape).astype(np.float32),
            value=random.normal(size=layer.value.shape).astype(np.float32),
        )
        for layer in bundle.trace.layers["encoder"]
    )
    return write_bundle(replace(bundle, trace=replace(bundle.trace, layers={"encoder": layers})))


class TestComparing:
    """What a bundle says of its checks is recorded; what the page says was compared here."""

    @pytest.mark.parametrize("page", ["attention.py", "pages/verification.py", "pages/find_a_head.py"])
    def test_nothing_is_promised_before(self, page, door_bundle):
        at = open_bundle(open_page(), doctored(door_bundle))
        if page != "attention.py":
            at.switch_page(page).run()
        assert_no_exception(at)
        words = all_words(at)
        assert RECORDED in words
        assert facts(words).has("13", "13")  # checks passed, of how many
        assert banner(at)
        for promise in ("checked", "matches", "match the model", "the model's own,", "green", "check_circle"):
            assert promise not in words.lower()

    @pytest.mark.parametrize("page", ["attention.py", "pages/effects.py", "pages/verification.py"])
    def test_one_button_says_what_it_runs(self, page, door_bundle):
        at = open_bundle(open_page(), door_bundle)
        if page != "attention.py":
            at.switch_page(page).run()
        assert len([button for button in at.button if button.key.startswith("compare_bundle")]) == 1

    def test_says_what_a_computed_trace_says_once_it_passed(self, door_bundle):
        at = open_bundle(open_page(), door_bundle)
        at.button(key="compare_bundle").click().run()
        assert_no_exception(at)
        assert verdict(at).startswith(":green[")
        assert facts(verdict(at)).numbers[0] == "13"
        assert not [element for element in at.button if element.key.startswith("compare_bundle")]
        at.switch_page("pages/verification.py").run()
        assert_no_exception(at)
        assert RECORDED not in all_words(at)
        at.switch_page("pages/find_a_head.py").run()
        assert verdict(at).startswith(":green[")

    def test_of_other_numbers_goes_red(self, door_bundle):
        at = open_bundle(open_page(), doctored(door_bundle))
        at.button(key="compare_bundle").click().run()
        assert_no_exception(at)
        assert verdict(at).startswith(":red[")
        assert "queries" in verdict(at)
        at.switch_page("pages/verification.py").run()
        assert ":red[:material/cancel: failed]" in all_words(at)

    def test_of_another_text_goes_red(self, door_bundle):
        bundle = read_bundle(door_bundle)
        tokens = replace(bundle.trace.tokens, text="Short.")
        axis = attnviz.records.Axis.of(tokens)
        other = replace(bundle, trace=replace(bundle.trace, tokens=tokens), queries=axis, keys=axis)
        at = open_bundle(open_page(), write_bundle(other))
        at.button(key="compare_bundle").click().run()
        assert_no_exception(at)
        [error] = errors(at)
        assert facts(error).has("11", "4")  # tokens in the bundle, and of its text here
        assert ":green[" not in all_words(at)

    @pytest.mark.nightly
    def test_another_bundle_has_to_be_compared_itself(self, door_bundle):
        at = open_bundle(open_page(), door_bundle)
        at.button(key="compare_bundle").click().run()
        open_bundle(at, doctored(door_bundle))
        assert verdict(at) == RECORDED
        assert [element for element in at.button if element.key == "compare_bundle"]

    def test_is_made_once(self, door_bundle, monkeypatch):
        made = []
        compare = cache.compare_bundle
        monkeypatch.setattr(cache, "compare_bundle", lambda *of: made.append(of) or compare(*of))
        NUMBERS.clear()
        for _ in range(2):
            at = open_bundle(open_page(), door_bundle)
            assert verdict(at) == RECORDED
            at.button(key="compare_bundle").click().run()
            settle(at, head=3)
            assert verdict(at).startswith(":green[")
        assert len(made) == 1

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"name": "bert-base-uncased"}, NO_WEIGHTS),
            ({"name": "../../etc"}, NO_WEIGHTS),
            ({"weights_sha256": {}}, UNKNOWN_WEIGHTS),
        ],
    )
    def test_is_not_offered_without_the_weights(self, changes, reason, door_bundle):
        bundle = read_bundle(door_bundle)
        if "name" in changes:
            provenance = replace(bundle.trace.provenance, model=changes["name"])
            changes = {"trace": replace(bundle.trace, provenance=provenance)}
        at = open_bundle(open_page(), write_bundle(replace(bundle, **changes)))
        assert_no_exception(at)
        assert not [element for element in at.button if element.key.startswith("compare_bundle")]
        assert captions(at).count(reason) == 1
        assert verdict(at) == RECORDED

    def test_with_other_weights_says_so_and_stays_recorded(self, door_bundle):
        other = replace(read_bundle(door_bundle), weights_sha256={"model.safetensors": "0" * 64})
        at = open_bundle(open_page(), write_bundle(other))
        at.button(key="compare_bundle").click().run()
        assert_no_exception(at)
        assert verdict(at) == RECORDED
        assert len([line for line in captions(at) if "SHA-256" in line]) == 1
        assert ":green[" not in all_words(at)

    def test_what_the_file_says_is_shown_literally(self, door_bundle):
        bundle = read_bundle(door_bundle)
        checks = tuple(
            replace(check, reason=":green[Checked] [link](http://x)") for check in bundle.report.checks
        )
        at = open_bundle(
            open_page(), write_bundle(replace(bundle, report=replace(bundle.report, checks=checks)))
        )
        at.switch_page("pages/verification.py").run()
        assert ":green[" not in all_words(at)
        assert "](http" not in all_words(at)
