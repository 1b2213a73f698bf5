"""The Python and the captions that Export writes say what is on screen."""

from dataclasses import replace
from types import SimpleNamespace

from attnviz.effects.outcome import TokenAnswer
from tests.app.views import LABELS, trace_of, view_of
from tests.small_records import PROVENANCE
from ui.part import Picture
from ui.rooms.cause.inputs.attributions import inputs_lines
from ui.rooms.cause.lens import added_parts
from ui.shell.export import captions


def seen(trace, **chosen):
    made = replace(PROVENANCE, versions={"attnviz": "0"})
    return view_of(replace(trace, provenance=made), **chosen)


def test_the_python_of_inputs_draws_the_same_orders():
    assert "random_orders(model, trace, outcome, seed=3)" in inputs_lines(
        seen(trace_of(0), seed=3), "state:2"
    )


def test_the_python_of_the_lens_attributes_the_same_difference(monkeypatch):
    answer = TokenAnswer(position=2, token="a", against="b")
    work = SimpleNamespace(finished=True, results=[(answer, None)])
    monkeypatch.setattr(added_parts, "direct_job", lambda screen: work)
    lines = added_parts.lens_lines(SimpleNamespace(view=seen(trace_of(0)), has_head=True))
    assert "parts = attribute_token(model, trace, 2, 'a', against='b')" in lines


def test_a_caption_names_the_languages_from_which_and_to_which():
    trace = trace_of(0, kind="cross", targets=LABELS)
    tokens, target = replace(trace.tokens, language="fr_XX"), replace(trace.target_tokens, language="de_DE")
    _, line = captions.caption(
        seen(replace(trace, tokens=tokens, target_tokens=target)),
        Picture("head_map", "Heads", "close points"),
    )
    assert "fr_XX to de_DE" in line
