"""The outcome is chosen in one place and is the same in every room: which numbers, which tokens, and what is offered."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attnviz.model.answers import LikelierForm
from attnviz.model.model import Model
from tests.app.screen import assert_no_exception, captions, errors, facts, open_page, shown, type_text

TEXT = "cat sat"
ROOMS = ("effects", "patching", "inputs")


@pytest.fixture
def answering(headed: Callable[[str], tuple[Model, Path]], monkeypatch: pytest.MonkeyPatch) -> Model:
    """A tiny decoder with a language head, which the operator offers; its tokens are bytes."""
    model, folder = headed("gpt2")
    monkeypatch.setenv("ATTNVIZ_MODELS", str(folder))
    return model


def open_room(room: str, **params: object) -> AppTest:
    at = open_page(f"pages/{room}.py", model="gpt2", text=TEXT, **params)
    assert_no_exception(at)
    return at


def chosen(at: AppTest) -> dict[str, object]:
    """What the widget of the outcome holds."""
    widgets = [*at.get("button_group"), *at.number_input, *at.selectbox, *at.text_input]
    return {str(widget.key): widget.value for widget in widgets if str(widget.key).startswith("outcome_")}


def likeliest(model: Model, text: str, at: int = -1) -> list[str]:
    """Names of the tokens that are most likely at a token, by the head's own logits."""
    trace = model.trace(text)
    logits = (
        trace.last_hidden_state[at] @ model.language_head.get_output_embeddings().weight.detach().numpy().T
    )
    return [model.name_of(int(index)) for index in np.argsort(-logits)]


def test_the_outcome_goes_with_the_reader_from_room_to_room(answering):
    at = open_room("effects", outcome="answer:last:a:b")
    link = shown(at)
    assert link["outcome"] == "answer:last:a:b"
    held = chosen(at)
    for room in ROOMS[1:]:
        at = open_page(f"pages/{room}.py", **link)
        assert (shown(at)["outcome"], chosen(at)) == ("answer:last:a:b", held)


def test_until_one_is_chosen_it_is_what_the_model_answers_at_the_last_token(answering):
    first, second, *_ = likeliest(answering, TEXT)
    for room in ROOMS:
        at = open_room(room)
        assert "outcome" not in shown(at)
        assert chosen(at) == {
            "outcome_kind": "answer",
            "outcome_position": 6,
            "outcome_measured": "difference",
            "outcome_token": first,
            "outcome_against": second,
        }
    type_text(at, "the cat sat on")
    first, second, *_ = likeliest(answering, "the cat sat on")
    assert (chosen(at)["outcome_token"], chosen(at)["outcome_against"]) == (first, second)
    assert chosen(at)["outcome_position"] == 13


def test_completions_are_offered_with_their_probabilities_and_can_be_picked(answering):
    at = open_room("patching")
    names = likeliest(answering, TEXT)
    field = at.selectbox(key="outcome_against")
    trace = answering.trace(TEXT)
    logits = (
        trace.last_hidden_state[-1]
        @ answering.language_head.get_output_embeddings().weight.detach().numpy().T
    )
    share = np.exp(logits.max() - logits.max()) / np.exp(logits - logits.max()).sum()
    assert field.options[0] == f"{names[0]}\N{EM SPACE}{100 * share:.1f}%"
    assert [option.partition("\N{EM SPACE}")[0] for option in field.options] == names[: len(field.options)]
    field.set_value(names[4]).run()
    assert shown(at)["outcome"] == f"answer:last:{names[0]}:{names[4]}"
    at.selectbox(key="outcome_token").set_value(names[2]).run()
    assert shown(at)["outcome"] == f"answer:last:{names[2]}:{names[4]}"


def test_probability_and_rank_are_of_one_token_and_the_position_can_be_moved(answering):
    at = open_room("patching", outcome="answer:last:a:b")
    at.button_group(key="outcome_measured").set_value("rank").run()
    assert shown(at)["outcome"] == "rank:last:a"
    assert "outcome_against" not in chosen(at)
    at.number_input(key="outcome_position").set_value(2).run()
    assert shown(at)["outcome"] == "rank:2:a"
    at.button_group(key="outcome_measured").set_value("probability").run()
    assert shown(at)["outcome"] == "answer:2:a"
    at.number_input(key="outcome_position").set_value(6).run()
    assert shown(at)["outcome"] == "answer:last:a"  # the last token, in another text too
    at.button_group(key="outcome_measured").set_value("difference").run()
    [other] = [token for token in likeliest(answering, TEXT) if token != "a"][:1]
    assert shown(at)["outcome"] == f"answer:last:a:{other}"


def test_a_space_that_belongs_to_a_token_is_seen(answering):
    at = open_room("patching", outcome="answer:last: :b")
    assert at.selectbox(key="outcome_token").value == "␣"


def test_an_old_link_still_works(answering):
    at = open_room("patching", outcome="answer:3:a:b")
    assert errors(at) == []
    assert (chosen(at)["outcome_position"], shown(at)["outcome"]) == (3, "answer:3:a:b")


def test_a_token_that_is_none_stays_in_its_field(answering):
    at = open_room("patching", outcome="answer:last:door:b")
    [error] = errors(at)
    assert "“door”" in error and "4 tokens" in error
    assert at.selectbox(key="outcome_token").value == "door"


def test_without_a_language_head_it_is_the_similarity():
    at = open_page("pages/patching.py", text=TEXT)
    assert chosen(at)["outcome_kind"] == "similarity"
    assert at.button_group(key="outcome_kind").options == ["Similarity", "Direction change", "Distance moved"]


@pytest.mark.parametrize(
    ("written", "key", "taken"), [("a:c", "likelier_token", "b:c"), ("c:a", "likelier_against", "c:b")]
)
def test_the_form_that_was_probably_meant_is_said_and_can_be_taken(
    answering, monkeypatch, written, key, taken
):
    form = LikelierForm(token="b", probability=0.923, asked="a", asked_probability=0.00003)
    monkeypatch.setattr(
        "ui.rooms.cause.outcome.likelier_form", lambda model, trace, at, token: form if token == "a" else None
    )
    at = open_room("patching", outcome=f"answer:last:{written}")
    assert facts(captions(at)).has("0.1%", "92.3%")
    at.button(key=key).click().run()
    assert shown(at)["outcome"] == f"answer:last:{taken}"
    assert not [element for element in at.button if str(element.key).startswith("likelier")]
